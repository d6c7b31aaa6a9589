import { describe, expect, test } from "bun:test";
import { type Host, SURFACE_NAMES } from "../../src/catalog/catalog.ts";
import { json, silence, sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { chatText, type HostAnswer, messagesText, responsesText } from "../fakes/transcripts.ts";
import { type Behaving, openedPerTest } from "./serving.ts";
import { heldNano, read, requestBody, type TestGatewayOptions } from "./test-gateway.ts";

/** Streamed requests on hosts that cannot stream: all of the answer comes with its first token. */
const words = (count: number): string[] => Array.from({ length: count }, () => " word");
const ANSWERS: Record<(typeof SURFACE_NAMES)[number], HostAnswer> = {
  "chat.completions": chatText(words(60), { input: 10 }),
  responses: responsesText(words(60), { input: 10 }),
  messages: messagesText(words(60), { input: 10 }),
};
const CHAT = ANSWERS["chat.completions"];

const { serving: serve } = openedPerTest();

/** Hosts which cannot stream unless their row says otherwise. */
const serving = (behaving: readonly Behaving[], options?: TestGatewayOptions) =>
  serve(
    behaving.map(([behaviour, row]) => [behaviour, { quirks: { noStream: true }, ...row }]),
    options,
  );

const STREAMING: Partial<Host> = { quirks: {} };
const STREAMED = requestBody("chat.completions", { stream: true });
const triesOf = (receipt: { attempts: { host: string; outcome: string }[] }) =>
  receipt.attempts.map(({ host, outcome }) => `${host} ${outcome}`);

describe.each([...SURFACE_NAMES])("%s", (surface) => {
  test("costs what it costs unstreamed, and the receipt says that it was a stream", async () => {
    const { gateway } = await serving([[json(ANSWERS[surface].whole), { speaks: [surface] }]]);
    const [streamed, whole] = [
      await gateway.send(surface, requestBody(surface, { stream: true })),
      await gateway.send(surface, requestBody(surface)),
    ];
    await read(streamed);
    const expected = { state: "settled", cost_usd: (10 + 60 * 10) / 1e6, host: "h0" };
    expect(gateway.receipt(streamed)).toMatchObject({ ...expected, stream: true });
    expect(gateway.receipt(whole)).toMatchObject({ ...expected, stream: false });
    expect(gateway.receipt(streamed).tokens).toEqual(gateway.receipt(whole).tokens);
    expect(gateway.receipt(streamed).tokens).toMatchObject({ input: 10, output: 60, source: "host" });
    expect(await heldNano(gateway)).toBe(0 as never);
  });

  test("without usage, the gateway's own count is reported and charged", async () => {
    const { usage: _, ...whole } = ANSWERS[surface].whole as Record<string, unknown>;
    const { gateway } = await serving([[json(whole), { speaks: [surface] }]]);
    const answer = await gateway.send(surface, requestBody(surface, { stream: true }));
    await read(answer);
    const { tokens, cost_usd } = gateway.receipt(answer);
    expect(tokens.source).toBe("counted");
    expect(tokens.output).toBeGreaterThan(30);
    expect(cost_usd).toBeGreaterThan(0);
  });
});

describe("a host", () => {
  test("that streams is asked first, and one that cannot serves when it fails", async () => {
    const { gateway, hosts } = await serving([
      [json(CHAT.whole)],
      [json({ error: { message: "down" } }, 503), STREAMING],
    ]);
    const answer = await gateway.send("chat.completions", STREAMED);
    expect(await read(answer)).toEndWith("data: [DONE]\n\n");
    expect(triesOf(gateway.receipt(answer))).toEqual(["h1 refused", "h0 opened"]);
    expect(hosts.map((host) => host.requests[0]!.json().stream)).toEqual([false, true]);
  });

  test("gives its place back with its answer, however slowly the client takes that", async () => {
    const { gateway } = await serving([[json(CHAT.whole), { maxConcurrent: 1 }]]);
    const slow = await gateway.send("chat.completions", STREAMED);
    const taken = gate<boolean>();
    if (slow.kind !== "stream") throw new Error("no stream");
    const running = slow.run({ write: () => taken.passed, close() {} });
    const next = await gateway.send("chat.completions", STREAMED);
    expect(await read(next)).toEndWith("data: [DONE]\n\n");
    taken.open(true);
    await running;
    expect(gateway.receipt(slow)).toMatchObject({ state: "settled" });
  });

  test("is used again on the same connection", async () => {
    const { gateway, hosts } = await serving([[json(CHAT.whole)]]);
    for (let round = 0; round < 3; round++) await read(await gateway.send("chat.completions", STREAMED));
    expect(hosts[0]!.connections).toBe(1);
  });

  test("that has not answered within the time for first tokens has failed", async () => {
    const attempts = {
      firstTokenMs: 100,
      maxHosts: 3,
      hedgeMs: null,
      chunkGapMs: 120_000,
      totalMs: 1_200_000,
    };
    const { gateway } = await serving([[silence()]], { settings: { attempts } });
    const answer = await gateway.send("chat.completions", STREAMED);
    expect([answer.status, JSON.parse(await read(answer)).error.code]).toEqual([504, "request_timeout"]);
    expect(gateway.receipt(answer)).toMatchObject({ state: "failed", cost_usd: 0 });
  });
});

describe("a client that leaves", () => {
  test("while the host works: the host is left, and nothing is charged", async () => {
    const { gateway, hosts } = await serving([[silence()]]);
    const abort = new AbortController();
    const pending = gateway.send("chat.completions", STREAMED, abort.signal);
    const request = await hosts[0]!.arrived(0);
    abort.abort();
    await request.gone;
    expect(gateway.receipt(await pending)).toMatchObject({
      state: "cancelled",
      cost_usd: 0,
      error_code: null,
      stream: true,
    });
    expect(await heldNano(gateway)).toBe(0 as never);
  });

  test("before it has taken anything: it is charged as one that left a stream then", async () => {
    const { gateway } = await serving([[json(CHAT.whole)]]);
    const answer = await gateway.send("chat.completions", STREAMED);
    if (answer.kind !== "stream") throw new Error("no stream");
    await answer.run({ write: () => false, close() {} });
    expect(gateway.receipt(answer)).toMatchObject({ state: "cancelled", tokens: { input: 10, output: 0 } });
    expect(await heldNano(gateway)).toBe(0 as never);
  });
});

describe("money", () => {
  test("a balance that does not cover the worst case is refused, and nothing is sent", async () => {
    const { gateway, hosts } = await serving([[json(CHAT.whole)]], { creditUsd: 0.005 });
    const answer = await gateway.send(
      "chat.completions",
      requestBody("chat.completions", { stream: true, max_tokens: 1_000 }),
    );
    expect([answer.status, JSON.parse(await read(answer)).error.code]).toEqual([402, "insufficient_credit"]);
    expect(hosts[0]!.requests).toHaveLength(0);
  });

  test("answers without a ceiling are together no longer than the balance covers", async () => {
    // Each holds 1,000 tokens of output, one cent, and the 3,000 beyond are three: plenty for one, not for two.
    const { gateway, hosts } = await serving([[json(CHAT.whole)]], { creditUsd: 0.145 });
    const answers = await Promise.all([
      gateway.send("chat.completions", STREAMED),
      gateway.send("chat.completions", STREAMED),
    ]);
    for (const answer of answers) await read(answer);
    const ceilings = hosts[0]!.requests.map((request) => request.json().max_tokens);
    expect(ceilings.toSorted()).toEqual([1_000, undefined]);
    expect(await heldNano(gateway)).toBe(0 as never);
  });

  test("a host that streams gets no ceiling, and the one that replaces it gets what is held", async () => {
    const { gateway, hosts } = await serving([
      [json({ error: { message: "down" } }, 503), STREAMING],
      [json(CHAT.whole)],
    ]);
    const answer = await gateway.send("chat.completions", STREAMED);
    await read(answer);
    expect(hosts.map((host) => host.requests[0]!.json().max_tokens)).toEqual([undefined, 1_000]);
    // What a stream may come to need is held as it comes.
    expect(gateway.receipt(answer).held_usd).toBeLessThan(0.02);
  });

  test("a stream next to hosts that answer whole still grows its hold", async () => {
    const { events } = chatText(words(3_000), { input: 10 });
    const { gateway } = await serving([[sse(events), STREAMING], [json(CHAT.whole)]]);
    const answer = await gateway.send("chat.completions", STREAMED);
    expect(await read(answer)).toEndWith("data: [DONE]\n\n");
    expect(gateway.receipt(answer).cost_usd).toBeCloseTo((10 + 30_000) / 1e6, 9);
  });

  test("what an answer that nobody stopped costs beyond the hold is not charged", async () => {
    const long = chatText(words(6_000), { input: 10 });
    const { gateway } = await serving([[json(long.whole), STREAMING]], { creditUsd: 0.02 });
    const answer = await gateway.send("chat.completions", STREAMED);
    expect(await read(answer)).toEndWith("data: [DONE]\n\n");
    const { cost_usd, held_usd, tokens } = gateway.receipt(answer);
    expect(held_usd).toBeLessThanOrEqual(0.02);
    // As many tokens as are held, at their price; the others are the gateway's loss.
    expect(cost_usd).toBeCloseTo((tokens.input * 1 + tokens.output * 10) / 1e6, 9);
    expect(held_usd - cost_usd).toBeGreaterThanOrEqual(0);
    expect(held_usd - cost_usd).toBeLessThan(10 / 1e6);
    expect(gateway.ledger.lost + cost_usd * 1e9).toBeCloseTo(10 * 1_000 + 6_000 * 10_000, 3);
    expect(await heldNano(gateway)).toBe(0 as never);
  });

  test("a disk that refuses the settlement: the stream ends with an error in place of its end mark", async () => {
    const { gateway } = await serving([[json(CHAT.whole)]]);
    const answer = await gateway.send("chat.completions", STREAMED);
    gateway.disk.mood = "read-only";
    const text = await read(answer);
    expect(text).toContain(" word");
    expect(text).not.toContain("[DONE]");
    expect(text).toContain('"code":"internal_error"');
    // The client has one already.
    expect([...text.matchAll(/"finish_reason":"(\w+)"/g)].map(([, reason]) => reason)).toEqual(["stop"]);
  });
});
