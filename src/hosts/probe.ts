import type { Route, SurfaceName } from "../catalog/catalog.ts";
import { bytesOf, NO_BYTES } from "../surfaces/json/bytes.ts";
import type { AnswerMetadata, GenerationRequest, Pairing } from "../surfaces/surface.ts";
import { pairing, SURFACES } from "../surfaces/surfaces.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";
import { ownHeaders } from "./destination.ts";
import type { HostAttemptDeps } from "./host-attempt.ts";
import { HostFault, type HostReply } from "./transport.ts";
import { readOn } from "./whole-body.ts";

/**
 * Asks a free route for one token: it is verified when it answers and its host reports no charge. Nothing is
 * served on the Open Tier on the word of a configuration file alone.
 */
export async function probeFree(route: Route, deps: ProbeDeps): Promise<boolean> {
  const question = { text: "Hi", tokens: 1, stream: false, withinMs: PROBE_MS };
  const isFree = await probeRoute(route, route.host.speaks[0]!, question, deps, async (reply, sent) => {
    const answer = reply.status === 200 ? await readShort(reply) : null;
    if (answer === null) return false;
    const { kind } = sent.pair.readReply(answer, sent.request, sent.metadata);
    return kind === "reply" && !reportsCharge(answer);
  });
  return isFree === true;
}

const PROBE_MS = 15_000;

/** What a route is asked to see how it answers. */
interface ProbeQuestion {
  readonly text: string;
  /** At most, in the answer. */
  readonly tokens: number;
  readonly stream: boolean;
  readonly withinMs: number;
}

/** As it was sent, for the reader of the answer. */
export interface SentProbe {
  readonly request: GenerationRequest;
  readonly pair: Pairing;
  readonly metadata: AnswerMetadata;
}

/**
 * Sends a route one short request in a language of its host's, as a client's would be sent: what `read` makes of the
 * reply, or why there is none.
 */
export async function probeRoute<Answer>(
  { host, model, quirks = host.quirks }: Route,
  spoken: SurfaceName,
  { text, tokens, stream, withinMs }: ProbeQuestion,
  { transport, destinations, clock }: ProbeDeps,
  read: (reply: HostReply, sent: SentProbe) => Promise<Answer>,
): Promise<Answer | HostFault | Refusal | "late"> {
  const question =
    spoken === "responses"
      ? { input: text, max_output_tokens: Math.max(tokens, MIN_TOKENS) }
      : { messages: [{ role: "user", content: text }], max_tokens: tokens };
  const request = SURFACES[spoken].readRequest(bytesOf(JSON.stringify({ model, ...question, stream })));
  if (refused(request)) return request;
  const pair = pairing(spoken, spoken);
  const target = { model, publicModel: model, stream, quirks, maxOutputTokens: null };
  const body = pair.hostBody(request, { ...target, defaultMaxOutputTokens: tokens });
  if (refused(body)) return body;
  const metadata = { publicModel: model, atS: Math.floor(clock.now() / 1_000) };
  const exchange = transport.open({
    to: destinations.at(host, spoken, stream),
    headers: ownHeaders(host, spoken, spoken, {}),
    body: body.parts,
  });
  let late = false;
  const timer = clock.after(withinMs, () => {
    late = true;
    exchange.cancel();
  });
  try {
    const reply = await exchange.reply;
    const answer = reply instanceof HostFault ? reply : await read(reply, { request, pair, metadata });
    return late ? "late" : answer;
  } finally {
    timer.cancel();
    exchange.cancel();
  }
}

/** That OpenAI takes in Responses. */
const MIN_TOKENS = 16;

export type ProbeDeps = Pick<HostAttemptDeps, "transport" | "destinations" | "clock">;

const MAX_PROBE_BYTES = 256 * 1024;

/**
 * The whole of an answer that cannot be long, with what was read of it before; null where it breaks off or
 * is long.
 */
export async function readShort(reply: HostReply, first: Uint8Array = NO_BYTES): Promise<Uint8Array | null> {
  const body = await readOn(reply, MAX_PROBE_BYTES, [first], reply.read());
  return body instanceof HostFault ? null : body;
}

/** OpenRouter and its like report `usage.cost` in USD. */
function reportsCharge(answer: Uint8Array): boolean {
  const { usage } = JSON.parse(Buffer.from(answer).toString("utf8")) as { usage?: { cost?: unknown } };
  return typeof usage?.cost === "number" && usage.cost > 0;
}
