import type { Route, SurfaceName } from "../catalog/catalog.ts";
import { refused } from "../errors/refusal.ts";
import { NO_BYTES } from "../surfaces/bytes.ts";
import type { Pairing, Surface } from "../surfaces/surface.ts";
import type { Clock } from "../units/clock.ts";
import { type Destinations, ownHeaders } from "./destination.ts";
import { HostFault, type HostReply, type Transport } from "./transport.ts";

/**
 * Asks a free route for one token: it is verified when it answers and its host reports no charge. Nothing is
 * served on the Open Tier on the word of a configuration file alone.
 */
export async function probeFree(route: Route, deps: ProbeDeps): Promise<boolean> {
  const { transport, destinations, clock, surfaces, pairing } = deps;
  const { host } = route;
  const language = host.speaks[0]!;
  const surface = surfaces[language];
  const request = surface.readRequest(new TextEncoder().encode(JSON.stringify(PROBES[language])));
  const pair = pairing(language, language);
  if (refused(request)) return false;
  const body = pair.hostBody(request, {
    model: route.model,
    publicModel: "probe",
    stream: false,
    quirks: route.quirks ?? host.quirks,
    maxOutputTokens: null,
    defaultMaxOutputTokens: 1,
  });
  if (refused(body)) return false;
  const exchange = transport.open({
    to: destinations.at(host, language, false),
    headers: ownHeaders(host, language, language, {}),
    body: body.bytes,
  });
  const timer = clock.after(PROBE_MS, () => exchange.cancel());
  try {
    const reply = await exchange.reply;
    if (reply instanceof HostFault || reply.status !== 200) return false;
    const answer = await readShort(reply);
    return (
      answer !== null && pair.readReply(answer, request, PROBED).kind === "reply" && !reportsCharge(answer)
    );
  } finally {
    timer.cancel();
    exchange.cancel();
  }
}

export interface ProbeDeps {
  readonly transport: Transport;
  readonly destinations: Destinations;
  readonly clock: Clock;
  readonly surfaces: Readonly<Record<SurfaceName, Surface>>;
  pairing(client: SurfaceName, host: SurfaceName): Pairing;
}

const PROBE_MS = 15_000;
const PROBED = { publicModel: "probe", atS: 0 };
const MAX_PROBE_BYTES = 256 * 1024;

const PROBES: Record<SurfaceName, object> = {
  "chat.completions": { model: "probe", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] },
  responses: { model: "probe", max_output_tokens: 16, input: "Hi" },
  messages: { model: "probe", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] },
};

/**
 * The whole of an answer that cannot be long, with what was read of it before; null where it breaks off or
 * is long.
 */
export async function readShort(reply: HostReply, first: Uint8Array = NO_BYTES): Promise<Uint8Array | null> {
  const chunks = [first];
  for (let length = first.length; length <= MAX_PROBE_BYTES; ) {
    const next = await reply.read();
    if (next === null) return Buffer.concat(chunks);
    if (next instanceof HostFault) return null;
    chunks.push(next);
    length += next.length;
  }
  return null;
}

/** OpenRouter and its like report `usage.cost` in USD. */
function reportsCharge(answer: Uint8Array): boolean {
  const { usage } = JSON.parse(Buffer.from(answer).toString("utf8")) as { usage?: { cost?: unknown } };
  return typeof usage?.cost === "number" && usage.cost > 0;
}
