import { json, sse } from "../../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN } from "../gateway.ts";
import { RawClient } from "../raw-client.ts";

/** Answers by what the prompt says: pieces, and the pause between two. */
const ANSWERS = {
  short: { pieces: 3, pauseMs: 20 },
  long: { pieces: 60, pauseMs: 50 },
  endless: { pieces: 3_000, pauseMs: 10 },
} as const;
type Answer = keyof typeof ANSWERS;

export const startHost = (): Promise<FakeHost> =>
  startFakeHost((request) => {
    const { stream, messages } = request.json();
    const { pieces, pauseMs } = ANSWERS[messages[0].content as Answer];
    const { events, whole } = chatText(Array(pieces).fill(" word"), { input: 10 });
    if (stream === true) return sse(events, { before: () => Bun.sleep(pauseMs) });
    return async (wire, seen) => {
      await Bun.sleep(pauseMs);
      await json(whole)(wire, seen);
    };
  });

export const bodyFor = (answer: Answer, stream: boolean) => ({
  model: "test/model",
  max_tokens: answer === "short" ? 10 : 3_000,
  stream,
  messages: [{ role: "user", content: answer }],
});

/** Nano-dollars, at the prices of `simpleConfig`. */
export const costOf = (pieces: number): number => 10 * 1_000 + pieces * 10_000;

const CREDIT_NANO = 1_000_000;

export interface Owner {
  readonly id: string;
  readonly key: string;
  readonly balance_id: string;
  readonly recovery_secret: string;
}

/**
 * Clients and an operator that go on while gateways are replaced. Where nobody listens, or a connection closes before
 * anything of an answer has come, they connect again; anything else that is not a whole answer is an error. The books say
 * whether a request was carried out twice.
 */
export class Load {
  served = 0;
  reconnects = 0;
  readonly errors: string[] = [];
  /** What the answers that arrived cost. */
  spentNano = 0;
  creditedNano = 0;
  private readonly name = crypto.randomUUID();
  private stopped = false;
  private readonly all: Promise<void>[];

  constructor(
    private readonly url: () => string,
    private readonly owner: Owner,
    clients: number,
  ) {
    const kinds = [
      ["short", true],
      ["short", false],
      ["long", true],
    ] as const;
    this.all = Array.from({ length: clients }, (_, n) => {
      const [answer, stream] = kinds[n % kinds.length]!;
      return this.client(answer, stream);
    });
    this.all.push(this.operator());
  }

  /** Resolves once so many more requests were answered. */
  more(answers: number): Promise<void> {
    const enough = this.served + answers;
    return until(() => this.served >= enough || this.errors.length > 0);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.all);
  }

  private async client(answer: Answer, stream: boolean): Promise<void> {
    let connection: RawClient | null = null;
    const cost = costOf(ANSWERS[answer].pieces);
    while (!this.stopped) {
      try {
        connection ??= await RawClient.connect(this.url());
        const { status, closes, body } = await connection.post(this.owner.key, bodyFor(answer, stream));
        if (status !== 200 || (stream && !body.includes("[DONE]"))) this.errors.push(`${status} ${body}`);
        this.served++;
        this.spentNano += cost;
        if (closes) connection = null;
      } catch (error) {
        connection = null;
        await this.connectAgain(error);
      }
    }
  }

  /** Gives credit, and changes and shows the key. */
  private async operator(): Promise<void> {
    const { id, balance_id, key } = this.owner;
    for (let n = 0; !this.stopped; n++) {
      const credit = { balance_id, amount_usd: CREDIT_NANO / 1e9, idempotency_key: `${this.name} ${n}` };
      await this.send("POST", "/admin/credits", ADMIN, credit);
      this.creditedNano += CREDIT_NANO;
      await this.send("PATCH", `/admin/keys/${id}`, ADMIN, { daily_limit_usd: 1_000 + (n % 2) });
      await this.send("GET", "/v1/me", key);
      await Bun.sleep(50);
    }
  }

  /** Repeats it until it is answered. */
  private async send(method: string, path: string, bearer: string, body?: object): Promise<void> {
    for (;;) {
      try {
        const response = await fetch(this.url() + path, {
          method,
          keepalive: false,
          headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        const text = await response.text();
        if (!response.ok) this.errors.push(`${method} ${path}: ${response.status} ${text}`);
        return;
      } catch (error) {
        await this.connectAgain(error);
      }
    }
  }

  private async connectAgain(error: unknown): Promise<void> {
    const message = String(error);
    if (
      /closed after ""|ECONNREFUSED|ECONNRESET|ConnectionRefused|Unable to connect|Failed to connect/.test(
        message,
      )
    )
      this.reconnects++;
    else this.errors.push(message);
    await Bun.sleep(RECONNECT_MS);
  }
}

const RECONNECT_MS = 50;
