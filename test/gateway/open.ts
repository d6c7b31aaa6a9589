import { Counting } from "../../src/generation/counting/counting.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import { type Gateway, openGateway } from "../../src/server/open-gateway.ts";
import { type Clock, systemClock } from "../../src/units/clock.ts";
import { untilNothingIsInUse } from "../fakes/nothing-in-use.ts";
import { answeredOf, Conformity } from "../http/conformity.ts";
import type { Reply } from "../process/gateway.ts";
import { ADMIN, Folder } from "../process/gateway.ts";

/** The whole gateway in this process, on a port and a data folder of its own. */
export async function open(
  config: string,
  env: Record<string, string> = {},
  clock: Clock = systemClock,
): Promise<OpenGateway> {
  return openIn(new Folder(config), env, clock);
}

export async function openIn(
  folder: Folder,
  env: Record<string, string> = {},
  clock: Clock = systemClock,
  paymentPace = PAYMENT_PACE,
): Promise<OpenGateway> {
  const logged: string[] = [];
  const requests: string[] = [];
  const gateway = await openGateway({
    env: { ...folder.env, ...env },
    cwd: folder.path,
    clock,
    log: (event, fields) => logged.push(JSON.stringify({ event, ...fields })),
    writeLog: async (text) => void requests.push(text),
    paymentPace,
    // What its process would end with: a test that waits for it here waits in vain.
    onLost: (error) => console.error(`the store has counted a gateway of this test out: ${error.message}`),
    ...(clock === systemClock ? { counting: SHARED } : {}),
  });
  return new OpenGateway(gateway, folder, logged, requests);
}

/** The gateways of a process count in the same threads, which take half a second to start, and memory. */
const SHARED = new (class extends Counting {
  override loadAhead() {}
  override stop() {}
})(systemClock);

export class OpenGateway {
  /** Why requests are still open when a test closes it; null: none is. */
  leavesOpen: string | null = null;
  private conformity: Promise<Conformity> | null = null;

  constructor(
    readonly gateway: Gateway,
    readonly folder: Folder,
    readonly logged: string[],
    private readonly requests: readonly string[] = [],
  ) {}

  /** The request log. */
  get lines(): string {
    return this.requests.join("");
  }

  get url(): string {
    return this.gateway.url;
  }

  async send(method: string, path: string, options: SendOptions = {}): Promise<Reply> {
    const { bearer, json, bytes, headers = {} } = options;
    const body = bytes ?? (json === undefined ? undefined : JSON.stringify(json));
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: body as BodyInit }),
    });
    const text = await response.text();
    const read = parse(text);
    this.conformity ??= Conformity.of(this.url);
    (await this.conformity).check(method, path, answeredOf(response, read));
    return { status: response.status, headers: response.headers, json: read, text };
  }

  /** A chat request. */
  chat(bearer: string, more: object = {}): Promise<Reply> {
    return this.send("POST", "/v1/chat/completions", {
      bearer,
      json: { model: "test/model", max_tokens: 100, messages: [{ role: "user", content: "Hello" }], ...more },
    });
  }

  admin(path: string, json?: object): Promise<Reply> {
    return this.send(json === undefined ? "GET" : "POST", path, {
      bearer: ADMIN,
      ...(json === undefined ? {} : { json }),
    });
  }

  /** For an answer, for callers who may read it. */
  receipt({ headers }: Pick<Reply, "headers">, bearer: string): Promise<Reply> {
    return this.send("GET", `/v1/receipts/${headers.get("x-gateway-receipt")}`, { bearer });
  }

  /** A key on a balance of its own, with credit and limits. */
  async key(usd: number, limits: object = {}): Promise<Made> {
    const made = (await this.send("POST", "/v1/keys")).json;
    if (usd > 0) await this.credit(made.balance_id, usd);
    if (Object.keys(limits).length === 0) return made;
    const patched = await this.send("PATCH", `/v1/keys/${made.id}`, {
      bearer: made.recovery_secret,
      json: limits,
    });
    if (patched.status !== 200) throw new Error(`PATCH answered ${patched.status}: ${patched.text}`);
    return made;
  }

  async credit(balance: string, usd: number): Promise<void> {
    const credit = { balance_id: balance, amount_usd: usd, idempotency_key: crypto.randomUUID() };
    const { status, text } = await this.admin("/admin/credits", credit);
    if (status !== 200) throw new Error(`POST /admin/credits answered ${status}: ${text}`);
  }

  async close(): Promise<void> {
    try {
      if (this.leavesOpen === null) await untilNothingIsInUse(() => this.gateway.inUse());
    } finally {
      await this.gateway.stop();
      this.folder.remove();
    }
    await untilNothingIsInUse(() => this.gateway.inUse());
  }
}

export interface SendOptions {
  readonly bearer?: string;
  readonly json?: unknown;
  readonly bytes?: Uint8Array | string;
  readonly headers?: Record<string, string>;
}

export interface Made {
  readonly id: string;
  readonly key: string;
  readonly prefix: string;
  readonly recovery_secret: string;
  readonly recovery_url: string;
  readonly balance_id: string;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
