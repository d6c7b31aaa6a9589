import { cpuUsOf } from "../../bench/processes.ts";
import { json } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { ADMIN, Folder, GatewayProcess, type Reply, simpleConfig } from "./gateway.ts";
import { RawClient } from "./raw-client.ts";

/**
 * Many requests that compete for one limit, sent to several gateway processes that share a store: new keys of one full
 * budget, runs that start together, a cap that fits some of a hundred requests. Each is served, or refused by the limit
 * that it lacks. Nothing is broken, so nothing may answer 500.
 */
export class Fleet {
  private constructor(
    private readonly host: FakeHost,
    private readonly gateways: readonly GatewayProcess[],
    private readonly folders: readonly Folder[],
  ) {}

  /** So many gateways of this configuration, which names their store. */
  static async start(gateways: number, config: string): Promise<Fleet> {
    const { whole } = chatText(["one two three four five"], { input: 10, output: 5 });
    const host = await startFakeHost(() => json(whole));
    const folders = Array.from(
      { length: gateways },
      () => new Folder(simpleConfig([host.port], `${config}\n${UNLIMITED}`)),
    );
    const started = await Promise.all(folders.map((folder) => GatewayProcess.start(folder)));
    return new Fleet(host, started, folders);
  }

  /** A balance, and the secret that makes keys and budgets of it. */
  async balance(usd = 50): Promise<FundedBalance> {
    const { key, id, recovery_secret: owner } = await this.gateways[0]!.keyWith(usd);
    return { key, id, owner };
  }

  /** An owner's change, which has to succeed. */
  async change(method: string, path: string, body: unknown, owner: string, at = 0): Promise<Reply> {
    const reply = await this.gateways[at % this.gateways.length]!.send(method, path, body, owner);
    if (reply.status >= 400) throw new Error(`${method} ${path} answered ${reply.status}: ${reply.text}`);
    return reply;
  }

  async newKeys(owner: string, count: number, budget: string): Promise<string[]> {
    const keys: string[] = [];
    await inParallel(count, 20, async (n) => {
      keys[n] = (await this.change("POST", "/v1/keys", { budget }, owner, n)).json.key;
    });
    return keys;
  }

  /** Sends them, `atOnce` at a time over connections that stay open, to the gateways in turn; counts the answers. */
  async send(requests: number, atOnce: number, request: (n: number) => ChatRequest): Promise<Answers> {
    const cpuUs = this.cpuUs();
    const statuses: Record<string, number> = {};
    let next = 0;
    const client = async (number: number) => {
      const { url } = this.gateways[number % this.gateways.length]!;
      let connection = await RawClient.connect(url);
      while (next < requests) {
        connection.write(written(request(next++)));
        const { status, closes, body } = await connection.answer();
        const outcome = status === 200 ? "200" : `${status} ${JSON.parse(body).error.code}`;
        statuses[outcome] = (statuses[outcome] ?? 0) + 1;
        if (closes) connection = await RawClient.connect(url);
      }
      connection.close();
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, requests) }, (_, n) => client(n)));
    return { statuses, cpuUs: (this.cpuUs() - cpuUs) / requests };
  }

  /** What the books differ by from what they add up to, and what they hold: nothing, once all requests have ended. */
  async audits(): Promise<{ drift_nano: string; held_nano: string }[]> {
    return Promise.all(
      this.gateways.map(async (gateway) => (await gateway.get("/admin/ledger/audit", ADMIN)).json),
    );
  }

  async stop(): Promise<void> {
    for (const gateway of this.gateways) await gateway.stop();
    for (const folder of this.folders) folder.remove();
    await this.host.close();
  }

  private cpuUs(): number {
    return this.gateways.reduce((sum, { pid }) => sum + cpuUsOf(pid), 0);
  }
}

export interface FundedBalance {
  readonly key: string;
  readonly id: string;
  readonly owner: string;
}

export interface ChatRequest {
  readonly key: string;
  /** `x-gateway-run` */
  readonly run?: string;
}

export interface Answers {
  /** How often each status and code was answered. */
  readonly statuses: Readonly<Record<string, number>>;
  /** User and system time of the gateways, µs a request. */
  readonly cpuUs: number;
}

/** Each holds some $0.0006, and costs $0.00006. */
function written({ key, run }: ChatRequest): string {
  const body = JSON.stringify({
    model: "test/model",
    max_tokens: 60,
    messages: [{ role: "user", content: "Hello" }],
  });
  const named = run === undefined ? "" : `x-gateway-run: ${run}\r\n`;
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n${named}content-length: ${body.length}\r\n\r\n${body}`;
}

export async function inParallel(
  count: number,
  atOnce: number,
  work: (n: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}

const UNLIMITED = `
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
generation: { first_token_ms: 60000 }
`;
