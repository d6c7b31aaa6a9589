import { freePort } from "../../../bench/processes.ts";
import { until } from "../../fakes/until.ts";
import { Balancer } from "../balancer.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../gateway.ts";
import { bodyFor, costOf, Load, type Owner, startHost } from "./load.ts";

/** One release, as it is started. */
export interface Version {
  readonly name: string;
  /** What Bun runs; null: this checkout's executable. */
  readonly command: readonly string[] | null;
}

/** How the gateways keep their books, and how many there are. */
export const KINDS = {
  sqlite: { nodes: 1, settings: "" },
  postgres: { nodes: 2, settings: "shutdown_delay_ms: 1000\n" },
  workers: { nodes: 1, settings: "workers: 2\n" },
  diskless: { nodes: 2, settings: "shutdown_delay_ms: 1000\njournal: postgres\n" },
} as const;
export type Kind = keyof typeof KINDS;

export const isFleet = (kind: Kind): boolean => KINDS[kind].nodes > 1;

export interface Upgraded {
  readonly served: number;
  readonly reconnects: number;
  /** What clients and the operator saw beyond reconnects. */
  readonly errors: readonly string[];
  /** What the books should say and do not. */
  readonly wrong: readonly string[];
  /** Streams of killed gateways that the other version ended. */
  readonly recovered: number;
}

/**
 * Older → newer → older, with clients that go on. On PostgreSQL nodes are replaced one at a time, and both versions serve
 * next to each other for a while. Then a node of each version is killed in the middle of streams, and the other version
 * reads what it left: the newer one on tables that it has changed before. The books are audited after each step.
 */
export async function upgrade(
  kind: Kind,
  older: Version,
  newer: Version,
  { store, clients, answers }: { store: string | null; clients: number; answers: number },
): Promise<Upgraded> {
  const host = await startHost();
  const trial = new Trial(kind, store, host.port, clients, answers);
  try {
    await trial.start(older);
    for (const version of [newer, older]) await trial.replaceAll(version);
    for (const version of [newer, older]) await trial.crash(version);
    await trial.stop();
    return trial.result();
  } finally {
    await trial.end();
    await host.close();
  }
}

class Trial {
  private readonly folders: Folder[];
  private gateways: GatewayProcess[] = [];
  private balancer: Balancer | null = null;
  private owner!: Owner;
  private served = 0;
  private reconnects = 0;
  private recovered = 0;
  private spentNano = 0;
  private creditedNano = 0;
  private readonly errors: string[] = [];
  private readonly wrong: string[] = [];

  constructor(
    kind: Kind,
    store: string | null,
    hostPort: number,
    private readonly clients: number,
    private readonly answers: number,
  ) {
    const { nodes, settings } = KINDS[kind];
    const config = simpleConfig(
      [hostPort],
      `${store === null ? "" : `store: ${store}\n`}${settings}${UNLIMITED}`,
    );
    this.folders = Array.from({ length: nodes }, () => new Folder(config));
  }

  async start(version: Version): Promise<void> {
    for (const folder of this.folders) this.gateways.push(await started(folder, version, freePort()));
    if (this.gateways.length > 1) {
      this.balancer = await Balancer.start(this.gateways.map(({ url }) => url));
      await until(() => this.balancer!.serving.length === this.gateways.length);
    }
    const [first] = this.gateways;
    this.owner = await first!.keyWith(CREDIT_USD);
    this.creditedNano = CREDIT_USD * 1e9;
    // Counted on everything that a request can be counted on.
    const { id, recovery_secret } = this.owner;
    const budget = await first!.post(
      "/v1/budgets",
      { name: "all", cap_usd: CREDIT_USD, window: "total" },
      recovery_secret,
    );
    const limits = { budget: "all", daily_limit_usd: CREDIT_USD, monthly_limit_usd: CREDIT_USD };
    const key = await first!.send("PATCH", `/v1/keys/${id}`, limits, recovery_secret);
    if (budget.status !== 201 || key.status !== 200) throw new Error(budget.text + key.text);
  }

  /** The first one, then the other, so that the books are audited with both versions at work. */
  async replaceAll(version: Version): Promise<void> {
    const [first, other] = this.gateways.keys();
    await this.replace(first!, version);
    if (other === undefined) return;
    await this.seeEachOther();
    await this.replace(other, version);
  }

  private async replace(node: number, version: Version): Promise<void> {
    const load = new Load(() => this.url, this.owner, this.clients);
    await load.more(this.answers);
    const { url } = this.gateways[node]!;
    const code = await this.gateways[node]!.stop();
    if (code !== 0) this.errors.push(`a gateway that was stopped ended with ${code}`);
    this.gateways[node] = await started(this.folders[node]!, version, Number(new URL(url).port));
    const { balancer } = this;
    if (balancer !== null) await until(() => balancer.serving.length === this.gateways.length);
    await load.more(this.answers);
    await load.stop();
    this.served += load.served;
    this.reconnects += load.reconnects;
    this.spentNano += load.spentNano;
    this.creditedNano += load.creditedNano;
    this.errors.push(...load.errors);
    await this.audit(`with ${node} as ${version.name}`);
  }

  /** A key of one version works at the other, and ends there with its next request. */
  private async seeEachOther(): Promise<void> {
    for (const [here, there] of [this.gateways, this.gateways.toReversed()]) {
      const { key, id } = await here!.keyWith(1);
      const request = bodyFor("short", false);
      const answer = await there!.post("/v1/chat/completions", request, key);
      if (answer.status !== 200) this.errors.push(`a key of the other version: ${answer.text}`);
      const revoked = await here!.post(`/admin/keys/${id}/revoke`, undefined, ADMIN);
      if (revoked.status !== 200) this.errors.push(`revoking: ${revoked.text}`);
      const refused = await there!.post("/v1/chat/completions", request, key);
      if (refused.status !== 401) this.errors.push(`a key that was revoked there: ${refused.text}`);
    }
  }

  /** Kills the first gateway in the middle of streams, and starts the version in its place; the others' streams go on. */
  async crash(version: Version): Promise<void> {
    const [first, ...others] = this.gateways;
    const cut = await Promise.all([1, 2, 3].map(() => Stream.open(first!, this.owner.key, "endless")));
    const whole = await Promise.all(others.map((other) => Stream.open(other, this.owner.key, "long")));
    await until(() => cut.every(({ pieces }) => pieces > CRASH_PIECES));
    await first!.kill();
    await Promise.all(cut.map(({ ended }) => ended));
    this.gateways[0] = await started(this.folders[0]!, version, Number(new URL(first!.url).port));
    for (const stream of whole) {
      await stream.ended;
      if (!stream.isWhole) this.errors.push(`a stream next to a killed gateway broke after ${stream.pieces}`);
      this.spentNano += costOf(stream.pieces);
    }
    for (const stream of cut) await this.judge(stream, version);
    await this.audit(`after a crash, as ${version.name}`);
  }

  /** What was delivered by a killed gateway is billed by the other version, and no more. */
  private async judge({ receipt, pieces }: Stream, { name }: Version): Promise<void> {
    const read = () => this.gateways[0]!.get(`/v1/receipts/${receipt}`, this.owner.key);
    // Where a node keeps nothing on disk, the others end its streams once its lease is over.
    await until(async () => (await read()).status === 200);
    const { state, cost_usd } = (await read()).json;
    const nano = Math.round(cost_usd * 1e9);
    if (state !== "recovered") this.wrong.push(`${receipt} is ${state} at ${name}`);
    else this.recovered++;
    if (nano > costOf(pieces)) this.wrong.push(`${receipt}: ${nano} for ${pieces} pieces at ${name}`);
    this.spentNano += nano;
  }

  /** At every gateway. */
  private async audit(when: string): Promise<void> {
    for (const gateway of this.gateways) {
      const { json } = await gateway.audit();
      if (json.ok !== true || json.drift_nano !== "0") this.wrong.push(`${when}: ${JSON.stringify(json)}`);
      const { balance_id, recovery_secret } = this.owner;
      const { credited_usd, balance_usd } = (await gateway.get(`/admin/balances/${balance_id}`, ADMIN)).json;
      const credited = Math.round(credited_usd * 1e9);
      const spent = credited - Math.round(balance_usd * 1e9);
      const [budget] = (await gateway.get("/v1/budgets", recovery_secret)).json.data;
      const used = Math.round(budget.used_usd * 1e9);
      if (credited !== this.creditedNano || spent !== this.spentNano || used !== this.spentNano)
        this.wrong.push(
          `${when}: credited ${credited} of ${this.creditedNano}, spent ${spent} and used ${used} of ${this.spentNano}`,
        );
    }
  }

  async stop(): Promise<void> {
    for (const gateway of this.gateways) {
      const code = await gateway.stop();
      if (code !== 0) this.errors.push(`a gateway that was stopped ended with ${code}`);
    }
  }

  result(): Upgraded {
    const { served, reconnects, errors, wrong, recovered } = this;
    return { served, reconnects, errors, wrong, recovered };
  }

  async end(): Promise<void> {
    this.balancer?.stop();
    for (const gateway of this.gateways) await gateway.kill();
    for (const folder of this.folders) folder.remove();
  }

  private get url(): string {
    return this.balancer?.url ?? this.gateways[0]!.url;
  }
}

const started = (folder: Folder, { command }: Version, port: number): Promise<GatewayProcess> =>
  GatewayProcess.start(folder, { PORT: String(port) }, command);

const CREDIT_USD = 100;
/** More than are written off. */
const CRASH_PIECES = 200;
const UNLIMITED =
  "defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }\n";

/** A stream of words, as its client gets it. */
class Stream {
  pieces = 0;
  isWhole = false;

  private constructor(
    readonly receipt: string,
    body: ReadableStream<Uint8Array>,
  ) {
    this.ended = this.read(body).catch(() => {});
  }

  /** Resolves when it ends or breaks. */
  readonly ended: Promise<void>;

  static async open(gateway: GatewayProcess, key: string, answer: "long" | "endless"): Promise<Stream> {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify(bodyFor(answer, true)),
    });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return new Stream(response.headers.get("x-gateway-receipt")!, response.body!);
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of body) {
      const events = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
      rest = events.pop()!;
      this.pieces += events.filter((event) => event.includes('"content":" word"')).length;
      this.isWhole ||= events.some((event) => event.includes("[DONE]"));
    }
  }
}
