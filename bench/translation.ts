/**
 * What translation costs beside passing through: CPU per event of a stream of 1,000 deltas, fed one event at
 * a time as hosts send them, for each of the nine pairings. Each is checked to end properly with all of its
 * text.
 *
 *     bun run bench translation
 */
import { SURFACE_NAMES, type SurfaceName } from "../src/catalog/catalog.ts";
import { refused } from "../src/errors/refusal.ts";
import type { GenerationRequest } from "../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../src/surfaces/surfaces.ts";
import { chatText, eventText, messagesText, responsesText } from "../test/fakes/transcripts.ts";

const ROUNDS = 7;
const ASKED = { publicModel: "bench/model", atS: 1_763_000_000 };

export interface TranslationCost {
  readonly client: SurfaceName;
  readonly host: SurfaceName;
  /** Median of the rounds, microseconds of CPU. */
  readonly eventUs: number;
}

export function translationCosts(deltas = 1_000, repeats = 40): TranslationCost[] {
  const words = Array.from({ length: deltas }, (_, n) => ` word${n}`);
  const streams = {
    "chat.completions": chatText(words),
    responses: responsesText(words),
    messages: messagesText(words),
  };
  return SURFACE_NAMES.flatMap((host) => {
    const chunks = streams[host].events.map((event) => Buffer.from(eventText(event)));
    return SURFACE_NAMES.map((client) => {
      const once = () => stream(client, host, chunks, words.length);
      once();
      const rounds = Array.from({ length: ROUNDS }, () => cpuUs(once, repeats) / chunks.length);
      return { client, host, eventUs: rounds.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]! };
    });
  });
}

function stream(client: SurfaceName, host: SurfaceName, chunks: readonly Buffer[], words: number): void {
  const judge = pairing(client, host).openStream(REQUESTS[client], ASKED);
  let bytes = 0;
  for (const chunk of chunks) bytes += judge.push(chunk).length;
  if (!judge.isComplete || bytes < words * 5)
    throw new Error(`${client} on ${host} did not end properly: ${judge.fault?.message}`);
}

function cpuUs(work: () => void, times: number): number {
  const before = process.cpuUsage();
  for (let n = 0; n < times; n++) work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

const REQUESTS = Object.fromEntries(
  SURFACE_NAMES.map((surface) => {
    const said =
      surface === "responses"
        ? { input: "Hi" }
        : { messages: [{ role: "user", content: "Hi" }], max_tokens: 9 };
    const body = Buffer.from(JSON.stringify({ model: "bench/model", stream: true, ...said }));
    const request = SURFACES[surface].readRequest(body);
    if (refused(request)) throw new Error(request.message);
    return [surface, request];
  }),
) as Record<SurfaceName, GenerationRequest>;

if (import.meta.main) {
  const costs = translationCosts();
  for (const host of SURFACE_NAMES) {
    const passing = costs.find((cost) => cost.host === host && cost.client === host)!;
    console.log(`host of ${host}: ${passing.eventUs.toFixed(2)} µs an event passed through`);
    for (const { client, eventUs } of costs.filter((cost) => cost.host === host && cost.client !== host))
      console.log(
        `  for a client of ${client}: ${eventUs.toFixed(2)} µs, ${(eventUs / passing.eventUs).toFixed(2)} ×`,
      );
  }
}
