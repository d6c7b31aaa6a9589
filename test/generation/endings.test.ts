import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import type { GenerationAnswer } from "../../src/generation/answer.ts";
import { pairing } from "../../src/surfaces/surfaces.ts";
import { json, type SseOptions, sse } from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import type { Behaviour } from "../fakes/host.ts";
import {
  chatError,
  chatText,
  type HostAnswer,
  messagesError,
  messagesText,
  responsesError,
  responsesText,
  type SseEvent,
} from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { openedPerTest } from "./serving.ts";
import {
  bookedReceipt,
  heldNano,
  read,
  requestBody,
  type TestGateway,
  type TestGatewayOptions,
} from "./test-gateway.ts";

const words = (count: number): string[] => Array.from({ length: count }, () => " word");
const TEXT: Record<SurfaceName, (count: number) => HostAnswer> = {
  "chat.completions": (count) => chatText(words(count), { input: 10 }),
  responses: (count) => responsesText(words(count), { input: 10 }),
  messages: (count) => messagesText(words(count), { input: 10 }),
};
const ERRORS: Record<SurfaceName, SseEvent[]> = {
  "chat.completions": [chatError("died")],
  responses: [responsesError("died")].flat(),
  messages: [messagesError("died")],
};
/** Messages' clients have to name one. */
const UNCEILED: Record<SurfaceName, object> = {
  "chat.completions": {},
  responses: {},
  messages: { max_tokens: 100 },
};
/** Events before the host's usage report and end mark. */
const UNFINISHED: Record<SurfaceName, number> = { "chat.completions": -3, responses: -4, messages: -3 };

const { serving: serve } = openedPerTest();

async function serving(
  surface: SurfaceName,
  behaviour: Behaviour,
  options: TestGatewayOptions = {},
  drain = false,
) {
  const row = { speaks: [surface], onDisconnect: drain ? "drain" : "cancel" } as const;
  const { gateway, hosts } = await serve([[behaviour, row]], options);
  return { gateway, host: hosts[0]! };
}

const cut = (surface: SurfaceName, count: number): SseEvent[] =>
  TEXT[surface](count).events.slice(0, UNFINISHED[surface]);

/** As the test gateways have it. */
const CHUNK_GAP_MS = 10_000;

/** Each way in which a stream breaks after its first token. */
const BREAKS: Record<string, (surface: SurfaceName, count: number) => Behaviour> = {
  "is cut off": (surface, count) => sse(cut(surface, count), { end: "cut" }),
  "is cut off inside a chunk": (surface, count) => sse(cut(surface, count), { end: "cut inside a chunk" }),
  "is reset": (surface, count) => sse(cut(surface, count), { end: "reset" }),
  "ends without its end mark": (surface, count) => sse(cut(surface, count)),
  "says something that is no JSON": (surface, count) =>
    sse([...cut(surface, count), { data: "upstream connect error.." }]),
  "ends with an error event": (surface, count) => sse([...cut(surface, count), ...ERRORS[surface]]),
  "falls silent": (surface, count) => async (wire, request) => {
    const silent: SseOptions = {
      before: (n) => (n === cut(surface, count).length ? request.gone : undefined),
    };
    await sse(cut(surface, count), silent)(wire, request);
  },
};

describe.each([...SURFACE_NAMES])("%s: a stream that breaks after its first token", (surface) => {
  for (const [name, breaks] of Object.entries(BREAKS)) {
    test(`${name}: upstream_error in the client's language; under 50 tokens nothing is charged, from 50 what was delivered`, async () => {
      for (const count of [5, 120]) {
        const clock = new ManualClock();
        const { host, gateway } = await serving(surface, breaks(surface, count), { clock });
        const answer = await gateway.send(surface, requestBody(surface, { stream: true }));
        const text = await read(answer, (given) => {
          const isAll = given.split(" word").length > count;
          if (isAll && name === "falls silent") setImmediate(() => clock.advance(CHUNK_GAP_MS));
        });
        expect(text).toContain('"code":"upstream_error"');
        expect(text).not.toContain("..");
        expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
        if (surface === "chat.completions") expect(text).toContain('"finish_reason":"error"');
        if (surface === "messages") expect(text).toContain("event: error\n");
        if (surface === "responses") expect(text).toContain("event: response.failed\n");
        const receipt = gateway.receipt(answer);
        // A reset throws away what the host had sent and nobody had read yet.
        const writtenOff = name === "is reset" ? receipt.tokens.output < 50 : count < 50;
        expect(receipt).toMatchObject({
          state: writtenOff ? "written_off" : "settled",
          write_off: writtenOff,
          error_code: "upstream_error",
        });
        if (writtenOff) expect(receipt.cost_usd).toBe(0);
        else expect(receipt.cost_usd).toBeGreaterThan(0.0005);
        expect(host.requests.length).toBe(1);
        expect(await heldNano(gateway)).toBe(0 as never);
      }
    });
  }

  test("finished: the host's usage is charged, the end mark comes last", async () => {
    const { gateway } = await serving(surface, sse(TEXT[surface](20).events));
    const answer = await gateway.send(surface, requestBody(surface, { stream: true }));
    const text = await read(answer);
    const mark = { "chat.completions": "[DONE]", responses: "response.completed", messages: "message_stop" }[
      surface
    ];
    expect(text.trimEnd().split("\n\n").at(-1)).toContain(mark);
    const receipt = gateway.receipt(answer);
    expect(receipt.tokens).toMatchObject({ input: 10, output: 20, source: "host" });
    expect(receipt).toMatchObject({ state: "settled", cost_usd: (10 * 1 + 20 * 10) / 1e6, host: "h0" });
  });

  test("the model is the public one on every event, and the host was asked for its own", async () => {
    const { host, gateway } = await serving(surface, sse(TEXT[surface](3).events));
    const text = await read(await gateway.send(surface, requestBody(surface, { stream: true })));
    const models = [...text.matchAll(/"model":"([^"]*)"/g)].map(([, model]) => model);
    expect(new Set(models)).toEqual(new Set(["test/model"]));
    expect(host.requests[0]!.json().model).toBe("host-model");
  });
});

describe("a client that leaves", () => {
  for (const drain of [false, true]) {
    test(`${drain ? "drain" : "cancel"}: what was delivered is charged, and nothing stays held`, async () => {
      const { events } = chatText(words(200), { input: 10 });
      const left = gate();
      const behaviour = sse(events, { before: (n) => (n === 101 ? left.passed : undefined) });
      const { host, gateway } = await serving("chat.completions", behaviour, {}, drain);
      const abort = new AbortController();
      const answer = await gateway.send(
        "chat.completions",
        requestBody("chat.completions", { stream: true }),
        abort.signal,
      );
      await leaveAfter(answer, 100, abort);
      const gone = (await host.arrived(0)).gone;
      if (!drain) await gone;
      left.open();
      await settled(gateway);
      const receipt = await bookedReceipt(gateway, answer);
      expect(receipt.state).toBe("cancelled");
      expect(receipt.tokens.output).toBeGreaterThan(50);
      expect(receipt.tokens.output).toBeLessThan(150);
      expect(receipt.cost_usd).toBeGreaterThan(0);
    });
  }

  test("before the first token: nothing is charged, and the host is cancelled", async () => {
    const { host, gateway } = await serving("chat.completions", (_wire, request) => request.gone);
    const abort = new AbortController();
    const pending = gateway.send(
      "chat.completions",
      requestBody("chat.completions", { stream: true }),
      abort.signal,
    );
    const request = await host.arrived(0);
    abort.abort();
    await request.gone;
    const answer = await pending;
    expect(gateway.receipt(answer)).toMatchObject({ state: "cancelled", cost_usd: 0, error_code: null });
    expect(await heldNano(gateway)).toBe(0 as never);
  });

  describe.each([...SURFACE_NAMES])("before the first token, %s", (surface) => {
    const REQUESTS: Record<SurfaceName, object> = {
      "chat.completions": { max_tokens: 100 },
      responses: { max_output_tokens: 100 },
      messages: { max_tokens: 100 },
    };
    test.each([true, false])(
      "streamed %p, at a host that drains: billed as the host says",
      async (stream) => {
        const left = gate();
        const { events, whole } = TEXT[surface](80);
        const answer: Behaviour = async (wire, request) => {
          await left.passed;
          const behaviour = request.json().stream === true ? sse(events) : json(whole);
          await behaviour(wire, request);
        };
        const { host, gateway } = await serving(surface, answer, {}, true);
        const abort = new AbortController();
        const body = requestBody(surface, { stream, ...REQUESTS[surface] });
        const pending = gateway.send(surface, body, abort.signal);
        await host.arrived(0);
        abort.abort();
        left.open();
        const given = await pending;
        await settled(gateway);
        expect(await bookedReceipt(gateway, given)).toMatchObject({
          state: "cancelled",
          host: "h0",
          tokens: { input: 10, output: 80, source: "host" },
          cost_usd: (10 * 1 + 80 * 10) / 1e6,
        });
        expect(await heldNano(gateway)).toBe(0 as never);
      },
    );
  });

  test.each([true, false])(
    "before the first token, streamed %p, at a host that bills cancelled prompts: the prompt is charged",
    async (stream) => {
      const row = { speaks: ["chat.completions"], billsCancelled: "prompt" } as const;
      const { gateway, hosts } = await serve([[(_wire, request) => request.gone, row]]);
      const abort = new AbortController();
      const body = requestBody("chat.completions", { stream, max_tokens: 100 });
      const pending = gateway.send("chat.completions", body, abort.signal);
      await hosts[0]!.arrived(0);
      abort.abort();
      const receipt = gateway.receipt(await pending);
      expect(receipt).toMatchObject({
        state: "cancelled",
        host: "h0",
        tokens: { output: 0, source: "counted" },
      });
      expect(receipt.tokens.input).toBeGreaterThan(0);
      expect(receipt.cost_usd).toBe(receipt.tokens.input / 1e6);
    },
  );

  test("before the first token, at a host that bills cancelled prompts: a tool that the host is not sent is not charged", async () => {
    const row = { speaks: ["chat.completions"], billsCancelled: "prompt" } as const;
    const search = { type: "web_search", user_location: { type: "approximate", city: "word ".repeat(200) } };
    const billed = async (more: object): Promise<number> => {
      const { gateway, hosts } = await serve([[(_wire, request) => request.gone, row]]);
      const abort = new AbortController();
      const body = { model: "test/model", input: "Hello", stream: true, ...more };
      const pending = gateway.send("responses", body, abort.signal);
      await hosts[0]!.arrived(0);
      abort.abort();
      return gateway.receipt(await pending).tokens.input;
    };
    expect(await billed({ tools: [search] })).toBe(await billed({}));
  });

  test("before any host was asked: nothing is charged, whatever hosts bill", async () => {
    const row = { speaks: ["chat.completions"], billsCancelled: "prompt" } as const;
    const { gateway, hosts } = await serve([[json(chatText().whole), row]]);
    const abort = new AbortController();
    abort.abort();
    const answer = await gateway.send("chat.completions", requestBody("chat.completions"), abort.signal);
    expect(gateway.receipt(answer)).toMatchObject({ state: "cancelled", cost_usd: 0, host: null });
    expect(hosts[0]!.requests.length).toBe(0);
  });

  test("between the first token and the response: its hold is settled although nobody reads", async () => {
    const { events } = chatText(words(100));
    const { gateway } = await serving(
      "chat.completions",
      sse(events, { before: (n) => (n === 60 ? new Promise(() => {}) : undefined) }),
    );
    const abort = new AbortController();
    const answer = await gateway.send(
      "chat.completions",
      requestBody("chat.completions", { stream: true }),
      abort.signal,
    );
    abort.abort();
    await settled(gateway);
    expect((await bookedReceipt(gateway, answer)).state).toBe("cancelled");
  });
});

describe("money", () => {
  test("402 names the balance, the worst case and the largest max_tokens that fits, and sends nothing", async () => {
    const { host, gateway } = await serving("chat.completions", json(chatText().whole), { creditUsd: 0.005 });
    const answer = await gateway.send(
      "chat.completions",
      requestBody("chat.completions", { max_tokens: 1_000 }),
    );
    const { error } = JSON.parse(await read(answer));
    expect(answer.status).toBe(402);
    expect(answer.headers["x-gateway-balance-usd"]).toBe("0.005");
    expect(error.code).toBe("insufficient_credit");
    expect(error.message).toContain("$0.005");
    const [, fits] = /max_tokens to at most (\d+)/.exec(error.message)!;
    expect(host.requests.length).toBe(0);
    const second = await gateway.send(
      "chat.completions",
      requestBody("chat.completions", { max_tokens: Number(fits) }),
    );
    expect(second.status).toBe(200);
    const third = await gateway.send(
      "chat.completions",
      requestBody("chat.completions", { max_tokens: Number(fits) + 1_000 }),
    );
    expect(third.status).toBe(402);
  });

  test("402 on /v1/responses names the ceiling as that language does", async () => {
    const { gateway } = await serving("responses", json(responsesText().whole), { creditUsd: 0.005 });
    const answer = await gateway.send("responses", requestBody("responses", { max_output_tokens: 1_000 }));
    expect(answer.status).toBe(402);
    expect(await read(answer)).toMatch(/set max_output_tokens to at most \d+\./);
  });

  test.each<[string, number, number, RegExp]>([
    [
      "also carries the advice to lower it",
      0.03,
      3_900,
      /set max_tokens to at most 2\d{3} and `thinking.budget_tokens` to less\./,
    ],
    ["is left alone where it fits", 0.03, 2_000, /set max_tokens to at most 2\d{3}\./],
    [
      "carries the advice to leave it out where none fits",
      0.005,
      3_900,
      /set max_tokens to at most \d{3} and leave `thinking` out\./,
    ],
    ["above the ceiling is one between calls of tools", 0.03, 9_000, /set max_tokens to at most 2\d{3}\./],
  ])("402 on /v1/messages: a budget of thoughts %s", async (_what, creditUsd, budget, advice) => {
    const { gateway } = await serving("messages", json({}), { creditUsd });
    const thinking = { type: "enabled", budget_tokens: budget };
    const answer = await gateway.send("messages", requestBody("messages", { max_tokens: 4_000, thinking }));
    expect(answer.status).toBe(402);
    expect(await read(answer)).toMatch(advice);
  });

  test("a stream without a ceiling grows its hold, and stops when the balance does not cover more", async () => {
    const { events } = chatText(words(3_000), { input: 10 });
    const { host, gateway } = await serving("chat.completions", sse(events), {
      creditUsd: 0.012,
      model: { maxOutputTokens: 100_000 },
    });
    const answer = await gateway.send("chat.completions", requestBody("chat.completions", { stream: true }));
    const text = await read(answer);
    expect(text).toContain('"code":"insufficient_credit"');
    expect(text).not.toContain("[DONE]");
    const receipt = gateway.receipt(answer);
    expect(receipt.cost_usd).toBeLessThanOrEqual(receipt.held_usd);
    // All but the smallest step of the credit was used, and what the host may have thought while this machine was
    // busy: it is not to stop while there is more.
    expect(receipt.cost_usd).toBeGreaterThan(0.008);
    expect(text).toContain("The tokens delivered cost $");
    await (await host.arrived(0)).gone;
  });

  test.each<[SurfaceName, SurfaceName, string]>([
    ["messages", "messages", "message_stop"],
    ["chat.completions", "messages", "[DONE]"],
    ["chat.completions", "chat.completions", "[DONE]"],
    ["responses", "messages", "response.completed"],
    ["responses", "chat.completions", "response.completed"],
  ])(
    "an answer in %s that a host of %s has ended is not stopped for what it says then that it used",
    async (surface, hostSurface, endMark) => {
      // More than the credit covers was thought, unseen; it is reported before the end mark.
      const text = hostSurface === "messages" ? messagesText : chatText;
      const { events } = text(words(20), { input: 10, output: 4_000 });
      const before = (n: number) => (n === events.length - 1 ? Bun.sleep(5) : undefined);
      const { gateway } = await serving(hostSurface, sse(events, { before }), {
        creditUsd: 0.012,
        model: { maxOutputTokens: 100_000 },
      });
      const answer = await gateway.send(
        surface,
        requestBody(surface, { stream: true, ...UNCEILED[surface] }),
      );
      const given = await read(answer);
      expect(given).toContain(endMark);
      expect(given).not.toContain("insufficient_credit");
      const receipt = gateway.receipt(answer);
      expect(receipt).toMatchObject({ state: "settled", error_code: null });
      expect(receipt.cost_usd).toBeLessThanOrEqual(receipt.held_usd);
      expect(receipt.held_usd).toBeLessThanOrEqual(0.012);
    },
  );

  test.each<[string, object]>([
    [
      "a file that the host fetches",
      { content: [{ type: "document", source: { type: "url", url: "https://x/a.pdf" } }] },
    ],
    [
      "a file that the host keeps",
      { content: [{ type: "document", source: { type: "file", file_id: "file_1" } }] },
    ],
  ])("%s is held at all that the model reads", async (_, text) => {
    const { host, gateway } = await serving("messages", json(messagesText().whole), { creditUsd: 0.05 });
    const answer = await gateway.send(
      "messages",
      requestBody("messages", { messages: [{ role: "user", ...text }] }),
    );
    expect(answer.status).toBe(402);
    expect(host.requests).toHaveLength(0);
  });

  test.each([
    { stream: true, named: 100 },
    { stream: false, named: 100 },
    // What no ceiling bounds, the longest answer of the model does: hidden thoughts are billed, a million
    // tokens are not.
    { stream: true, named: null },
    { stream: false, named: null },
  ])(
    "a host that reports a million tokens is not believed: stream $stream, ceiling $named",
    async ({ stream, named }) => {
      const answer = chatText(["Hel", "lo"], { input: 10, output: 1_000_000 });
      const { gateway } = await serving(
        "chat.completions",
        stream ? sse(answer.events) : json(answer.whole),
        {
          creditUsd: 100,
        },
      );
      const body = requestBody("chat.completions", {
        stream,
        ...(named === null ? {} : { max_tokens: named }),
      });
      const sent = await gateway.send("chat.completions", body);
      await read(sent);
      const { cost_usd, tokens } = gateway.receipt(sent);
      // “Hello” is one token; of the prompt the host said nothing that cannot be true.
      expect(tokens).toMatchObject({ input: 10, output: 1, source: "counted" });
      expect(cost_usd).toBe((10 * 1 + 1 * 10) / 1_000_000);
      expect<number>(gateway.ledger.lost).toBe(0);
      expect<number>(await heldNano(gateway)).toBe(0);
    },
  );

  test("unstreamed answers without a ceiling are together no longer than the balance covers", async () => {
    // Each holds 1,000 tokens of output, one cent, and the 3,000 beyond are three; there is plenty for one,
    // not for two.
    const { host, gateway } = await serving("chat.completions", json(chatText(words(10)).whole), {
      creditUsd: 0.145,
    });
    const both = [requestBody("chat.completions"), requestBody("chat.completions")].map((body) =>
      gateway.send("chat.completions", body),
    );
    const [first, second] = await Promise.all(both);
    expect([first!.status, second!.status]).toEqual([200, 200]);
    const ceilings = host.requests.map((request) => request.json().max_tokens);
    expect(ceilings.toSorted()).toEqual([1_000, undefined]);
    expect<number>(await heldNano(gateway)).toBe(0);
  });

  test("a long stream without a ceiling is served whole where the balance covers it", async () => {
    const { events } = chatText(words(6_000), { input: 10 });
    const { gateway } = await serving("chat.completions", sse(events), {
      model: { maxOutputTokens: 100_000 },
    });
    const answer = await gateway.send("chat.completions", requestBody("chat.completions", { stream: true }));
    expect(await read(answer)).toEndWith("data: [DONE]\n\n");
    expect(gateway.receipt(answer).cost_usd).toBeCloseTo((10 + 60_000) / 1e6, 9);
  });

  test.each([
    ["negative", { prompt_tokens: -1, completion_tokens: -100 }],
    ["huge", { prompt_tokens: 1e18, completion_tokens: 1e18 }],
    ["text", { prompt_tokens: "ten", completion_tokens: "twenty" }],
    ["zero", { prompt_tokens: 0, completion_tokens: 0 }],
    ["absent", undefined],
  ])("a host that reports %s usage is not believed: the text is counted", async (_name, usage) => {
    const whole = { ...(chatText(words(100)).whole as object), usage };
    const { gateway } = await serving("chat.completions", json(whole));
    const answer = await gateway.send("chat.completions", requestBody("chat.completions"));
    const receipt = gateway.receipt(answer);
    expect(receipt.tokens.source).toBe("counted");
    expect(receipt.tokens.output).toBeGreaterThan(60);
    expect(receipt.tokens.output).toBeLessThan(200);
  });

  test("cache reads, cache writes and reasoning are counted and priced", async () => {
    const { whole } = messagesText(words(10), { input: 1_000, cached: 400, cacheWrite: 100, output: 10 });
    const { gateway } = await serving("messages", json(whole));
    const receipt = gateway.receipt(await gateway.send("messages", requestBody("messages")));
    const { input, cache_read, cache_write, output } = receipt.tokens;
    expect(cache_read).toBe(400);
    expect(cache_write).toBe(100);
    expect(receipt.cost_usd).toBeCloseTo((input * 1 + 400 * 0.1 + 100 * 1.25 + output * 10) / 1e6, 9);
  });

  test("nothing is served that cannot be recorded, and service resumes by itself", async () => {
    const { gateway } = await serving("chat.completions", json(chatText().whole));
    gateway.disk.mood = "full";
    const first = await gateway.send("chat.completions", requestBody("chat.completions"));
    expect(first.status).toBe(500);
    expect(first.headers["retry-after"]).toBeDefined();
    expect((await gateway.send("chat.completions", requestBody("chat.completions"))).status).toBe(500);
    gateway.disk.mood = "fine";
    await until(
      async () => (await gateway.send("chat.completions", requestBody("chat.completions"))).status === 200,
    );
    expect(gateway.receipt(first)).toMatchObject({ state: "failed", cost_usd: 0 });
    // Nor is it counted as served.
    expect(gateway.reported[0]).toBe("failed internal_error");
    expect(gateway.reported.filter((one) => one === "settled")).toHaveLength(1);
  });

  test("a stream whose end cannot be recorded ends with an error, and is counted as one", async () => {
    const { gateway } = await serving("chat.completions", sse(chatText().events));
    const answer = await gateway.send("chat.completions", requestBody("chat.completions", { stream: true }));
    if (answer.kind !== "stream") throw new Error("not a stream");
    gateway.disk.mood = "full";
    let text = "";
    await answer.run({
      write(bytes) {
        text += new TextDecoder().decode(bytes);
        return true;
      },
      close() {},
    });
    gateway.disk.mood = "fine";
    expect(text).toContain("cannot record requests");
    expect(gateway.reported).toEqual(["settled internal_error"]);
  });
});

/** Reads until so many bytes' worth of words arrived, then leaves as a closed socket does. */
async function leaveAfter(answer: GenerationAnswer, count: number, abort: AbortController): Promise<void> {
  if (answer.kind !== "stream") throw new Error("not a stream");
  let text = "";
  const { promise, resolve } = Promise.withResolvers<void>();
  void answer.run({
    write(bytes) {
      text += new TextDecoder().decode(bytes);
      if (text.split(" word").length > count - 1) resolve();
      return !abort.signal.aborted;
    },
    close() {},
  });
  await promise;
  abort.abort();
}

async function settled(gateway: TestGateway): Promise<void> {
  await until(() => gateway.ledger.openHolds === 0);
}

test("a client that left before its stream was pulled is settled once, also where it is pulled after all", async () => {
  const { events } = chatText(words(100), { input: 10 });
  const { gateway } = await serving("chat.completions", sse(events), {}, true);
  const client = new AbortController();
  const answer = await gateway.send(
    "chat.completions",
    requestBody("chat.completions", { stream: true }),
    client.signal,
  );
  client.abort();
  expect(await read(answer)).toBe("");
  await settled(gateway);
  expect(gateway.faults).toEqual([]);
  expect((await bookedReceipt(gateway, answer)).state).toBe("cancelled");
});

test("a host that repeats the prompt in its refusal does not get it into the receipt", async () => {
  const error = { message: "Input should be valid: input_value='my secret plan'" };
  const { gateway } = await serving("chat.completions", json({ error }, 400));
  const answer = await gateway.send("chat.completions", requestBody("chat.completions"));
  expect(await read(answer)).toContain("my secret plan");
  const receipt = await bookedReceipt(gateway, answer);
  expect(receipt.attempts).toMatchObject([{ outcome: "rejected", detail: "status 400: an error" }]);
  expect(JSON.stringify(receipt)).not.toContain("secret");
});

test("a header that HTTP does not allow is not passed on", async () => {
  const { host, gateway } = await serving("chat.completions", json(chatText().whole));
  const headers = new Headers({ "user-agent": "a\x7fb", "x-title": "fine" });
  const { signal } = new AbortController();
  const answer = await gateway.send("chat.completions", requestBody("chat.completions"), signal, headers);
  expect(answer.status).toBe(200);
  expect(host.requests[0]!.headers).toMatchObject({ "x-title": "fine" });
  expect(gateway.faults).toEqual([]);
});

describe.each([...SURFACE_NAMES])(
  "%s: a mistake of the gateway's own in the midst of a stream",
  (surface) => {
    test("ends it in the client's language; nothing is charged or held any more, and the host is left", async () => {
      const { events } = TEXT[surface](100);
      const opened = gate();
      const left = gate();
      const behaviour: Behaviour = (wire, request) => {
        void request.gone.then(left.open);
        const before = (n: number) => (n === 20 ? opened.passed : n === 40 ? request.gone : undefined);
        return sse(events, { before })(wire, request);
      };
      const { host, gateway } = await serving(surface, behaviour, { pairing: brokenAfterFirstToken });
      const answer = await gateway.send(surface, requestBody(surface, { stream: true }));
      opened.open();
      const text = await read(answer);
      expect(text).toContain('"code":"internal_error"');
      expect(text).not.toContain("a mistake");
      expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
      await left.passed;
      const receipt = await bookedReceipt(gateway, answer);
      expect(receipt).toMatchObject({ state: "failed", cost_usd: 0, error_code: "internal_error" });
      expect(gateway.faults).toEqual([new Error("a mistake")]);
      expect([...gateway.slots.loads()].map(({ inFlight }) => inFlight)).toEqual([0]);
      expect(host.requests.length).toBe(1);
      expect(await heldNano(gateway)).toBe(0 as never);
    });
  },
);

const brokenAfterFirstToken: typeof pairing = (client, host) => {
  const whole = pairing(client, host);
  return {
    ...whole,
    openStream(request, metadata) {
      const judge = whole.openStream(request, metadata);
      const push = judge.push.bind(judge);
      judge.push = (chunk) => {
        if (judge.tokenSeen) throw new Error("a mistake");
        return push(chunk);
      };
      return judge;
    },
  };
};

test("a mistake of the gateway's own behind a host's first token leaves the host, and holds nothing", async () => {
  const left = gate();
  const behaviour: Behaviour = (wire, request) => {
    void request.gone.then(left.open);
    return sse(TEXT["chat.completions"](100).events, {
      before: (n) => (n === 40 ? request.gone : undefined),
    })(wire, request);
  };
  const { gateway } = await serving("chat.completions", behaviour, { pairing: brokenAtFirstToken });
  const answer = await gateway.send("chat.completions", requestBody("chat.completions", { stream: true }));
  expect(await read(answer)).toContain('"code":"internal_error"');
  await left.passed;
  expect(gateway.faults).toEqual([new Error("a mistake")]);
  expect([...gateway.slots.loads()].map(({ inFlight }) => inFlight)).toEqual([0]);
  expect(await heldNano(gateway)).toBe(0 as never);
});

const brokenAtFirstToken: typeof pairing = (client, host) => {
  const whole = pairing(client, host);
  return {
    ...whole,
    openStream(request, metadata) {
      const judge = whole.openStream(request, metadata);
      // First the attempt reads it, then what goes on from there.
      let reads = 0;
      const get = () => {
        if (++reads > 1) throw new Error("a mistake");
        return false;
      };
      return Object.defineProperty(judge, "isDeclined", { get });
    },
  };
};
