import type { AttemptRecord, FinishedRequest, RequestTrace } from "../ledger/receipt.ts";
import { ERRORS } from "../units/errors/codes.ts";
import { usdFromNano } from "../units/usd.ts";
import { statusOf } from "./request-log.ts";

/**
 * The spans of one request in OTLP's JSON form: one of the gateway's own, and beneath it one for each host
 * that was asked, named by OpenTelemetry's conventions for generative AI ("Semantic conventions for
 * generative client AI spans"). They carry what the request log carries, and nothing that it leaves out.
 */
export function spansOf(done: FinishedRequest, trace: RequestTrace, known: Known): Span[] {
  const { modelRequested, errorCode, totalMs } = done;
  const requested = known.model(modelRequested) ? modelRequested : "unknown";
  const endMs = trace.startedAt + (totalMs ?? 0);
  const own: Span = {
    traceId: trace.traceId,
    spanId: trace.spanId,
    ...(trace.parentSpanId === null ? {} : { parentSpanId: trace.parentSpanId }),
    name: `chat ${requested}`,
    kind: SERVER,
    startTimeUnixNano: nanos(trace.startedAt),
    endTimeUnixNano: nanos(endMs),
    attributes: attributes({
      ...common(requested),
      ...answered(done),
      "gen_ai.conversation.id": trace.conversation,
      "gen_ai.request.stream": done.stream ? true : null,
      "gen_ai.response.time_to_first_chunk": firstChunk(done),
      "http.request.method": "POST",
      "http.route": ROUTES[done.surface],
      "http.response.status_code": statusOf(done),
      "error.type": errorCode,
      "gateway.receipt": done.id,
      "gateway.key_id": done.keyId,
      "gateway.surface": done.surface,
      "gateway.state": done.state,
      "gateway.stream": done.stream,
      "gateway.cost_usd": fraction(usdFromNano(done.cost)),
      "gateway.first_token_ms": done.firstTokenMs === null ? null : Math.round(done.firstTokenMs),
    }),
    // A refusal that the client brought about is not an error of the server (HTTP conventions, "Status").
    status: errorCode !== null && ERRORS[errorCode].status >= 500 ? FAILED : UNSET,
  };
  const attempts = done.attempts.flatMap((one) => attemptSpan(one, done, trace, { endMs, known }));
  return [own, ...attempts];
}

/** What is in the catalog. */
export interface Known {
  model(name: string): boolean;
  /** Where the host listens. */
  server(host: string): { readonly address: string; readonly port: number } | null;
}

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number };
}

export interface Attribute {
  readonly key: string;
  readonly value:
    | { readonly stringValue: string }
    | { readonly intValue: string }
    | { readonly doubleValue: number }
    | { readonly boolValue: boolean };
}

const SERVER = 2;
const CLIENT = 3;
const UNSET = {};
const FAILED = { code: 2 };

const ROUTES: Readonly<Record<string, string>> = {
  "chat.completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

function attemptSpan(
  { host, model, outcome, ms, span, status, fault }: AttemptRecord,
  done: FinishedRequest,
  trace: RequestTrace,
  { endMs, known }: { readonly endMs: number; readonly known: Known },
): Span[] {
  if (span === undefined) return [];
  const startMs = trace.startedAt + span.startedMs - trace.startedMs;
  const served = outcome === "opened" || outcome === "answered";
  const failed = outcome === "refused" || outcome === "unreachable" || outcome === "silent";
  const server = known.server(host);
  return [
    {
      traceId: trace.traceId,
      spanId: span.id,
      parentSpanId: trace.spanId,
      name: `chat ${model}`,
      kind: CLIENT,
      startTimeUnixNano: nanos(startMs),
      // The time of an attempt ends with its first token; the host's work on a stream does not.
      endTimeUnixNano: nanos(outcome === "opened" ? endMs : startMs + ms),
      attributes: attributes({
        ...common(model),
        ...(served ? answered(done) : { "gen_ai.provider.name": host }),
        "server.address": server?.address ?? null,
        "server.port": server?.port ?? null,
        "error.type": served ? null : (status?.toString() ?? fault ?? outcome),
        "http.response.status_code": status ?? null,
        "gateway.outcome": outcome,
      }),
      status: failed ? FAILED : UNSET,
    },
  ];
}

const common = (requested: string) => ({
  "gen_ai.operation.name": "chat",
  "gen_ai.request.model": requested,
});

/** Who served, and what it used; the prompt's tokens include the cached ones, as the conventions want it. */
function answered({ host, model, tokens }: FinishedRequest) {
  if (host === null) return {};
  return {
    "gen_ai.provider.name": host,
    "gen_ai.response.model": model,
    "gen_ai.usage.input_tokens": tokens.input + tokens.cacheRead + tokens.cacheWrite,
    "gen_ai.usage.output_tokens": tokens.output,
    "gen_ai.usage.cache_read.input_tokens": tokens.cacheRead,
    "gen_ai.usage.cache_creation.input_tokens": tokens.cacheWrite,
    "gen_ai.usage.reasoning.output_tokens": tokens.reasoning,
  };
}

/** In seconds; whole answers have none. */
const firstChunk = ({ stream, firstTokenMs }: FinishedRequest) =>
  stream && firstTokenMs !== null ? fraction(Math.round(firstTokenMs) / 1_000) : null;

type AttributeValue = string | number | boolean | Fraction | null;

export function attributes(values: Readonly<Record<string, AttributeValue | undefined>>): Attribute[] {
  const written: Attribute[] = [];
  for (const [key, value] of Object.entries(values)) {
    if (value === null || value === undefined) continue;
    if (typeof value === "string") written.push({ key, value: { stringValue: value } });
    else if (typeof value === "boolean") written.push({ key, value: { boolValue: value } });
    else if (typeof value === "number") written.push({ key, value: { intValue: String(value) } });
    else written.push({ key, value: { doubleValue: value.fraction } });
  }
  return written;
}

/** A number that is not whole even where it happens to be. */
interface Fraction {
  readonly fraction: number;
}

const fraction = (value: number): Fraction => ({ fraction: value });

/** Microseconds since 1970 are the finest that a double holds exactly. */
export const nanos = (ms: number): string => `${Math.round(ms * 1_000)}000`;
