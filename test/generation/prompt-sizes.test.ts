import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../src/catalog/catalog.ts";
import { PromptSizes } from "../../src/generation/prompt-sizes.ts";
import { PAID_MS_A_MINUTE } from "../../src/ledger/limits/count-allowance.ts";
import { conversationOf } from "../../src/routing/conversation.ts";
import { NO_BYTES } from "../../src/surfaces/json/bytes.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { json, sse, status } from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import { type FakeRequest, hostRow } from "../fakes/host.ts";
import { chatText, messagesText, responsesText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { openedPerTest } from "./serving.ts";
import { COUNTED_MS_PER_BYTE, read, type TestGateway, type TestGatewayOptions } from "./test-gateway.ts";

/**
 * Each turn of an agent repeats its whole conversation. Counting it takes milliseconds of a thread, so it is counted
 * only where neither its bytes nor what its host last reported show that it fits its model's context.
 */
const { startHost, openGateway } = openedPerTest();

/** So many letters a token: four in code and prose, more where lines are indented far. Hosts' framing adds a little. */
const tokensAt = (letters: number) => (bytes: number) => Math.ceil(bytes / letters);
const tokensOf = tokensAt(4);
const ANSWERS = { "chat.completions": chatText, responses: responsesText, messages: messagesText };

/** A host that reports so many tokens for a prompt of so many bytes. */
const reporting =
  (surface: SurfaceName, stream: boolean, tokens: (bytes: number) => number) =>
  ({ body }: Pick<FakeRequest, "body">) => {
    const { whole, events } = ANSWERS[surface](["Done."], { input: tokens(body.length) });
    return stream ? sse(events) : json(whole);
  };

/** What a client sends at a turn: the turns before, each of so many bytes, and one message more. */
function turnOf(surface: SurfaceName, turn: number, bytes: number): object {
  const earlier = Array.from({ length: turn }, (_, n) => [
    { role: "user", content: `Turn ${n}: ${"read ".repeat(bytes / 10)}` },
    { role: "assistant", content: `Result ${n}: ${"line ".repeat(bytes / 10)}` },
  ]).flat();
  const all = [...earlier, { role: "user", content: "Go on." }];
  return requestOf(surface, surface === "responses" ? { input: all } : { messages: all });
}

/** The longest conversation of the table: 900 kB. */
const MAX_TURNS = 200;

const requestOf = (surface: SurfaceName, more: object) => ({
  model: "test/model",
  ...(surface === "messages" ? { max_tokens: 100 } : {}),
  ...more,
});

async function opened(
  script: Parameters<typeof startHost>[0],
  options: TestGatewayOptions,
  surface: SurfaceName,
) {
  const host = await startHost(script);
  const rich = { creditUsd: 1_000, countClock: new ManualClock() };
  return {
    host,
    gateway: await openGateway([hostRow(host, { speaks: [surface] })], { ...rich, ...options }),
  };
}

/** Its code and message; 200 where it was served. */
async function refusalOf(gateway: TestGateway, surface: SurfaceName, body: object): Promise<unknown[]> {
  const answer = await gateway.send(surface, body);
  const text = await read(answer);
  if (answer.status === 200) return [200, ""];
  const { error } = JSON.parse(text);
  return [error.code, error.message];
}

const CONVERSATIONS: [SurfaceName, boolean, number, number, number][] = [
  ["chat.completions", true, 4_500, 4, 128_000],
  ["chat.completions", true, 4_410, 7, 128_000],
  ["chat.completions", false, 450, 4, 12_800],
  ["responses", true, 450, 7, 12_800],
  ["messages", true, 450, 4, 12_800],
];
test.each(CONVERSATIONS)(
  "%s, streamed %p, turns of %d bytes with %d a token, context %d: a count in ten turns at most; the first that does not fit is refused with its number",
  async (surface, stream, bytes, letters, contextLength) => {
    const tokensOf = tokensAt(letters);
    const script = reporting(surface, stream, (length) => tokensOf(length) + 5);
    const options = { model: { contextLength }, promptTokens: tokensOf };
    const { host, gateway } = await opened(script, options, surface);
    const tokensAtTurn = (turn: number) =>
      tokensOf(JSON.stringify({ ...turnOf(surface, turn, bytes), stream }).length);
    for (let turn = 1; ; turn++) {
      expect(turn).toBeLessThanOrEqual(MAX_TURNS);
      const [code, message] = await refusalOf(gateway, surface, { ...turnOf(surface, turn, bytes), stream });
      if (code === 200) continue;
      const tokens = tokensAtTurn(turn);
      expect(tokens).toBeGreaterThan(contextLength);
      expect([code, message]).toEqual([
        "context_too_long",
        expect.stringContaining(`${tokens} tokens > ${contextLength} maximum`),
      ]);
      expect(tokensAtTurn(turn - 1)).toBeLessThanOrEqual(contextLength);
      expect(host.requests).toHaveLength(turn - 1);
      expect(gateway.counted.length).toBeWithin(1, turn / 10);
      return;
    }
  },
);

describe("a host that reports too little", () => {
  const surface = "chat.completions";
  const contextLength = 12_800;

  test("than any text can have is not believed", async () => {
    const script = reporting(surface, false, () => 10);
    const { host, gateway } = await opened(
      script,
      { model: { contextLength }, promptTokens: tokensOf },
      surface,
    );
    expect(await codesOf(gateway, 20, 40, 60, 80)).toEqual([200, 200, 200, 200]);
    expect(gateway.counted).toHaveLength(3);
    expect(await codesOf(gateway, 120)).toEqual(["context_too_long"]);
    expect(host.requests).toHaveLength(4);
  });

  test("leaves a prompt that is too long to its hosts once, and the refusal has its exact count", async () => {
    let isFull = false;
    const low = reporting(surface, false, (bytes) => Math.ceil(bytes / 15));
    const full = status(400, {}, "This prompt exceeds the context window.");
    const script = (request: FakeRequest) => (isFull ? full : low(request));
    const { host, gateway } = await opened(
      script,
      { model: { contextLength }, promptTokens: tokensOf },
      surface,
    );
    expect(await codesOf(gateway, 80)).toEqual([200]);
    isFull = true;
    const long = turnOf(surface, 98, 450);
    const tokens = tokensOf(JSON.stringify(long).length);
    expect(await refusalOf(gateway, surface, long)).toEqual([
      "context_too_long",
      expect.stringContaining(`${tokens} tokens > ${contextLength} maximum`),
    ]);
    expect(host.requests).toHaveLength(2);
    // What the host reported is forgotten, so the next one is counted first.
    expect(await codesOf(gateway, 120)).toEqual(["context_too_long"]);
    expect(host.requests).toHaveLength(2);
  });

  async function codesOf(gateway: TestGateway, ...turns: number[]) {
    const codes = [];
    for (const turn of turns) codes.push((await refusalOf(gateway, surface, turnOf(surface, turn, 450)))[0]);
    return codes;
  }
});

describe("while a prompt that probably fits is counted", () => {
  const surface = "chat.completions";
  const model = { contextLength: 12_800 };
  /** More bytes than the context has tokens, and fewer than four times as many. */
  const doubtful = turnOf(surface, 60, 450);
  const answer = reporting(surface, false, tokensOf);

  test("its host works, and serves what fits", async () => {
    const counting = () => until(() => hosts.requests.length === 1);
    const { host: hosts, gateway } = await opened(answer, { model, promptTokens: 12_800, counting }, surface);
    expect((await refusalOf(gateway, surface, doubtful))[0]).toBe(200);
    expect(gateway.counted).toEqual(["text"]);
  });

  test("its host is stopped where it does not fit, and nothing stays held", async () => {
    const counting = () => until(() => host.requests.length === 1);
    const { host, gateway } = await opened(
      () =>
        (_wire, { gone }) =>
          gone,
      { model, promptTokens: 12_801, counting },
      surface,
    );
    const sent = await gateway.send(surface, doubtful);
    const { error } = JSON.parse(await read(sent));
    expect([error.code, error.message]).toEqual([
      "context_too_long",
      expect.stringContaining("12801 tokens > 12800 maximum"),
    ]);
    expect(gateway.receipt(sent)).toMatchObject({
      state: "failed",
      error_code: "context_too_long",
      cost_usd: 0,
    });
    expect(await gateway.drifts()).toEqual([]);
  });

  test("a host that answered before took it, and serves", async () => {
    const counted = Promise.withResolvers<void>();
    const { gateway } = await opened(
      answer,
      { model, promptTokens: 12_801, counting: () => counted.promise },
      surface,
    );
    expect((await refusalOf(gateway, surface, doubtful))[0]).toBe(200);
    counted.resolve();
  });

  test("a stream that began before goes on", async () => {
    const counted = Promise.withResolvers<void>();
    const hostGoesOn = gate();
    const { events } = chatText(["One", " and", " two."]);
    const before = (n: number) => (n === 2 ? hostGoesOn.passed : undefined);
    const { gateway } = await opened(
      () => sse(events, { before }),
      { model, promptTokens: 12_801, counting: () => counted.promise },
      surface,
    );
    const answer = await gateway.send(surface, { ...doubtful, stream: true });
    counted.resolve();
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    hostGoesOn.open();
    expect(await read(answer)).toContain("[DONE]");
  });

  test("what does not fit was counted in vain, so many times a minute", async () => {
    let works = false;
    const long = requestOf(surface, { messages: [{ role: "user", content: "x".repeat(300_000) }] });
    const { gateway } = await opened(
      (request) => (works ? answer(request) : (_wire, { gone }) => gone),
      { model: { contextLength: 100_000 }, promptTokens: 100_001 },
      surface,
    );
    const times = Math.ceil(PAID_MS_A_MINUTE / (300_000 * COUNTED_MS_PER_BYTE));
    for (let n = 0; n < times; n++)
      expect((await refusalOf(gateway, surface, long))[0]).toBe("context_too_long");
    works = true;
    expect((await refusalOf(gateway, surface, long))[0]).toBe(200);
    expect(gateway.counted).toHaveLength(times);
  });
});

test("a conversation of which hosts are sent less than the client sent is known at its next turn", async () => {
  const surface = "responses";
  const script = reporting(surface, false, (bytes) => tokensOf(bytes) + 5);
  const options = { model: { contextLength: 12_800 }, promptTokens: tokensOf };
  const { host, gateway } = await opened(script, options, surface);
  for (const turn of [60, 61, 62]) {
    const body = { tools: [{ type: "web_search" }], ...turnOf(surface, turn, 450) };
    expect((await refusalOf(gateway, surface, body))[0]).toBe(200);
  }
  expect(host.requests[2]!.text()).not.toContain("web_search");
  expect(gateway.counted).toHaveLength(1);
});

test("a conversation is one balance's: what its host reported tells nothing about another's", () => {
  const sizes = new PromptSizes();
  const of = (balance: string) =>
    sizes.of(
      conversationOf(
        { json: {}, outline: {}, list: null, body: NO_BYTES, surface: "chat.completions", model: "m" },
        new Headers({ "session-id": "the same" }),
        balance as BalanceId,
      ).conversation,
      { promptBound: 1_000, mediaTokens: 0 },
    );
  of("bal_a").has(250);
  expect([of("bal_a").most, of("bal_b").most]).toEqual([250, 1_000]);
});
