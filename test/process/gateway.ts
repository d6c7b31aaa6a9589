import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanEnvironment } from "../environment.ts";
import { product } from "./product.ts";

/**
 * The gateway as its operator runs it: a process of its own, on a data folder of its own, spoken to over its
 * socket.
 */
export class GatewayProcess {
  private constructor(
    private readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">,
    readonly url: string,
    readonly folder: Folder,
    private readonly errors: Promise<string>,
  ) {}

  static async start(
    folder: Folder,
    env: Record<string, string> = {},
    /** What Bun runs, instead of the product: one of its sources, as a checkout starts it. */
    command: readonly string[] | null = null,
    /** A command that runs others where it is to be, such as in a network namespace. */
    inside: readonly string[] = [],
  ): Promise<GatewayProcess> {
    const run = command === null ? [await product(), "start"] : [process.execPath, ...command];
    const child = Bun.spawn([...inside, ...run], {
      cwd: join(import.meta.dir, "../.."),
      env: { ...cleanEnvironment(), ...folder.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const errors = new Response(child.stderr).text();
    const url = await readyLine(child.stdout);
    if (url === null) throw new Error(`the gateway did not start: ${await errors}`);
    return new GatewayProcess(child, url, folder, errors);
  }

  get pid(): number {
    return this.child.pid;
  }

  /** Its exit code, once it has ended. */
  get exited(): Promise<number> {
    return this.child.exited;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Resolves with its exit code when it ends by itself. */
  ended(): Promise<number> {
    return this.child.exited;
  }

  /** Ends it as the worst moment would. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.child.exited;
  }

  /** Asks it to end; returns its exit code. */
  async stop(): Promise<number> {
    this.child.kill("SIGTERM");
    return this.child.exited;
  }

  stderr(): Promise<string> {
    return this.errors;
  }

  async post(path: string, body: unknown, bearer: string | null = null): Promise<Reply> {
    return this.send("POST", path, body, bearer);
  }

  async get(path: string, bearer: string | null = null): Promise<Reply> {
    return this.send("GET", path, undefined, bearer);
  }

  /** A key on a balance of its own, with so much credit. */
  async keyWith(
    usd: number,
  ): Promise<{ id: string; key: string; recovery_secret: string; balance_id: string }> {
    const made = await this.post("/v1/keys", undefined);
    if (made.status !== 201)
      throw new Error(`POST /v1/keys answered ${made.status}: ${JSON.stringify(made.json)}`);
    if (usd > 0) await this.credit(made.json.balance_id, usd);
    return made.json;
  }

  async credit(balance: string, usd: number): Promise<void> {
    const idempotency_key = crypto.randomUUID();
    const credit = await this.post(
      "/admin/credits",
      { balance_id: balance, amount_usd: usd, idempotency_key },
      ADMIN,
    );
    if (credit.status !== 200)
      throw new Error(`POST /admin/credits answered ${credit.status}: ${JSON.stringify(credit.json)}`);
  }

  audit(): Promise<Reply> {
    return this.get("/admin/ledger/audit", ADMIN);
  }

  async send(method: string, path: string, body: unknown, bearer: string | null = null): Promise<Reply> {
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, json: parse(text), text };
  }
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever the server said
  readonly json: any;
  readonly text: string;
}

export const ADMIN = "test-admin-token";

/** A data folder and a configuration file that end with the test. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "gateway-"));
  readonly env: Record<string, string>;

  constructor(config: string) {
    const file = join(this.path, "gateway.yaml");
    writeFileSync(file, config);
    this.env = {
      GATEWAY_CONFIG: file,
      GATEWAY_DATA: join(this.path, "data"),
      GATEWAY_ADMIN_TOKEN: ADMIN,
      HOST: "127.0.0.1",
      PORT: "0",
    };
  }

  configure(config: string): void {
    writeFileSync(join(this.path, "gateway.yaml"), config);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** One model on the given hosts, priced so that amounts are easy to read: $1 and $10 per million tokens. */
export const simpleConfig = (ports: readonly number[], extra = ""): string => `
hosts:
${ports.map((port, index) => `  - { id: h${index}, base_url: "http://127.0.0.1:${port}/v1", speaks: [chat.completions] }`).join("\n")}
models:
  - id: test/model
    name: Test
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10, cache_read: 1, cache_write: 1 }
    routes:
${ports.map((_, index) => `      - { host: h${index}, model: bench-model }`).join("\n")}
setup: { accountless_keys_per_address_per_hour: 100000 }
${extra}
`;

export async function readyLine(stdout: ReadableStream<Uint8Array>): Promise<string | null> {
  let text = "";
  const reader = stdout.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return null;
    text += new TextDecoder().decode(value);
    const match = /listening on (http:\/\/\S+)/.exec(text);
    if (match === null) continue;
    // Whatever else it prints must not fill the pipe.
    void (async () => {
      while (!(await reader.read()).done);
    })();
    return match[1]!;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
