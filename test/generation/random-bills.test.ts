import { afterAll, expect, test } from "bun:test";
import type { Model, SurfaceName } from "../../src/catalog/catalog.ts";
import { SURFACE_NAMES } from "../../src/catalog/catalog.ts";
import type { Price } from "../../src/catalog/price.ts";
import { chargeOf } from "../../src/cli/charges.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { type Behaviour, type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import {
  chatText,
  type HostAnswer,
  messagesText,
  responsesText,
  type SseEvent,
} from "../fakes/transcripts.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";
import { bookedReceipt, heldNano, openTestGateway, requestBody, type TestGateway } from "./test-gateway.ts";

/**
 * Random answers at random prices, ended at random, from hosts that tell the truth, nonsense or nothing. Each bill
 * is compared, to the nano-dollar, with one that is worked out here from what was sent and from the contract alone.
 *
 * Replay one with `BILLS_SEED=<seed>`.
 */
const CASES = rounds(600, 2_000);
const FIRST_SEED = Number(process.env.BILLS_SEED ?? 1);
const COUNT = process.env.BILLS_SEED === undefined ? CASES : 1;
const PRICES = 24;
const MODEL_MOST = 4_000;

type Ending = "complete" | "reset" | "closed" | "error" | "left" | "left, read on";
/** What the host says that it used; null where it says nothing. Any number, also what cannot be. */
interface ReportedUsage {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}
interface Case {
  readonly client: SurfaceName;
  readonly spoken: SurfaceName;
  readonly price: number;
  readonly stream: boolean;
  readonly ceiling: number;
  /** One token each. */
  readonly words: number;
  /** Words that the client has read when its stream ends. */
  readonly given: number;
  readonly reported: ReportedUsage | null;
  readonly ending: Ending;
}

function randomCase(random: Random): Case {
  const ending: Ending = random.pick([
    "complete",
    "complete",
    "complete",
    "reset",
    "closed",
    "error",
    "left",
    "left, read on",
  ]);
  const stream = ending !== "complete" || random.chance(0.7);
  const words = random.pick([1, 2, 30, 49, 50, 51, 90]) + random.below(3);
  return {
    client: random.pick(SURFACE_NAMES),
    spoken: random.pick(SURFACE_NAMES),
    price: random.below(PRICES),
    stream,
    ceiling: random.pick([120, 200, 4_000]),
    words,
    given: ending === "left, read on" ? 1 + random.below(words) : words,
    reported: randomReport(random, words),
    ending,
  };
}

function randomReport(random: Random, words: number): ReportedUsage | null {
  const reasoning = random.chance(0.3) ? random.below(100) : 0;
  const truth: ReportedUsage = {
    input: 1 + random.below(30),
    cacheRead: random.chance(0.4) ? random.below(20) : 0,
    cacheWrite: random.chance(0.2) ? random.below(20) : 0,
    // Another vocabulary than the one that is counted in.
    output: Math.ceil(words * (0.7 + random.next() * 0.3)) + reasoning,
    reasoning,
  };
  switch (random.below(10)) {
    case 0:
      return null;
    case 1:
      return { ...truth, input: 100_000_000 };
    case 2:
      return { ...truth, output: 10_000_000, reasoning: random.pick([0, 9_999_999]) };
    case 3:
      return { ...truth, output: Math.min(truth.output, Math.ceil(words / 10)), reasoning: 0 };
    case 4:
      return { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
    case 5:
      return { ...truth, cacheRead: -1 };
    default:
      return truth;
  }
}

// What the host says, in its language.

const wordsOf = (count: number): string[] => Array.from({ length: count }, () => " word");
const ANSWERS: Record<SurfaceName, (words: string[]) => HostAnswer> = {
  "chat.completions": (words) => chatText(words),
  responses: (words) => responsesText(words),
  messages: (words) => messagesText(words),
};
/** Events from the host's usage on. */
const LAST: Record<SurfaceName, number> = { "chat.completions": -3, responses: -4, messages: -3 };

function usageOf(
  spoken: SurfaceName,
  { input, cacheRead, cacheWrite, output, reasoning }: ReportedUsage,
): object {
  const prompt = input + Math.max(0, cacheRead) + cacheWrite;
  switch (spoken) {
    case "chat.completions":
      return {
        prompt_tokens: prompt,
        completion_tokens: output,
        total_tokens: prompt + output,
        prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
        completion_tokens_details: { reasoning_tokens: reasoning },
      };
    case "responses":
      return {
        input_tokens: prompt,
        output_tokens: output,
        total_tokens: prompt + output,
        input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
        output_tokens_details: { reasoning_tokens: reasoning },
      };
    case "messages":
      return {
        input_tokens: input,
        cache_read_input_tokens: cacheRead,
        cache_creation_input_tokens: cacheWrite,
        output_tokens: output,
        output_tokens_details: { thinking_tokens: reasoning },
      };
  }
}

/** The same with its own usage wherever the host has one, or without. */
function saying(value: unknown, usage: object | null): unknown {
  if (Array.isArray(value)) return value.map((one) => saying(one, usage));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      name === "usage" && inner !== null ? usage : saying(inner, usage),
    ]),
  );
}

function behaviourOf({ spoken, words, given, reported, ending }: Case, read: Promise<void>): Behaviour {
  const { events, whole } = ANSWERS[spoken](wordsOf(words));
  const usage = reported === null ? null : usageOf(spoken, reported);
  const withUsage = (event: SseEvent): SseEvent =>
    event.data.startsWith("{")
      ? { ...event, data: JSON.stringify(saying(JSON.parse(event.data), usage)) }
      : event;
  const all = events.map(withUsage);
  const cut = all.slice(0, LAST[spoken]);
  const spoke = all.flatMap(({ data }, at) => (data.includes('" word"') ? [at] : []));
  const upTo = spoke[given - 1]! + 1;
  const failed = { data: JSON.stringify({ type: "error", error: { type: "api_error", message: "died" } }) };
  return (wire, request) => {
    const atCut = (n: number) => (n === cut.length ? read : undefined);
    if (request.json().stream !== true) return json(saying(whole, usage))(wire, request);
    switch (ending) {
      case "complete":
        return sse(all)(wire, request);
      case "reset":
        return sse(cut, { before: atCut, end: "reset" })(wire, request);
      case "closed":
        return sse(cut, { before: atCut })(wire, request);
      case "error":
        return sse([...cut, failed], { before: atCut })(wire, request);
      case "left":
        return sse(cut, { before: (n) => (n === cut.length ? request.gone : undefined) })(wire, request);
      case "left, read on":
        return sse(all, { before: (n) => (n === upTo ? read : undefined) })(wire, request);
    }
  };
}

// The bill, worked out by the contract.

/** What hosts put around a prompt. */
const FRAMING = 1_024;
/** “Hello” with its role and marks. */
const COUNTED_PROMPT = 8;

function expectedTokens({ spoken, given, reported, ending, ceiling }: Case, bodyBytes: number) {
  const isWhole = ending === "complete" || ending === "left, read on";
  // Messages hosts tell the prompt at the beginning.
  const received = reported !== null && (isWhole || spoken === "messages") ? reported : null;
  const most = bodyBytes + FRAMING;
  const parts = { input: 0, cacheRead: 0, cacheWrite: 0 };
  if (received !== null)
    for (const kind of ["input", "cacheRead", "cacheWrite"] as const)
      if (received[kind] >= 0 && received[kind] <= most) parts[kind] = received[kind];
  const sum = parts.input + parts.cacheRead + parts.cacheWrite;
  const promptBelieved = sum > 0 && sum <= most;
  const prompt = promptBelieved ? parts : { input: COUNTED_PROMPT, cacheRead: 0, cacheWrite: 0 };

  let output = Math.min(given, ceiling);
  let reasoning = 0;
  let outputBelieved = false;
  if (reported !== null && isWhole && reported.output > 0) {
    const mostOutput = Math.min(ceiling, MODEL_MOST) + Math.min(reported.reasoning, MODEL_MOST);
    if (reported.output <= mostOutput && reported.output * 2 >= given) {
      // If the client left earlier, only a part counts, so the host's figure does not.
      outputBelieved = ending === "complete" || reported.output <= given + reported.reasoning;
      const whole =
        ending === "complete" ? reported.output : Math.min(reported.output, given + reported.reasoning);
      // Thoughts count up to the ceiling.
      output = Math.min(whole, ceiling, MODEL_MOST);
      reasoning = Math.max(0, Math.min(reported.reasoning, whole) - (whole - output));
    }
  }
  return { ...prompt, output, reasoning, believed: promptBelieved && outputBelieved };
}

function expectedNano(tokens: ReturnType<typeof expectedTokens>, price: Price): number {
  const femto =
    BigInt(tokens.input) * BigInt(price.input) +
    BigInt(tokens.cacheRead) * BigInt(price.cacheRead) +
    BigInt(tokens.cacheWrite) * BigInt(price.cacheWrite) +
    BigInt(tokens.output) * BigInt(price.output);
  return Number((femto + 999_999n) / 1_000_000n);
}

// The gateway.

const random = new Random(20_261_122);
/** Up to $60 a million, odd to the last digit. */
const anyPrice = () => (1 + random.below(60_000_000_000)) as Price["input"];
const prices: Price[] = Array.from({ length: PRICES }, () => ({
  input: anyPrice(),
  output: anyPrice(),
  cacheRead: anyPrice(),
  cacheWrite: anyPrice(),
}));

let behaviour: Behaviour;
let host: FakeHost;
let gateway: TestGateway;
afterAll(async () => {
  await gateway?.close();
  await host?.close();
});

const modelOf = (one: Case): string =>
  `p${one.price}/${one.spoken}${one.ending === "left, read on" ? "-drain" : ""}`;

async function open(): Promise<void> {
  host = await startFakeHost(() => behaviour);
  const rows = SURFACE_NAMES.flatMap((spoken) =>
    (["cancel", "drain"] as const).map((onDisconnect) =>
      hostRow(host, { id: `${spoken} ${onDisconnect}`, speaks: [spoken], onDisconnect }),
    ),
  );
  const models = rows.flatMap((row) =>
    prices.map(
      (price, at): Model => ({
        id: `p${at}/${row.speaks[0]}${row.onDisconnect === "drain" ? "-drain" : ""}`,
        name: "Test",
        contextLength: 100_000,
        maxOutputTokens: MODEL_MOST,
        price,
        routes: [{ host: row, model: "host-model", price, free: false }],
      }),
    ),
  );
  gateway = await openTestGateway(rows, { creditUsd: 1_000_000, models, blind: true });
}

async function billOf(one: Case) {
  const read = gate();
  behaviour = behaviourOf(one, read.passed);
  const ceilingName = one.client === "responses" ? "max_output_tokens" : "max_tokens";
  const body = requestBody(one.client, {
    model: modelOf(one),
    stream: one.stream,
    [ceilingName]: one.ceiling,
  });
  const leaving = new AbortController();
  const answer = await gateway.send(one.client, body, leaving.signal);
  if (answer.kind === "stream") {
    let text = "";
    await answer.run({
      write(bytes) {
        text += new TextDecoder().decode(bytes);
        if (text.split(" word").length - 1 < one.given) return true;
        setImmediate(() => {
          if (one.ending.startsWith("left")) leaving.abort();
          setImmediate(read.open);
        });
        return true;
      },
      close() {},
    });
  }
  return {
    status: answer.status,
    bodyBytes: JSON.stringify(body).length,
    receipt: await bookedReceipt(gateway, answer),
  };
}

test(`${COUNT} bills are those that the contract asks for, to the nano-dollar`, async () => {
  await open();
  const seen = new Map<string, number>();
  let spent = 0;
  for (let seed = FIRST_SEED; seed < FIRST_SEED + COUNT; seed++) {
    const one = randomCase(new Random(seed));
    const about = `BILLS_SEED=${seed} ${JSON.stringify(one)}`;
    const { status, bodyBytes, receipt } = await billOf(one);
    const tokens = expectedTokens(one, bodyBytes);
    const cost = expectedNano(tokens, prices[one.price]!);
    const breaks = ["reset", "closed", "error"].includes(one.ending);
    const writtenOff = breaks && tokens.output < 50;
    const state = writtenOff ? "written_off" : one.ending.startsWith("left") ? "cancelled" : "settled";
    expect({
      about,
      status,
      state: receipt.state,
      tokens: receipt.tokens,
      cost: Math.round(receipt.cost_usd * 1e9),
      recomputed: chargeOf(receipt) as number,
      writeOff: Math.round(receipt.write_off_usd * 1e9),
    }).toEqual({
      about,
      status: 200,
      state,
      tokens: {
        input: tokens.input,
        cache_read: tokens.cacheRead,
        cache_write: tokens.cacheWrite,
        output: tokens.output,
        reasoning: tokens.reasoning,
        source: tokens.believed ? "host" : "counted",
      },
      cost: writtenOff ? 0 : cost,
      recomputed: cost,
      writeOff: writtenOff ? cost : 0,
    });
    if (!writtenOff) spent += cost;
    seen.set(`${one.ending}: ${state}`, (seen.get(`${one.ending}: ${state}`) ?? 0) + 1);
  }
  expect(gateway.faults).toEqual([]);
  expect<number>(gateway.ledger.lost).toBe(0);
  expect<number>(await heldNano(gateway)).toBe(0);
  const { total } = await gateway.ledger.balance("bal_test" as never);
  expect<number>(total).toBe(1_000_000 * 1e9 - spent);
  // Each way of ending was tried often.
  if (COUNT === CASES) expect(Math.min(...seen.values())).toBeGreaterThan(20);
}, 600_000);
