import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { json, sse, status } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText, type HostAnswer, messagesText, responsesText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, open } from "./open.ts";

/** Requests that are sent again with their `Idempotency-Key`, over real sockets. */
let host: FakeHost;
let gateway: OpenGateway;
let arrivals = 0;
/** Of the events of a stream, those before which the host waits. */
let gates: Map<number, Gate<void>>;
/** The gate before a failure. */
const FAILURE = -1;
/** Its first answers are these. */
let failures: number[] = [];
let breaks: { readonly after: number } | null = null;

const PIECES = Array.from({ length: 60 }, (_, n) => `word${n} `);
const answers: Record<string, HostAnswer> = {
  "/v1/chat/completions": chatText(PIECES, { input: 10, output: 60 }),
  "/v1/responses": responsesText(PIECES, { input: 10, output: 60 }),
  "/v1/messages": messagesText(PIECES, { input: 10, output: 60 }),
};
const COST = 0.0006;

beforeAll(async () => {
  host = await startFakeHost((request) => async (wire, seen) => {
    arrivals += 1;
    const failure = failures.shift();
    if (failure !== undefined) await gates.get(FAILURE)?.passed;
    if (failure !== undefined) return status(failure)(wire, seen);
    await gates.get(0)?.passed;
    const { events, whole } = answers[request.path]!;
    if (request.json().stream !== true) return json(whole)(wire, seen);
    if (breaks === null) return sse(events, { before: (n) => n > 0 && gates.get(n)?.passed })(wire, seen);
    return sse(events.slice(0, breaks.after), { end: "cut" })(wire, seen);
  });
  gateway = await open(`
hosts:
  - { id: a, base_url: "${host.url}/v1", speaks: [chat.completions, responses, messages] }
  - { id: b, base_url: "${host.url}/v1", speaks: [chat.completions, responses, messages] }
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 0, output: 10 }
    routes: [{ host: a, model: host-model }, { host: b, model: host-model }]
defaults:
  accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }
setup: { accountless_keys_per_address_per_hour: 1000 }
`);
});
afterAll(async () => {
  for (const one of gates.values()) one.open();
  await gateway.close();
  await host.close();
});
beforeEach(() => {
  arrivals = 0;
  gates = new Map();
  failures = [];
  breaks = null;
});

interface Sent {
  readonly path: string;
  readonly stream: boolean;
  readonly more?: object;
  readonly signal?: AbortSignal;
}

function post(
  { key }: Pick<Made, "key">,
  name: string,
  { path, stream, more, signal }: Sent,
): Promise<Response> {
  const prompt = path.endsWith("/responses")
    ? { input: "Hello" }
    : { messages: [{ role: "user", content: "Hello" }] };
  return fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "idempotency-key": name },
    body: JSON.stringify({ model: "test/model", max_tokens: 100, ...prompt, stream, ...more }),
    ...(signal === undefined ? {} : { signal }),
  });
}

const read = async (response: Response) => ({
  status: response.status,
  text: await response.text(),
  receipt: response.headers.get("x-gateway-receipt"),
  replayed: response.headers.get("idempotent-replayed"),
});
type Read = Awaited<ReturnType<typeof read>>;

const receiptsOf = async ({ recovery_secret: bearer }: Made) =>
  (await gateway.send("GET", "/v1/receipts", { bearer })).json.data;
const spentBy = async ({ key }: Made) => {
  const { balance_usd, held_usd } = (await gateway.send("GET", "/v1/me", { bearer: key })).json;
  return { spent: Math.round((1 - balance_usd) * 1e9) / 1e9, held: held_usd };
};

const REPEATS = 100;
const MIDDLE = 30;
type Ask = (signal?: AbortSignal) => Promise<Response>;

/** Sends all of them, so that the repeats arrive in some phase of the first. */
const PHASES: Record<string, (ask: Ask, owner: Made) => Promise<Read[]>> = {
  "at once, before anything is held": async (ask) => {
    gates.set(0, gate());
    const all = Array.from({ length: REPEATS }, async () => read(await ask()));
    await until(() => arrivals > 0);
    gates.get(0)!.open();
    return Promise.all(all);
  },
  "before the first token": async (ask) => {
    gates.set(0, gate());
    const first = ask();
    await until(() => arrivals > 0);
    const repeats = Array.from({ length: REPEATS - 1 }, () => ask());
    await gateway.send("GET", "/healthz");
    gates.get(0)!.open();
    return Promise.all([first, ...repeats].map(async (one) => read(await one)));
  },
  "in the middle of the stream": async (ask) => {
    gates.set(MIDDLE, gate());
    const first = await ask();
    const repeats = await Promise.all(Array.from({ length: REPEATS - 1 }, () => ask()));
    gates.get(MIDDLE)!.open();
    return Promise.all([first, ...repeats].map(read));
  },
  "after its end": async (ask) => {
    const first = await read(await ask());
    const repeats = await Promise.all(Array.from({ length: REPEATS - 1 }, async () => read(await ask())));
    return [first, ...repeats];
  },
  "after its client left before the first token": async (ask) => {
    gates.set(0, gate());
    const leaves = new AbortController();
    const first = ask(leaves.signal).catch(() => null);
    await until(() => arrivals > 0);
    leaves.abort();
    await first;
    const repeats = Array.from({ length: REPEATS }, () => ask());
    await gateway.send("GET", "/healthz");
    gates.get(0)!.open();
    return Promise.all(repeats.map(async (one) => read(await one)));
  },
  "after its client left in the middle": async (ask) => {
    gates.set(MIDDLE, gate());
    const leaves = new AbortController();
    const first = await ask(leaves.signal);
    const reader = first.body!.getReader();
    await reader.read();
    leaves.abort();
    const repeats = await Promise.all(Array.from({ length: REPEATS }, () => ask()));
    gates.get(MIDDLE)!.open();
    return Promise.all(repeats.map(read));
  },
  "after its client left, and after its end": async (ask, owner) => {
    const leaves = new AbortController();
    gates.set(MIDDLE, gate());
    await ask(leaves.signal);
    leaves.abort();
    gates.get(MIDDLE)!.open();
    await until(async () => (await spentBy(owner)).spent > 0);
    return Promise.all(Array.from({ length: REPEATS }, async () => read(await ask())));
  },
  "where its first host failed": async (ask) => {
    failures = [500];
    gates.set(0, gate());
    const all = Array.from({ length: REPEATS }, async () => read(await ask()));
    await until(() => arrivals > 1);
    gates.get(0)!.open();
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

test.each([...STREAMED, ...WHOLE, ...OTHERS])(
  "a hundred repeats %s (%s, streamed: %p): one call, one receipt, one charge, the same bytes",
  async (phase, path, stream) => {
    const owner = await gateway.key(1);
    const ask: Ask = (signal) =>
      post(owner, "once", { path, stream, ...(signal === undefined ? {} : { signal }) });
    const replies = await PHASES[phase]!(ask, owner);
    const [first] = replies;
    expect(first!.status).toBe(200);
    expect(first!.text).toContain("word59");
    expect(replies).toHaveLength(REPEATS);
    for (const { status, text, receipt } of replies)
      expect([status, text, receipt]).toEqual([200, first!.text, first!.receipt]);
    const leavers = phase.includes("left") ? 1 : 0;
    expect(replies.filter(({ replayed }) => replayed === "true")).toHaveLength(REPEATS - 1 + leavers);
    expect(arrivals).toBe(phase.includes("host failed") ? 2 : 1);
    expect(await receiptsOf(owner)).toMatchObject([{ id: first!.receipt, state: "settled", cost_usd: COST }]);
    expect(await spentBy(owner)).toEqual({ spent: COST, held: 0 });
  },
  60_000,
);

describe("a key", () => {
  const CHAT = { path: "/v1/chat/completions", stream: false };

  test("with another body is refused, whatever has become of the first", async () => {
    const owner = await gateway.key(1);
    gates.set(0, gate());
    const first = post(owner, "k", CHAT);
    await until(() => arrivals > 0);
    for (const more of [{ max_tokens: 99 }, { stream: true }]) {
      const refusal = await (await post(owner, "k", { ...CHAT, more })).json();
      expect(refusal).toMatchObject({ error: { code: "invalid_request", param: "Idempotency-Key" } });
    }
    gates.get(0)!.open();
    expect((await first).status).toBe(200);
    expect((await post(owner, "k", { ...CHAT, more: { n: 1 } })).status).toBe(400);
    expect((await post(owner, "k", { ...CHAT, path: "/v1/messages" })).status).toBe(400);
    expect(arrivals).toBe(1);
  });

  test("is its balance's: others have their own, and its other keys share it", async () => {
    const [one, other] = [await gateway.key(1), await gateway.key(1)];
    const { key } = (await gateway.send("POST", "/v1/keys", { bearer: one.recovery_secret, json: {} })).json;
    const replies = [
      await post(one, "k", CHAT),
      await post(other, "k", CHAT),
      await post({ key }, "k", CHAT),
    ];
    expect(replies.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, null, "true"]);
    expect(arrivals).toBe(2);
  });

  test("is of no use to whoever may not ask any more", async () => {
    const owner = await gateway.key(1);
    await post(owner, "k", CHAT);
    await gateway.send("DELETE", `/v1/keys/${owner.id}`, { bearer: owner.recovery_secret });
    expect((await post(owner, "k", CHAT)).status).toBe(401);
  });

  test.each(["", " ", "x".repeat(256), "schl\u00fcssel"])(
    "`%s` is refused where it is none",
    async (name) => {
      const owner = await gateway.key(1);
      const reply = await gateway.send("POST", CHAT.path, {
        bearer: owner.key,
        headers: { "idempotency-key": name },
        json: { model: "test/model", messages: [{ role: "user", content: "Hello" }] },
      });
      expect([reply.status, reply.json.error?.param]).toEqual([400, "Idempotency-Key"]);
    },
  );
});

describe("what is not an answer", () => {
  const CHAT = { path: "/v1/chat/completions", stream: false };

  test("is told to those that wait for it, and the next request is a new one", async () => {
    const owner = await gateway.key(1);
    failures = [400];
    gates.set(FAILURE, gate());
    const first = post(owner, "k", CHAT);
    await until(() => arrivals > 0);
    const second = post(owner, "k", CHAT);
    await gateway.send("GET", "/healthz");
    gates.get(FAILURE)!.open();
    const failed = await Promise.all([first, second]);
    expect(failed.map(({ status }) => status)).toEqual([400, 400]);
    expect(new Set(failed.map(({ headers }) => headers.get("x-gateway-receipt"))).size).toBe(1);
    expect(arrivals).toBe(1);
    expect((await post(owner, "k", CHAT)).status).toBe(200);
  });

  test("is forgotten where credit was short", async () => {
    const owner = await gateway.key(0);
    expect((await post(owner, "k", CHAT)).status).toBe(402);
    await gateway.credit(owner.balance_id, 1);
    expect((await post(owner, "k", CHAT)).status).toBe(200);
  });

  test("is forgotten where a stream broke off and was not charged; one that was charged is not sent again", async () => {
    const owner = await gateway.key(1);
    breaks = { after: 20 };
    const written = await read(await post(owner, "short", { ...CHAT, stream: true }));
    expect(written.text).toContain("upstream_error");
    breaks = { after: 56 };
    const charged = await read(await post(owner, "long", { ...CHAT, stream: true }));
    expect(charged.text).toContain("upstream_error");
    breaks = null;
    expect((await read(await post(owner, "short", { ...CHAT, stream: true }))).text).toContain("[DONE]");
    expect((await read(await post(owner, "long", { ...CHAT, stream: true }))).text).toBe(charged.text);
    expect(arrivals).toBe(3);
  });
});

test("OpenAI's package, whose connection breaks once the answer is there, repeats by itself and pays once", async () => {
  const owner = await gateway.key(1);
  let tries = 0;
  const openai = new OpenAI({
    apiKey: owner.key,
    baseURL: `${gateway.url}/v1`,
    async fetch(url: string | URL | Request, init?: RequestInit) {
      const response = await fetch(url, init);
      if (++tries > 1) return response;
      await response.body?.cancel();
      throw new TypeError("the connection was lost");
    },
  });
  const { choices } = await openai.chat.completions.create(
    { model: "test/model", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] },
    { headers: { "Idempotency-Key": crypto.randomUUID() } },
  );
  expect(choices[0]!.message.content).toContain("word59");
  expect([tries, arrivals]).toEqual([2, 1]);
  expect(await receiptsOf(owner)).toHaveLength(1);
});
