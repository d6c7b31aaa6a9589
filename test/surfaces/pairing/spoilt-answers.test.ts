import { expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import type { StreamJudge } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import type { ErrorObject } from "../../../src/units/errors/refusal.ts";
import { ACCENTED, OFFICIAL } from "../../fakes/hosts/all.ts";
import { SICK } from "../../fakes/hosts/sick.ts";
import { Random } from "../../sim/random.ts";
import { brokenRules } from "../event-order.ts";
import { bodyOf, decode, encode, givenSoFar, inPieces, lastOf, METADATA, openRequest } from "../harness.ts";

/**
 * Answers as no host gives them: events that are left out, repeated, swapped or of another language, values
 * of other types. Nothing is known of what they mean; but each ends, in an end mark or a fault, and no client
 * receives half a block.
 */
const TRANSCRIPTS: readonly { readonly host: SurfaceName; readonly stream: string; readonly whole?: Json }[] =
  [...OFFICIAL, ...ACCENTED, ...SICK].map(([, one]) => one);
type Json = Readonly<Record<string, unknown>>;

const SEEDS = 1_000;

test(`${SEEDS} spoilt streams end in an end mark or a fault, the same one at any split`, () => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = new Random(seed);
    const { host, stream } = random.pick(TRANSCRIPTS);
    const bytes = encode(spoiltStream(stream, random));
    const size = random.pick([1, 7, 64]);
    for (const client of SURFACE_NAMES) {
      const about = `seed ${seed}, ${client} client`;
      const open = () => pairing(client, host).openStream(openRequest(client, true), METADATA);
      const [judge, split] = [open(), open()];
      const text = givenSoFar(judge, [bytes.slice()]);
      expect([!judge.isComplete, about]).toEqual([judge.fault !== null, about]);
      const facts = factsOf(judge);
      expect([givenSoFar(split, inPieces(bytes, size)), factsOf(split), about]).toEqual([text, facts, about]);
      if (client !== host) expect([brokenOf(client, text + facts.last), about]).toEqual([[], about]);
    }
  }
});

test(`${SEEDS} spoilt answers reach each client as JSON, or are a fault`, () => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = new Random(seed);
    const { host, stream, whole } = random.pick(TRANSCRIPTS);
    const bytes = encode(spoiltStream(stream, random));
    const spoilt = encode(JSON.stringify(whole === undefined ? null : spoiltValue(whole, random)));
    for (const client of SURFACE_NAMES) {
      const request = openRequest(client, false);
      const collected = pairing(client, host).openWhole(request, METADATA);
      givenSoFar(collected, [bytes.slice()]);
      const replies = [pairing(client, host).readReply(spoilt, request, METADATA)];
      if (collected.isComplete) replies.push(collected.reply());
      for (const reply of replies) {
        if (reply.kind === "fault") continue;
        expect(JSON.parse(bodyOf(reply))).toBeObject();
        expect(reply.countedTokens).toBeGreaterThanOrEqual(0);
      }
    }
  }
});

test(`${SEEDS} spoilt answers, sent as streams, end in an end mark or a fault`, () => {
  let answered = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = new Random(seed);
    const [, { host, whole }] = random.pick([...OFFICIAL, ...ACCENTED]);
    const events = SURFACES[host].synthesizeStream(encode(JSON.stringify(spoiltValue(whole, random))));
    if (!(events instanceof Uint8Array)) continue;
    answered += 1;
    for (const client of SURFACE_NAMES) {
      const about = `seed ${seed}, ${client} client`;
      const judge = pairing(client, host).openStream(openRequest(client, true), METADATA);
      const text = decode(judge.push(events));
      expect([!judge.isComplete, about]).toEqual([judge.fault !== null, about]);
      if (client !== host) expect([brokenOf(client, text + factsOf(judge).last), about]).toEqual([[], about]);
    }
  }
  expect(answered).toBeGreaterThan(SEEDS / 2);
});

function spoiltStream(stream: string, random: Random): string {
  const events = eventsOf(stream);
  for (let times = 1 + random.below(3); times > 0 && events.length > 0; times--) {
    const at = random.below(events.length);
    const event = events[at]!;
    switch (random.below(8)) {
      case 0:
        events.splice(at, 1);
        break;
      case 1:
        events.splice(at, 0, event);
        break;
      case 2: {
        const other = random.below(events.length);
        events[at] = events[other]!;
        events[other] = event;
        break;
      }
      case 3:
        events.splice(at, 0, random.pick(eventsOf(random.pick(TRANSCRIPTS).stream)));
        break;
      default:
        events[at] = event.replace(
          /^data: (\{.*\})$/m,
          (_, data) => `data: ${JSON.stringify(spoiltValue(JSON.parse(data), random))}`,
        );
    }
  }
  return `${events.join("\n\n")}\n\n`;
}

const eventsOf = (stream: string): string[] => stream.split("\n\n").filter((event) => event !== "");

/** One value somewhere in it is another, gone, or there under another name too. */
function spoiltValue(value: unknown, random: Random): unknown {
  const keys = typeof value === "object" && value !== null ? Object.keys(value) : [];
  if (keys.length === 0 || random.chance(0.2)) return random.pick(VALUES);
  const copy = (Array.isArray(value) ? [...value] : { ...(value as Json) }) as Record<string, unknown>;
  const key = random.pick(keys);
  const kind = random.below(10);
  if (kind === 0 && !Array.isArray(copy)) delete copy[key];
  else if (kind === 1 && !Array.isArray(copy)) copy[random.pick(NAMES)] = copy[key];
  else copy[key] = spoiltValue(copy[key], random);
  return copy;
}

const VALUES: readonly unknown[] = [
  null,
  0,
  -1,
  1.5,
  4e9,
  true,
  "",
  "x",
  "__proto__",
  "constructor",
  "\ud83d",
  [],
  {},
  [null],
  [[]],
  { toString: 1 },
];
const NAMES = ["index", "id", "type", "text", "delta", "content", "usage", "error", "item", "tool_calls"];

/** Asked once: the last frames are numbered. */
function factsOf(judge: StreamJudge) {
  const { fault, usage, countedTokens } = judge;
  return {
    fault,
    last: judge.isComplete ? lastOf(judge) : decode(judge.fail(ERROR, null)),
    usage,
    countedTokens,
  };
}

const ERROR: ErrorObject = { message: "x", type: "api_error", code: "upstream_error", param: null };

const brokenOf = (client: SurfaceName, text: string): string[] =>
  brokenRules(client, text, { usage: true }).filter((rule) => !THE_HOSTS_OWN.some((one) => one.test(rule)));

/** Names, ids and reasons are passed on as the host says them. */
const THE_HOSTS_OWN = [
  /two tool calls have one id/,
  /without (an id|a name)/,
  /^finish_reason (stop|tool_calls)/,
];
