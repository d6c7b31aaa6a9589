import type { Route, SurfaceName } from "../catalog/catalog.ts";
import { readHostError } from "../surfaces/host-error.ts";
import { NO_BYTES } from "../surfaces/json/bytes.ts";
import type { StreamJudge } from "../surfaces/surface.ts";
import { withoutByteOrderMark } from "../units/byte-order-mark.ts";
import { refused } from "../units/errors/refusal.ts";
import { type ProbeDeps, probeRoute, readShort, type SentProbe } from "./probe.ts";
import { redact } from "./redact.ts";
import { beginsWhole, HostFault, type HostReply, type Read } from "./transport.ts";

/**
 * Sends a route one short request in a language of its host's, and reads the answer as a client's would be read: what
 * an operator wants to know before customers find it out. It costs a few tokens at the host.
 */
export async function checkRoute(route: Route, spoken: SurfaceName, deps: ProbeDeps): Promise<RouteCheck> {
  const { clock } = deps;
  const stream = (route.quirks ?? route.host.quirks).noStream !== true;
  const question = { text: "Say hi.", tokens: MAX_TOKENS, stream, withinMs: ANSWER_MS };
  const startedMs = clock.elapsedMs();
  const check = await probeRoute(route, spoken, question, deps, async (reply, sent) => {
    if (reply.status >= 200 && reply.status <= 299)
      return read(reply, stream, sent, () => clock.elapsedMs() - startedMs);
    const body = (await readShort(reply)) ?? NO_BYTES;
    return failed(reply.status, readHostError(reply.status, body).message);
  });
  if (refused(check)) return failed(null, check.message);
  if (check === "late") return failed(null, `no whole answer within ${ANSWER_MS / 1_000} s`);
  const found = check instanceof HostFault ? failed(null, `${check.kind}: ${check.message}`) : check;
  return found.kind === "failed" ? failed(found.status, redact(found.message, route.host)) : found;
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

const MAX_TOKENS = 16;
const ANSWER_MS = 30_000;
const MAX_BYTES = 256 * 1024;

const failed = (status: number | null, message: string): RouteCheck => ({ kind: "failed", status, message });

async function read(
  reply: HostReply,
  stream: boolean,
  { request, pair, metadata }: SentProbe,
  ms: () => number,
): Promise<RouteCheck> {
  const first = stream ? await reply.read() : NO_BYTES;
  if (first instanceof Uint8Array && (!stream || beginsWhole(first, reply))) {
    const whole = await readShort(reply, first);
    if (whole === null) return brokeOff(reply);
    const answer = pair.readReply(withoutByteOrderMark(whole), request, metadata);
    if (answer.kind !== "reply") return failed(reply.status, answer.error.message);
    return stream ? { kind: "unstreamed" } : { kind: "whole", ms: ms() };
  }
  const judge = pair.openStream(request, metadata);
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
  for (let next = first; length <= MAX_BYTES; next = await reply.read()) {
    if (next instanceof HostFault) return firstTokenMs;
    if (next === null) judge.end();
    else judge.push(next);
    if (judge.tokenSeen) firstTokenMs ??= ms();
    if (next === null || judge.fault !== null || judge.isComplete) return firstTokenMs;
    length += next.length;
  }
  return firstTokenMs;
}
