import { BINARY, CLOSE, CONTINUATION, frame, PING, PONG, TEXT } from "../fakes/frames.ts";
import { Random } from "../sim/random.ts";
import { mutated, spoilt } from "./mutate.ts";
import type { RequestCase } from "./requests.ts";

/** What a client sends on a WebSocket: events in frames, as they should be and as they must not be. */
export function socketCases(seed: number, count: number): RequestCase[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => drawn(random));
}

function drawn(random: Random): RequestCase {
  const messages = Array.from({ length: 1 + random.below(5) }, () => message(random));
  const wellFormed = Buffer.concat(messages);
  const bytes = random.chance(0.3) ? mutated(wellFormed, random) : wellFormed;
  return {
    bytes: bytes.toString("base64"),
    cuts: Array.from({ length: random.below(5) }, () => random.below(bytes.length + 1)).sort((a, b) => a - b),
    leaves: random.chance(0.2),
    isSocket: true,
  };
}

/** A message in one frame or several, perhaps with others between them. */
function message(random: Random): Buffer {
  if (random.chance(0.15)) return odd(random);
  const payload = text(random);
  const opcode = random.chance(0.95) ? TEXT : BINARY;
  const parts = random.chance(0.4) ? parted(payload, random) : [payload];
  return Buffer.concat(
    parts.flatMap((part, at) => {
      const last = random.chance(0.98) ? at === parts.length - 1 : random.chance(0.5);
      const one = frame(at === 0 ? opcode : CONTINUATION, part, { last, ...flaw(random) });
      return at > 0 && random.chance(0.2) ? [odd(random), one] : [one];
    }),
  );
}

function parted(payload: Buffer, random: Random): Buffer[] {
  const cuts = Array.from({ length: 1 + random.below(6) }, () => random.below(payload.length + 1));
  const sorted = [0, ...cuts.sort((a, b) => a - b), payload.length];
  return sorted.slice(1).map((to, at) => payload.subarray(sorted[at], to));
}

/** Mostly none. */
const flaw = (random: Random) =>
  random.chance(0.96)
    ? {}
    : random.pick([
        { masked: false },
        { reserved: 0x40 },
        { reserved: 0x70 },
        { declared: 125 },
        { declared: 65_535 },
        { declared: 20_000_000 },
        { declared: 2 ** 52 },
      ]);

/** Control frames, and such as no client sends. */
const odd = (random: Random): Buffer =>
  random.pick([
    () => frame(PING, random.bytes(new Uint8Array(random.below(125)))),
    () => frame(PONG, ""),
    () => frame(PING, Buffer.alloc(126)),
    () => frame(PING, "x", { last: false }),
    () => frame(CONTINUATION, "stray"),
    () => frame(CLOSE, Buffer.from([3, random.pick([232, 233, 234, 236, 237, 255])])),
    () => frame(CLOSE, "x"),
    () => frame(3 + random.below(5), "reserved"),
    () => frame(11 + random.below(5), ""),
    () => frame(TEXT, Buffer.from([0xff, 0xfe, 0xed, 0xa0, 0x80])),
    () => frame(TEXT, ""),
    () => Buffer.from(random.bytes(new Uint8Array(1 + random.below(40)))),
  ])();

function text(random: Random): Buffer {
  if (random.chance(0.02))
    return Buffer.alloc(random.pick([70_000, 400_000, 1_500_000]), random.pick(["x", "[", '"', '{"a":']));
  const event = { ...random.pick(EVENTS), ...(random.chance(0.3) ? random.pick(MORE) : {}) };
  const json = Buffer.from(JSON.stringify(random.chance(0.4) ? spoilt(event, random) : event));
  return random.chance(0.15) ? mutated(json, random) : json;
}

const CREATE = { type: "response.create", model: "test/model", max_output_tokens: 20 };
/** The host's answers have this id. */
const previous_response_id = "resp_BqZ3vLx0wQ7n";
const EVENTS: readonly object[] = [
  { ...CREATE, input: "Hello" },
  {
    ...CREATE,
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }],
    stream: true,
    store: false,
  },
  { ...CREATE, input: "Hello", generate: false },
  {
    ...CREATE,
    input: [],
    generate: false,
    tools: [{ type: "function", name: "f", parameters: { type: "object" } }],
  },
  { ...CREATE, input: "And now", previous_response_id },
  {
    ...CREATE,
    input: [{ type: "function_call_output", call_id: "call_1", output: "42" }],
    previous_response_id,
  },
  {
    ...CREATE,
    input: [
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "42" },
    ],
    previous_response_id,
  },
  { ...CREATE, input: [{ type: "message", role: "user", content: "x" }, { type: "compaction_trigger" }] },
  { ...CREATE, input: "x".repeat(70_000), previous_response_id },
  { type: "response.steer", previous_response_id, input: "Stop" },
];
const MORE: readonly object[] = [
  { stream_id: "a" },
  { stream_id: "b.2" },
  { stream_id: "" },
  { previous_response_id: "resp_none" },
  { previous_response_id: null },
  { model: "test/none" },
  { background: true },
  { store: true },
  { generate: "no" },
  { input: null },
];
