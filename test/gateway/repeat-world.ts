import { expect, test } from "bun:test";
import OpenAI from "openai";
import { json, sse, status } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText, type HostAnswer, messagesText, responsesText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import type { Reply } from "../process/gateway.ts";
import { rounds } from "../rounds.ts";

/** A gateway whose requests are sent again with their `Idempotency-Key`, and the host behind it. */
export class RepeatWorld {
  arrivals = 0;
  /** Positions in a stream before which the host waits. */
  gates = new Map<number, Gate<void>>();
  /** Its first answers are these. */
  failures: number[] = [];
  breaks: { readonly after: number } | null = null;
  host!: FakeHost;
  gateway!: RepeatedGateway;

  async start(open: (config: string) => Promise<RepeatedGateway>): Promise<void> {
    this.host = await startFakeHost((request) => async (wire, seen) => {
      this.arrivals += 1;
      const failure = this.failures.shift();
      if (failure !== undefined) await this.gates.get(FAILURE)?.passed;
      if (failure !== undefined) return status(failure)(wire, seen);
      await this.gates.get(0)?.passed;
      const { events, whole } = answers[request.path]!;
      if (request.json().stream !== true) return json(whole)(wire, seen);
      const before = (n: number) => n > 0 && this.gates.get(n)?.passed;
      if (this.breaks === null) return sse(events, { before })(wire, seen);
      return sse(events.slice(0, this.breaks.after), { end: "cut" })(wire, seen);
    });
    this.gateway = await open(`
hosts:
  - { id: a, base_url: "${this.host.url}/v1", speaks: [chat.completions, responses, messages] }
  - { id: b, base_url: "${this.host.url}/v1", speaks: [chat.completions, responses, messages] }
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 0, output: 10 }
    routes: [{ host: a, model: host-model }, { host: b, model: host-model }]
defaults:
  accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }
setup: { accountless_keys_per_address_per_hour: 1000 }
generation: { first_token_ms: 60000 }
`);
  }

  reset(): void {
    this.open();
    this.arrivals = 0;
    this.gates = new Map();
    this.failures = [];
    this.breaks = null;
  }

  /** Nobody waits any longer. */
  open(): void {
    for (const one of this.gates.values()) one.open();
  }

  close(at: number): Gate<void> {
    const closed = gate();
    this.gates.set(at, closed);
    return closed;
  }

  post({ key }: Pick<Owner, "key">, name: string, { path, stream, more, signal }: Sent): Promise<Response> {
    const prompt = path.endsWith("/responses")
      ? { input: "Hello" }
      : { messages: [{ role: "user", content: "Hello" }] };
    return fetch(this.gateway.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "idempotency-key": name,
        // The kernel picks one of several workers for each connection.
        connection: "close",
      },
      body: JSON.stringify({ model: "test/model", max_tokens: 100, ...prompt, stream, ...more }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** Asks by OpenAI's package, which loses the connection so often once an answer is there: the text, and its tries. */
  async sendLosing(
    lost: number,
    { key }: Pick<Owner, "key">,
  ): Promise<{ text: string | null; tries: number }> {
    let tries = 0;
    const openai = new OpenAI({
      apiKey: key,
      baseURL: `${this.gateway.url}/v1`,
      maxRetries: Math.max(RETRIES, lost),
      async fetch(url: string | URL | Request, init?: RequestInit) {
        const headers = new Headers(init?.headers);
        headers.set("connection", "close");
        const response = await fetch(url, { ...init, headers });
        if (++tries > lost) return response;
        await response.body?.cancel();
        throw new TypeError("the connection was lost");
      },
    });
    const { choices } = await openai.chat.completions.create(
      { model: "test/model", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] },
      { headers: { "Idempotency-Key": crypto.randomUUID() } },
    );
    return { text: choices[0]!.message.content, tries };
  }

  receiptsOf = async ({ recovery_secret }: Owner) =>
    (await this.gateway.get("/v1/receipts", recovery_secret)).json.data;

  spentBy = async ({ key }: Owner) => {
    const { balance_usd, held_usd } = (await this.gateway.get("/v1/me", key)).json;
    return { spent: Math.round((1 - balance_usd) * 1e9) / 1e9, held: held_usd };
  };
}

/** As a process, or in this one. */
export interface RepeatedGateway {
  readonly url: string;
  get(path: string, bearer?: string): Promise<Reply>;
  owner(usd: number): Promise<Owner>;
}

export interface Owner {
  readonly id: string;
  readonly key: string;
  readonly recovery_secret: string;
  readonly balance_id: string;
}

const PIECES = Array.from({ length: 60 }, (_, n) => `word${n} `);
const answers: Record<string, HostAnswer> = {
  "/v1/chat/completions": chatText(PIECES, { input: 10, output: 60 }),
  "/v1/responses": responsesText(PIECES, { input: 10, output: 60 }),
  "/v1/messages": messagesText(PIECES, { input: 10, output: 60 }),
};
export const COST = 0.0006;
/** That the package makes by itself. */
const RETRIES = 2;
/** The gate before a failure. */
export const FAILURE = -1;

interface Sent {
  readonly path: string;
  readonly stream: boolean;
  readonly more?: object;
  readonly signal?: AbortSignal;
}

export const read = async (response: Response) => ({
  status: response.status,
  text: await response.text(),
  receipt: response.headers.get("x-gateway-receipt"),
  replayed: response.headers.get("idempotent-replayed"),
});
type Read = Awaited<ReturnType<typeof read>>;

const REPEATS = rounds(30, 100);
export const MIDDLE = 30;
type SendRequest = (signal?: AbortSignal) => Promise<Response>;

/** Sends all of them, so that the repeats arrive in some phase of the first. */
const PHASES: Record<string, (world: RepeatWorld, send: SendRequest, owner: Owner) => Promise<Read[]>> = {
  "at once, before anything is held": async (world, send) => {
    const held = world.close(0);
    const all = Array.from({ length: REPEATS }, async () => read(await send()));
    await until(() => world.arrivals > 0);
    held.open();
    return Promise.all(all);
  },
  "before the first token": async (world, send) => {
    const held = world.close(0);
    const first = send();
    await until(() => world.arrivals > 0);
    const repeats = Array.from({ length: REPEATS - 1 }, () => send());
    await world.gateway.get("/healthz");
    held.open();
    return Promise.all([first, ...repeats].map(async (one) => read(await one)));
  },
  "in the middle of the stream": async (world, send) => {
    const held = world.close(MIDDLE);
    const first = await send();
    const repeats = await Promise.all(Array.from({ length: REPEATS - 1 }, () => send()));
    held.open();
    return Promise.all([first, ...repeats].map(read));
  },
  "after its end": async (_world, send) => {
    const first = await read(await send());
    const repeats = await Promise.all(Array.from({ length: REPEATS - 1 }, async () => read(await send())));
    return [first, ...repeats];
  },
  "after its client left before the first token": async (world, send) => {
    const held = world.close(0);
    const leaves = new AbortController();
    const first = send(leaves.signal).catch(() => null);
    await until(() => world.arrivals > 0);
    leaves.abort();
    await first;
    const repeats = Array.from({ length: REPEATS }, () => send());
    await world.gateway.get("/healthz");
    held.open();
    return Promise.all(repeats.map(async (one) => read(await one)));
  },
  "after its client left in the middle": async (world, send) => {
    const held = world.close(MIDDLE);
    const leaves = new AbortController();
    const first = await send(leaves.signal);
    const reader = first.body!.getReader();
    await reader.read();
    leaves.abort();
    const repeats = await Promise.all(Array.from({ length: REPEATS }, () => send()));
    held.open();
    return Promise.all(repeats.map(read));
  },
  "after its client left, and after its end": async (world, send, owner) => {
    const leaves = new AbortController();
    const held = world.close(MIDDLE);
    await send(leaves.signal);
    leaves.abort();
    held.open();
    await until(async () => (await world.spentBy(owner)).spent > 0);
    return Promise.all(Array.from({ length: REPEATS }, async () => read(await send())));
  },
  "where its first host failed": async (world, send) => {
    world.failures = [500];
    const held = world.close(0);
    const all = Array.from({ length: REPEATS }, async () => read(await send()));
    await until(() => world.arrivals > 1);
    held.open();
    return Promise.all(all);
  },
};

const IN_THE_MIDDLE = Object.keys(PHASES).filter(
  (phase) => phase.includes("middle") || phase.includes("after its end"),
);
const STREAMED = Object.keys(PHASES).map((phase) => [phase, "/v1/chat/completions", true] as const);
const WHOLE = Object.keys(PHASES)
  .filter((phase) => !phase.includes("middle") && !phase.includes("left, and"))
  .map((phase) => [phase, "/v1/chat/completions", false] as const);
const OTHERS = ["/v1/responses", "/v1/messages"].flatMap((path) =>
  IN_THE_MIDDLE.map((phase) => [phase, path, true] as const),
);

export function testRepeats(world: RepeatWorld): void {
  test.each([...STREAMED, ...WHOLE, ...OTHERS])(
    "many repeats %s (%s, streamed: %p): one call, one receipt, one charge, the same bytes",
    async (phase, path, stream) => {
      const owner = await world.gateway.owner(1);
      const send: SendRequest = (signal) =>
        world.post(owner, "once", { path, stream, ...(signal === undefined ? {} : { signal }) });
      const replies = await PHASES[phase]!(world, send, owner);
      const [first] = replies;
      expect(first!.status).toBe(200);
      expect(first!.text).toContain("word59");
      expect(replies).toHaveLength(REPEATS);
      for (const { status, text, receipt } of replies)
        expect([status, text, receipt]).toEqual([200, first!.text, first!.receipt]);
      const leavers = phase.includes("left") ? 1 : 0;
      expect(replies.filter(({ replayed }) => replayed === "true")).toHaveLength(REPEATS - 1 + leavers);
      expect(world.arrivals).toBe(phase.includes("host failed") ? 2 : 1);
      // What one worker has settled, the others know once it has been shipped.
      await until(async () => (await world.receiptsOf(owner)).length > 0);
      expect(await world.receiptsOf(owner)).toMatchObject([
        { id: first!.receipt, state: "settled", cost_usd: COST },
      ]);
      await until(async () => (await world.spentBy(owner)).spent > 0);
      expect(await world.spentBy(owner)).toEqual({ spent: COST, held: 0 });
    },
    120_000,
  );
}
