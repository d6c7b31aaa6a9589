import type { Route, SurfaceName } from "../catalog/catalog.ts";
import { type Refusal, refused } from "../errors/refusal.ts";
import { NO_BYTES } from "../surfaces/bytes.ts";
import type { AnswerMetadata, GenerationRequest, Pairing, StreamJudge } from "../surfaces/surface.ts";
import { ownHeaders } from "./destination.ts";
import { type ProbeDeps, readShort } from "./probe.ts";
import { redact } from "./redact.ts";
import { beginsWhole, HostFault, type HostReply, type Read } from "./transport.ts";

/**
 * Sends a route one short request in a language of its host's, as a client's would be sent, and reads the
 * answer as a client's would be read: what an operator wants to know before customers find it out. It costs a
 * few tokens at the host.
 */
export async function checkRoute(route: Route, spoken: SurfaceName, deps: ProbeDeps): Promise<RouteCheck> {
  const { transport, destinations, clock, surfaces } = deps;
  const probe = ask(route, spoken, deps);
  if (refused(probe)) return failed(null, probe.message);
  const startedMs = clock.elapsedMs();
  const exchange = transport.open({
    to: destinations.at(route.host, spoken, probe.stream),
    headers: ownHeaders(route.host, spoken, spoken, {}),
    body: probe.body,
  });
  let late = false;
  const timer = clock.after(ANSWER_MS, () => {
    late = true;
    exchange.cancel();
  });
  try {
    const reply = await exchange.reply;
    const check =
      reply instanceof HostFault
        ? failed(null, `${reply.kind}: ${reply.message}`)
        : reply.status >= 200 && reply.status <= 299
          ? await read(reply, probe, () => clock.elapsedMs() - startedMs)
          : failed(
              reply.status,
              surfaces[spoken].readHostError(reply.status, (await readShort(reply)) ?? NO_BYTES).message,
            );
    if (late) return failed(null, `no whole answer within ${ANSWER_MS / 1_000} s`);
    return check.kind === "failed" ? failed(check.status, redact(check.message, route.host)) : check;
  } finally {
    timer.cancel();
    exchange.cancel();
  }
}

export type RouteCheck =
  /** `firstTokenMs` null: it thought for all the tokens that it was given. */
  | { readonly kind: "streamed"; readonly firstTokenMs: number | null; readonly usage: boolean }
  /** As its quirk `no_stream` says. */
  | { readonly kind: "whole"; readonly ms: number }
  /** A whole answer, although it was asked to stream. */
  | { readonly kind: "unstreamed" }
  /** In the host's own words, which may repeat the probe: it was not a customer's. */
  | { readonly kind: "failed"; readonly status: number | null; readonly message: string };

/** The least that OpenAI takes in Responses. */
const MOST_TOKENS = 16;
const ANSWER_MS = 30_000;
const MOST_BYTES = 256 * 1024;

const QUESTIONS: Record<SurfaceName, object> = {
  "chat.completions": { max_tokens: MOST_TOKENS, messages: [{ role: "user", content: "Say hi." }] },
  responses: { max_output_tokens: MOST_TOKENS, input: "Say hi." },
  messages: { max_tokens: MOST_TOKENS, messages: [{ role: "user", content: "Say hi." }] },
};

const failed = (status: number | null, message: string): RouteCheck => ({ kind: "failed", status, message });

interface ProbeRequest {
  readonly stream: boolean;
  readonly body: Uint8Array;
  readonly request: GenerationRequest;
  readonly pair: Pairing;
  readonly asked: AnswerMetadata;
}

function ask(
  { host, model, quirks = host.quirks }: Route,
  spoken: SurfaceName,
  { surfaces, pairing, clock }: ProbeDeps,
): ProbeRequest | Refusal {
  const stream = quirks.noStream !== true;
  const words = JSON.stringify({ ...QUESTIONS[spoken], model, stream });
  const request = surfaces[spoken].readRequest(new TextEncoder().encode(words));
  if (refused(request)) return request;
  const pair = pairing(spoken, spoken);
  const body = pair.hostBody(request, {
    model,
    publicModel: model,
    stream,
    quirks,
    maxOutputTokens: null,
    defaultMaxOutputTokens: MOST_TOKENS,
  });
  if (refused(body)) return body;
  const asked = { publicModel: model, atS: Math.floor(clock.now() / 1_000) };
  return { stream, body: body.bytes, request, pair, asked };
}

async function read(
  reply: HostReply,
  { stream, request, pair, asked }: ProbeRequest,
  ms: () => number,
): Promise<RouteCheck> {
  const first = stream ? await reply.read() : NO_BYTES;
  if (first instanceof Uint8Array && (!stream || beginsWhole(first, reply))) {
    const whole = await readShort(reply, first);
    if (whole === null) return brokeOff(reply);
    const answer = pair.readReply(whole, request, asked);
    if (answer.kind !== "reply") return failed(reply.status, answer.error.message);
    return stream ? { kind: "unstreamed" } : { kind: "whole", ms: ms() };
  }
  const judge = pair.openStream(request, asked);
  const firstTokenMs = await readStream(reply, first, judge, ms);
  if (judge.fault !== null) return failed(reply.status, judge.fault.message);
  return judge.isComplete ? { kind: "streamed", firstTokenMs, usage: judge.usage !== null } : brokeOff(reply);
}

const brokeOff = ({ status }: HostReply): RouteCheck => failed(status, "its answer broke off");

/** Up to the end mark. Returns when the first token came. */
async function readStream(
  reply: HostReply,
  first: Read,
  judge: StreamJudge,
  ms: () => number,
): Promise<number | null> {
  let firstTokenMs: number | null = null;
  let length = 0;
  for (let next = first; length <= MOST_BYTES; next = await reply.read()) {
    if (next instanceof HostFault) return firstTokenMs;
    if (next === null) judge.end();
    else judge.push(next);
    if (judge.tokenSeen) firstTokenMs ??= ms();
    if (next === null || judge.fault !== null || judge.isComplete) return firstTokenMs;
    length += next.length;
  }
  return firstTokenMs;
}
