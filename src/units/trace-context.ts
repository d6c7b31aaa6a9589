import type { RandomBytes } from "./random.ts";

/**
 * Where a request stands in a trace that spans several services, as the header `traceparent` tells it (W3C
 * Trace Context, level 2, section 3).
 */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** The caller's span: 16 lower-case hex digits, not all zero. */
  readonly spanId: string;
  /** Whether the caller records its part. */
  readonly sampled: boolean;
}

/** Null where the header is none: a receiver then starts a trace of its own. */
export function readTraceparent(header: string | null): TraceContext | null {
  if (header === null || header.length > MAX_LENGTH) return null;
  const [, version, traceId, spanId, flags, more] = FORM.exec(header) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return null;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return null;
  return { traceId: traceId!, spanId: spanId!, sampled: (Number.parseInt(flags!, 16) & SAMPLED) !== 0 };
}

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;

/** A request's place in a trace, as one who records spans sees it. */
export interface Trace extends TraceContext {
  /** Null where the request began the trace. */
  readonly parentSpanId: string | null;
}

/**
 * The next span of the trace that the client is in, or the first of a new one. `sampled` decides for a new
 * one.
 */
export function openTrace(
  parent: TraceContext | null,
  sampled: (parent: TraceContext | null, traceId: string) => boolean,
  random: RandomBytes,
): Trace {
  const traceId = parent?.traceId ?? hex(TRACE_BYTES, random);
  return {
    traceId,
    spanId: newSpanId(random),
    parentSpanId: parent?.spanId ?? null,
    sampled: sampled(parent, traceId),
  };
}

/** A span of its own beneath the given one. */
export const childSpan = (parent: TraceContext, random: RandomBytes): TraceContext => ({
  ...parent,
  spanId: newSpanId(random),
});

const newSpanId = (random: RandomBytes): string => hex(SPAN_BYTES, random);

/** Later versions may append members, which are ignored. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_LENGTH = 256;
const SAMPLED = 1;
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;

function hex(bytes: number, random: RandomBytes): string {
  for (;;) {
    const drawn = Buffer.from(random(new Uint8Array(bytes)));
    if (drawn.some((byte) => byte !== 0)) return drawn.toString("hex");
  }
}
