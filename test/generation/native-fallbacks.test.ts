import { describe, expect, test } from "bun:test";
import type { Host } from "../../src/catalog/catalog.ts";
import { chargeOf } from "../../src/cli/charges.ts";
import { nanoFromUsd } from "../../src/units/usd.ts";
import { json, sse, status } from "../fakes/behaviours.ts";
import { type Hopped, hopping } from "../fakes/hopping.ts";
import { type Behaviour, type FakeHost, hostRow } from "../fakes/host.ts";
import { messagesText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { model, priceOf, route } from "../routing/world.ts";
import { openedPerTest } from "./serving.ts";
import {
  bookedReceipt,
  heldNano,
  read,
  requestBody,
  type TestGateway,
  type TestGatewayOptions,
} from "./test-gateway.ts";

/** A host that is sent the client's `fallbacks`, and goes on by itself where a model of its declines. */
const { startHost, openGateway } = openedPerTest();

/** `test/model` at USD 1 in and 10 out per million, `test/m1` at 2 and 20, `test/m2` at 3 and 30, all on one host. */
async function native(
  /** One after the other, the last of them from then on. */
  says: Behaviour | readonly Behaviour[],
  row: Partial<Host> = {},
  options: TestGatewayOptions = {},
): Promise<{ gateway: TestGateway; host: FakeHost }> {
  const all = [says].flat() as Behaviour[];
  const host = await startHost((_request, n) => all[Math.min(n, all.length - 1)]!);
  const own = hostRow(host, {
    id: "native",
    speaks: ["messages"],
    fallbacks: "native",
    refusals: "free",
    ...row,
  });
  const models = [1, 2].map((n) =>
    model(
      `test/m${n}`,
      [{ ...route("native"), host: own, model: `claude-m${n}`, price: priceOf(n + 1, 10 * (n + 1)) }],
      {
        contextLength: 100_000,
        maxOutputTokens: 4_000,
      },
    ),
  );
  return { gateway: await openGateway([own], { models, ...options }), host };
}

const NEXT = { fallbacks: [{ model: "test/m1", max_tokens: 50 }, { model: "test/m2" }] };
const requestWith = (more: object = {}) => requestBody("messages", { stream: true, ...NEXT, ...more });

const used = (model: string | null, words: readonly string[], input: number, output: number): Hopped => ({
  model,
  words,
  input,
  output,
});
const DECLINED = used("host-model", [], 11, 1);
const WROTE = used("host-model", ["Hello", " there"], 11, 2);
const SERVED = used("claude-m1-20261101", ["Good", " day", "."], 12, 3);
const REQUESTED = { requested: "host-model" };

/** As the request wants it. */
const giving =
  (ran: readonly Hopped[], declines = false): Behaviour =>
  (wire, request) => {
    const { events, whole } = hopping(ran, { ...REQUESTED, declines });
    return (request.json().stream === true ? sse(events) : json(whole))(wire, request);
  };

const SHAPES: [string, object][] = [
  ["streamed", { stream: true }],
  [
    "whole",
    {
      stream: false,
      max_tokens: 20,
      fallbacks: [
        { model: "test/m1", max_tokens: 20 },
        { model: "test/m2", max_tokens: 20 },
      ],
    },
  ],
  ["put together from a stream", { stream: false, max_tokens: 400 }],
];

/** Every case in every shape: the tokens of each part, and what all of them cost in nano-dollars. */
const CASES: [
  string,
  readonly Hopped[],
  { model: string; attempts: string[]; cost: number; charges?: [string, number, number][] },
][] = [
  [
    "nobody declines",
    [WROTE],
    { model: "test/model", attempts: ["test/model opened"], cost: 11_000 + 20_000 },
  ],
  [
    "before any content: what wrote nothing is free here",
    [DECLINED, SERVED],
    { model: "test/m1", attempts: ["test/model declined", "test/m1 opened"], cost: 12 * 2_000 + 3 * 20_000 },
  ],
  [
    "in the middle of an answer: each model at its own price",
    [WROTE, SERVED],
    {
      model: "test/m1",
      attempts: ["test/model declined", "test/m1 opened"],
      cost: 11_000 + 20_000 + 24_000 + 60_000,
      charges: [
        ["test/model", 11, 2],
        ["test/m1", 12, 3],
      ],
    },
  ],
  [
    "in the middle: who goes on reads what was written before, in addition to the longest prompt",
    [WROTE, used("claude-m1", ["Good"], 1_200, 1)],
    {
      model: "test/m1",
      attempts: ["test/model declined", "test/m1 opened"],
      cost: 11_000 + 20_000 + 1_200 * 2_000 + 20_000,
      charges: [
        ["test/model", 11, 2],
        ["test/m1", 1_200, 1],
      ],
    },
  ],
  [
    "twice, of which one wrote thoughts that nobody saw",
    [WROTE, used("claude-m1", [], 12, 15), used("claude-m2", ["Fine"], 13, 1)],
    {
      model: "test/m2",
      attempts: ["test/model declined", "test/m1 declined", "test/m2 opened"],
      cost: 11_000 + 20_000 + 12 * 2_000 + 15 * 20_000 + 13 * 3_000 + 30_000,
      charges: [
        ["test/model", 11, 2],
        ["test/m1", 12, 15],
        ["test/m2", 13, 1],
      ],
    },
  ],
  [
    "the requested model is named by nothing, and another by an id that nobody knows",
    [used(null, ["Hello"], 11, 1), used("claude-internal-7", ["Hi"], 12, 2)],
    {
      model: "test/m1",
      attempts: ["test/model declined", "test/m1 opened"],
      cost: 11_000 + 10_000 + 24_000 + 40_000,
      charges: [
        ["test/model", 11, 1],
        ["test/m1", 12, 2],
      ],
    },
  ],
  [
    "the first model was not run at all",
    [SERVED],
    { model: "test/m1", attempts: ["test/m1 opened"], cost: 12 * 2_000 + 3 * 20_000 },
  ],
];

describe("the bill is what each model used, at its own price", () => {
  for (const [shape, how] of SHAPES)
    test.each(CASES)(`${shape}: %s`, async (_what, ran, { model: served, attempts, cost, charges }) => {
      const { gateway, host } = await native(giving(ran));
      const answer = await gateway.send("messages", requestWith(how));
      const text = await read(answer);
      expect(text).toContain(ran.at(-1)!.words[0]!);
      // As it came.
      expect(text).toContain(
        `"iterations":[{"type":"${ran.length === 1 && ran[0] === SERVED ? "fallback_message" : "message"}"`,
      );
      const receipt = await bookedReceipt(gateway, answer);
      expect(receipt).toMatchObject({
        state: "settled",
        model: served,
        host: "native",
        cost_usd: cost / 1e9,
        tokens: { source: "host" },
      });
      const tries = receipt.attempts.map(
        (one: { model: string; outcome: string }) => `${one.model} ${one.outcome}`,
      );
      expect(tries.map((one: string) => one.replace("answered", "opened"))).toEqual(attempts);
      const shown = receipt.charges?.map(
        (one: { model: string; tokens: { input: number; output: number } }) => [
          one.model,
          one.tokens.input,
          one.tokens.output,
        ],
      );
      expect(shown).toEqual(charges);
      const sum = receipt.charges?.reduce((all: number, one: { cost_usd: number }) => all + one.cost_usd, 0);
      if (charges !== undefined) expect(sum).toBeCloseTo(cost / 1e9, 12);
      expect(host.requests).toHaveLength(1);
      expect(await gateway.drifts()).toEqual([]);
      expect(await heldNano(gateway)).toBe(0 as never);
      expect(gateway.faults).toEqual([]);
    });
});

test("a host that lists only who declined has the rest in its sums", async () => {
  const { events } = hopping([WROTE, SERVED], REQUESTED);
  const sent = events.map((event) => ({
    ...event,
    data: event.data.replace(/,\{"type":"fallback_message"[^}]*\}/, ""),
  }));
  const { gateway } = await native(sse(sent));
  const answer = await gateway.send("messages", requestWith());
  expect(await read(answer)).not.toContain("fallback_message");
  expect(await bookedReceipt(gateway, answer)).toMatchObject({
    model: "test/m1",
    cost_usd: (11_000 + 20_000 + 24_000 + 60_000) / 1e9,
  });
});

test("a short answer is streamed from the host if one of the next models may write a long one", async () => {
  const { gateway, host } = await native(giving([WROTE]));
  const long = { stream: false, max_tokens: 20, fallbacks: [{ model: "test/m1", max_tokens: 2_000 }] };
  await read(await gateway.send("messages", requestWith(long)));
  expect(host.requests[0]!.json().stream).toBe(true);
});

test("the host gets its own names for the models, their ceilings and the beta", async () => {
  const { gateway, host } = await native(giving([WROTE]));
  const headers = new Headers({ "anthropic-beta": "context-1m-2025-08-07" });
  const entry = { model: "test/m1", thinking: null, output_config: { effort: "low" } };
  const body = requestWith({ fallbacks: [entry, { model: "test/m2", max_tokens: 9_000 }] });
  await read(await gateway.send("messages", body, undefined, headers));
  const [request] = host.requests;
  expect(request!.json()).toMatchObject({
    model: "host-model",
    fallbacks: [
      { model: "claude-m1", thinking: null, output_config: { effort: "low" }, max_tokens: 100 },
      { model: "claude-m2", max_tokens: 4_000 },
    ],
  });
  expect(request!.headers["anthropic-beta"]).toBe("context-1m-2025-08-07,server-side-fallback-2026-07-01");
});

test("a client that names a version of the beta gets that one", async () => {
  const { gateway, host } = await native(giving([WROTE]));
  const headers = new Headers({ "anthropic-beta": "server-side-fallback-2026-06-01" });
  await read(await gateway.send("messages", requestWith(), undefined, headers));
  expect(host.requests[0]!.headers["anthropic-beta"]).toBe("server-side-fallback-2026-06-01");
});

describe("hosts are sent no fallbacks", () => {
  const cases: [string, Partial<Host>, object][] = [
    ["that do not say that they know them", { fallbacks: undefined as never }, NEXT],
    ["by a client that names `models`", {}, { models: ["test/m1"] }],
    ["next to a token for what an earlier refusal cost", {}, { ...NEXT, fallback_credit_token: "fct_1" }],
    ["by a client that names none", {}, {}],
    ["by a default that the model's row does not have", {}, { fallbacks: "default" }],
  ];
  test.each(cases)("%s", async (_what, row, named) => {
    const { gateway, host } = await native(giving([used("host-model", ["Hello"], 11, 1)]), row);
    await read(await gateway.send("messages", requestWith({ fallbacks: undefined, ...named })));
    expect(host.requests[0]!.json().fallbacks).toBeUndefined();
  });

  test("of which one is at another host: then the gateway goes on", async () => {
    const other = await startHost(() => sse(messagesText(["Elsewhere"]).events));
    const elsewhere = hostRow(other, { id: "other", speaks: ["messages"] });
    const { gateway, host } = await native(
      giving([DECLINED], true),
      {},
      {
        models: [model("test/m1", [{ ...route("other"), host: elsewhere }], { contextLength: 100_000 })],
      },
    );
    const answer = await gateway.send("messages", requestWith({ fallbacks: [{ model: "test/m1" }] }));
    expect(await read(answer)).toContain("Elsewhere");
    expect(host.requests[0]!.json().fallbacks).toBeUndefined();
  });
});

test("the fallbacks in the model's own row are handed over where the client wants the default", async () => {
  const { gateway, host } = await native(
    giving([DECLINED, SERVED]),
    {},
    { model: { fallbacks: ["test/m1"] } },
  );
  const answer = await gateway.send("messages", requestWith({ fallbacks: "default" }));
  expect(await read(answer)).toContain("Good");
  expect(answer.headers).toMatchObject({ "x-gateway-declined": "test/model", "x-gateway-model": "test/m1" });
  expect(answer.headers).not.toHaveProperty("x-gateway-omitted");
  expect(host.requests[0]!.json().fallbacks).toEqual([{ model: "claude-m1", max_tokens: 100 }]);
  expect((await bookedReceipt(gateway, answer)).model).toBe("test/m1");
});

describe("if all decline", () => {
  const ALL = [DECLINED, used("claude-m1", [], 12, 1), used("claude-m2", [], 13, 1)];
  test.each(SHAPES)(
    "the refusal is the answer, and free, and nobody gets the request again: %s",
    async (_shape, how) => {
      const { gateway, host } = await native(giving(ALL, true));
      const answer = await gateway.send("messages", requestWith(how));
      expect(await read(answer)).toContain('"refusal"');
      expect(await bookedReceipt(gateway, answer)).toMatchObject({
        state: "settled",
        cost_usd: 0,
        attempts: [
          { model: "test/model", outcome: "declined" },
          { model: "test/m1", outcome: "declined" },
          { model: "test/m2", outcome: "declined" },
        ],
      });
      expect(answer.headers["x-gateway-declined"]).toBe("test/model, test/m1, test/m2");
      expect(host.requests).toHaveLength(1);
      expect(await gateway.drifts()).toEqual([]);
    },
  );

  test("at a host that bills refusals, each is charged", async () => {
    const { gateway } = await native(giving(ALL, true), { refusals: undefined as never });
    const answer = await gateway.send("messages", requestWith());
    await read(answer);
    expect((await bookedReceipt(gateway, answer)).cost_usd).toBe(
      (11_000 + 10_000 + 24_000 + 20_000 + 39_000 + 30_000) / 1e9,
    );
  });

  test("those that the host did not get to are tried by the gateway", async () => {
    const two = giving([DECLINED, used("claude-m1", [], 12, 1)], true);
    const { gateway, host } = await native([two, sse(messagesText(["Third"]).events)]);
    const answer = await gateway.send("messages", requestWith());
    expect(await read(answer)).toContain("Third");
    expect(host.requests.map((request) => request.json().model)).toEqual(["host-model", "claude-m2"]);
    expect(await bookedReceipt(gateway, answer)).toMatchObject({
      model: "test/m2",
      attempts: [
        { model: "test/model", outcome: "declined" },
        { model: "test/m1", outcome: "declined" },
        { model: "test/m2", outcome: "opened" },
      ],
    });
  });
});

test("a declined hop without output is charged at a host that bills refusals", async () => {
  const { gateway } = await native(giving([DECLINED, SERVED]), { refusals: undefined as never });
  const answer = await gateway.send("messages", requestWith());
  await read(answer);
  expect(await bookedReceipt(gateway, answer)).toMatchObject({
    cost_usd: (11_000 + 10_000 + 24_000 + 60_000) / 1e9,
    charges: [{ model: "test/model" }, { model: "test/m1" }],
  });
});

describe("where the host does not come to say what each model used", () => {
  const words = (n: number) => Array.from({ length: n }, (_, at) => ` word${at}`);
  const LONG = used("host-model", words(60), 11, 120);
  const NEXT_LONG = used("claude-m1", words(40), 12, 80);
  const { events } = hopping([LONG, NEXT_LONG], REQUESTED);
  const broken = events.slice(0, -4);

  test("each is charged for what it is known to have written, at its own price, and the prompt once", async () => {
    const { gateway } = await native(sse(broken, { end: "cut" }));
    const answer = await gateway.send(
      "messages",
      requestWith({ max_tokens: 1_000, fallbacks: [{ model: "test/m1" }] }),
    );
    await read(answer);
    const receipt = await bookedReceipt(gateway, answer);
    expect(receipt).toMatchObject({
      state: "settled",
      error_code: "upstream_error",
      model: "test/m1",
      tokens: { source: "counted" },
      charges: [
        { model: "test/model", tokens: { input: 11 } },
        { model: "test/m1", tokens: { input: 0 } },
      ],
    });
    const [first, second] = receipt.charges;
    expect(first.tokens.output).toBeGreaterThan(100);
    expect(second.tokens.output).toBeGreaterThan(60);
    const cost = 11 * 1_000 + first.tokens.output * 10_000 + second.tokens.output * 20_000;
    expect(receipt.cost_usd).toBeCloseTo(cost / 1e9, 12);
    expect(await gateway.drifts()).toEqual([]);
  });

  /** The client leaves once it has read this so many times, and the host has nothing more to say until then. */
  const leaves = async (at: number, words: string, times: number) => {
    const leaving = new AbortController();
    let go = () => {};
    const left = new Promise<void>((done) => {
      go = done;
    });
    const before = (n: number) => (n === at ? left : undefined);
    const { gateway } = await native(sse(events, { before }));
    const body = requestWith({ max_tokens: 1_000, fallbacks: [{ model: "test/m1" }] });
    const answer = await gateway.send("messages", body, leaving.signal);
    const reading = read(answer, (text) => {
      if (text.split(words).length > times) setImmediate(() => leaving.abort());
    });
    await until(() => leaving.signal.aborted);
    go();
    await reading;
    expect(await gateway.drifts()).toEqual([]);
    return bookedReceipt(gateway, answer);
  };

  test("the same where the client leaves", async () => {
    expect(await leaves(events.length - 4, ' word38"', 2)).toMatchObject({
      state: "cancelled",
      charges: [{ model: "test/model" }, { model: "test/m1" }],
    });
  });

  test("who leaves before the next model writes pays for the first, and the receipt names it and its price", async () => {
    const hop = events.findIndex(({ data }) => data.includes("claude-m1"));
    const receipt = await leaves(hop + 2, '"fallback"', 1);
    expect(receipt).toMatchObject({
      state: "cancelled",
      model: "test/m1",
      charges: [{ model: "test/model" }],
    });
    expect<number>(chargeOf(receipt)).toBe(Math.round(receipt.cost_usd * 1e9));
  });
});

describe("a host that refuses the fallbacks", () => {
  const REFUSED = json(
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message: "fallbacks: claude-m1 is not an allowed fallback of host-model",
      },
    },
    400,
  );

  test("gets the request again without them, before the first byte, and for a while is sent none", async () => {
    const { gateway, host } = await native([REFUSED, giving([WROTE])]);
    for (const requests of [2, 3]) {
      const answer = await gateway.send("messages", requestWith());
      expect(await read(answer)).toContain("there");
      expect(host.requests).toHaveLength(requests);
    }
    expect(host.requests.map((request) => request.json().fallbacks !== undefined)).toEqual([
      true,
      false,
      false,
    ]);
    // Others are not affected.
    await read(await gateway.send("messages", requestWith({ fallbacks: [{ model: "test/m2" }] })));
    expect(host.requests[3]!.json().fallbacks).toHaveLength(1);
  });

  test("the gateway goes on in its place", async () => {
    const says = [REFUSED, giving([DECLINED], true), sse(messagesText(["Second"]).events)];
    const { gateway, host } = await native(says);
    const answer = await gateway.send("messages", requestWith());
    expect(await read(answer)).toContain("Second");
    expect(host.requests.map((request) => request.json().model)).toEqual([
      "host-model",
      "host-model",
      "claude-m1",
    ]);
    expect((await bookedReceipt(gateway, answer)).attempts).toMatchObject([
      { model: "test/model", outcome: "rejected" },
      { model: "test/model", outcome: "declined" },
      { model: "test/m1", outcome: "opened" },
    ]);
  });

  test("another verdict on the request is none on them", async () => {
    const verdict = json(
      { type: "error", error: { type: "invalid_request_error", message: "temperature: too high" } },
      400,
    );
    const { gateway, host } = await native([verdict, giving([WROTE])]);
    await read(await gateway.send("messages", requestWith()));
    expect(host.requests.map((request) => request.json().model)).toEqual(["host-model", "claude-m1"]);
  });
});

test("a host that fails is no refusal: the next model's turn is the gateway's", async () => {
  const { gateway, host } = await native([status(503), sse(messagesText(["Second"]).events)]);
  const answer = await gateway.send("messages", requestWith());
  expect(await read(answer)).toContain("Second");
  expect(host.requests.map((request) => request.json().model)).toEqual(["host-model", "claude-m1"]);
});

describe("the hold covers what all of the models can cost together", () => {
  const words = Array.from({ length: 80 }, (_, at) => ` w${at}`);
  /** Each as long as its ceiling, and what it wrote is read by the next. */
  const FULL = [
    used("host-model", words, 40, 100),
    used("claude-m1", words, 140, 100),
    used("claude-m2", words, 240, 100),
  ];
  const COST = 40 * 1_000 + 100 * 10_000 + 140 * 2_000 + 100 * 20_000 + 240 * 3_000 + 100 * 30_000;
  const THREE = { max_tokens: 100, fallbacks: [{ model: "test/m1" }, { model: "test/m2" }] };

  test("also where each writes all that it may, with a balance that just covers that", async () => {
    const { gateway, host } = await native(giving(FULL), {}, { creditUsd: 0.0085 });
    const answer = await gateway.send("messages", requestWith(THREE));
    await read(answer);
    expect(host.requests[0]!.json().fallbacks).toHaveLength(2);
    const receipt = await bookedReceipt(gateway, answer);
    expect(receipt.cost_usd).toBe(COST / 1e9);
    expect(receipt.held_usd).toBeGreaterThanOrEqual(receipt.cost_usd);
    expect(await gateway.drifts()).toEqual([]);
  });

  test("a balance that covers one model at a time has the gateway go on", async () => {
    const { gateway, host } = await native(giving([WROTE]), {}, { creditUsd: 0.005 });
    const answer = await gateway.send("messages", requestWith(THREE));
    expect(await read(answer)).toContain("there");
    expect(host.requests[0]!.json().fallbacks).toBeUndefined();
    expect((await bookedReceipt(gateway, answer)).model).toBe("test/model");
  });

  test("a host that claims more than that is not believed, and never charged beyond the hold", async () => {
    const claims = [used("host-model", ["Hi"], 40, 90_000), used("claude-m1", ["Ho"], 140, 90_000)];
    const { gateway } = await native(giving(claims), {}, { creditUsd: 1 });
    const answer = await gateway.send("messages", requestWith(THREE));
    await read(answer);
    const receipt = await bookedReceipt(gateway, answer);
    expect(receipt.tokens.source).toBe("counted");
    expect(nanoFromUsd(receipt.cost_usd)!).toBeLessThan(100_000);
  });
});
