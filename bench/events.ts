/**
 * What an event of a stream costs in process, by language and by what the host puts into it: CPU per event of a
 * stream of deltas, fed one event at a time as hosts send them, the cases in turns. Each is checked to end
 * properly. "Alike" are events that differ in their text alone; the goals are multiples of chat's.
 *
 *     bun run bench events [--rounds 15] [--deltas 500] [--streams 120]
 */
import type { SurfaceName } from "../src/catalog/catalog.ts";
import type { GenerationRequest } from "../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../src/surfaces/surfaces.ts";
import { refused } from "../src/units/errors/refusal.ts";
import {
  chatText,
  eventText,
  messagesText,
  responsesText,
  type SseEvent,
} from "../test/fakes/transcripts.ts";
import { median, table } from "./figures.ts";
import { numberOption } from "./options.ts";

export interface EventCost {
  readonly name: string;
  /** Median of the rounds, microseconds of CPU. */
  readonly eventUs: number;
  /** Median over the rounds of its cost ÷ that of chat's alike events in the same round. */
  readonly ratio: number;
  /** Bounds the ratio, or the microseconds where an answer is assembled. */
  readonly goal: number | null;
}

export interface EventsSize {
  readonly rounds: number;
  readonly deltas: number;
  /** Streams of a case in a round. */
  readonly streams: number;
}

export function benchEvents({ rounds, deltas, streams }: EventsSize): EventCost[] {
  const cases = casesOf(deltas);
  const took = cases.map((): number[] => []);
  for (const { once } of cases) for (let n = 0; n < streams; n++) once();
  for (let round = 0; round < rounds; round++)
    for (const [at, { once, events }] of cases.entries()) took[at]!.push(cpuUs(once, streams) / events);
  const alike = took[0]!;
  return cases.map(({ name, goal }, at) => {
    const own = took[at]!;
    return { name, goal, eventUs: median(own), ratio: median(own.map((us, round) => us / alike[round]!)) };
  });
}

interface Case {
  readonly name: string;
  readonly goal: number | null;
  readonly events: number;
  readonly once: () => void;
}

function casesOf(deltas: number): Case[] {
  const words = Array.from({ length: deltas }, (_, n) => ` word${n}`);
  const [chat, messages, responses] = [chatText(words), messagesText(words), responsesText(words)].map(
    ({ events }) => events,
  ) as [SseEvent[], SseEvent[], SseEvent[]];
  const streamed: [string, SurfaceName, SurfaceName, readonly SseEvent[], number | null][] = [
    ["chat, alike", "chat.completions", "chat.completions", chat, null],
    ["chat, obfuscated", "chat.completions", "chat.completions", chat.map(obfuscated), 1.3],
    ["messages", "messages", "messages", messages, 0.6],
    ["responses", "responses", "responses", responses, 1],
    ["responses, obfuscated", "responses", "responses", responses.map(obfuscated), null],
    ["chat → messages", "messages", "chat.completions", chat, 2.5],
    ["chat → responses", "responses", "chat.completions", chat, 2.5],
    ["chat, obfuscated → messages", "messages", "chat.completions", chat.map(obfuscated), 2.5],
    ["messages → chat", "chat.completions", "messages", messages, 2.5],
    ["messages → responses", "responses", "messages", messages, 2.5],
    ["responses → chat", "chat.completions", "responses", responses, 2.5],
    ["responses → messages", "messages", "responses", responses, 2.5],
  ];
  const assembled: [string, SurfaceName, SurfaceName, readonly SseEvent[]][] = [
    ["chat, assembled", "chat.completions", "chat.completions", chat],
    ["chat, obfuscated, assembled", "chat.completions", "chat.completions", chat.map(obfuscated)],
    ["messages, assembled", "messages", "messages", messages],
    ["responses, assembled", "responses", "responses", responses],
    ["chat → messages, assembled", "messages", "chat.completions", chat],
  ];
  return [
    ...streamed.map(([name, client, host, events, goal]) => {
      const chunks = chunksOf(events);
      return { name, goal, events: chunks.length, once: () => stream(client, host, chunks, deltas) };
    }),
    ...assembled.map(([name, client, host, events]) => {
      const chunks = chunksOf(events);
      const last = words.at(-1)!;
      return { name, goal: null, events: chunks.length, once: () => assemble(client, host, chunks, last) };
    }),
  ];
}

/** OpenAI pads each event to a length that tells nothing of its text. */
function obfuscated({ event, data }: SseEvent, at: number): SseEvent {
  const pads = data.includes('"delta":') && !data.includes('"finish_reason":"stop"');
  const padding = "aZ3kQ9xW5bN7cP1d".slice(0, 1 + ((at * 7) % 15));
  const padded = pads ? `${data.slice(0, -1)},"obfuscation":"${padding}"}` : data;
  return event === undefined ? { data: padded } : { event, data: padded };
}

const chunksOf = (events: readonly SseEvent[]) =>
  // As a socket gives them: small arrays, each with memory of its own.
  events.map((event) => new Uint8Array(Buffer.from(eventText(event))));

function stream(client: SurfaceName, host: SurfaceName, chunks: readonly Uint8Array[], words: number): void {
  const judge = pairing(client, host).openStream(REQUESTS[client], METADATA);
  let bytes = 0;
  for (const chunk of chunks) bytes += judge.push(chunk).length;
  if (!judge.isComplete || bytes < words * 5)
    throw new Error(`${client} on ${host} did not end properly: ${judge.fault?.message}`);
}

function assemble(client: SurfaceName, host: SurfaceName, chunks: readonly Uint8Array[], last: string): void {
  const judge = pairing(client, host).openWhole(REQUESTS[client], METADATA);
  for (const chunk of chunks) judge.push(chunk);
  const reply = judge.reply();
  if (reply.kind !== "reply") throw new Error("the answer is none");
  const body = Buffer.from(reply.body({ tokens: reply.usage!, costUsd: 0 }));
  if (!body.includes(last) || body.includes("obfuscation"))
    throw new Error(`${client} on ${host} was not assembled properly`);
}

function cpuUs(work: () => void, times: number): number {
  const before = process.cpuUsage();
  for (let n = 0; n < times; n++) work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

const METADATA = { publicModel: "bench/model", atS: 1_763_000_000 };

const REQUESTS = Object.fromEntries(
  (["chat.completions", "responses", "messages"] as const).map((surface) => {
    const conversation =
      surface === "responses"
        ? { input: "Hi" }
        : { messages: [{ role: "user", content: "Hi" }], max_tokens: 9 };
    const body = Buffer.from(JSON.stringify({ model: "bench/model", stream: true, ...conversation }));
    const request = SURFACES[surface].readRequest(body);
    if (refused(request)) throw new Error(request.message);
    return [surface, request];
  }),
) as Record<SurfaceName, GenerationRequest>;

if (import.meta.main) {
  const rows = benchEvents({
    rounds: numberOption("rounds", 15),
    deltas: numberOption("deltas", 500),
    streams: numberOption("streams", 120),
  });
  console.log(
    table(
      ["events of the host → for the client", "µs CPU", "÷ chat, alike", "goal"],
      rows.map(({ name, eventUs, ratio, goal }) => [name, eventUs, ratio, goal ?? null]),
    ),
  );
}
