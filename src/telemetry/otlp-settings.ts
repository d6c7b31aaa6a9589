import { unescaped } from "../units/percent-encoding.ts";
import type { TraceContext } from "../units/trace-context.ts";

/**
 * OpenTelemetry's environment variables, as far as they mean something here ("OpenTelemetry Protocol
 * Exporter" and "General SDK Configuration"). Null: nobody asked for traces.
 */
export function tracingSettings(env: TracingEnvironment): TracingSettings | null {
  const target = otlpTarget(env, "TRACES");
  if (target === null) return null;
  const sampler = env.OTEL_TRACES_SAMPLER || "parentbased_always_on";
  return {
    ...target,
    asksParent: sampler.startsWith("parentbased_"),
    ratio: ratioOf(sampler, env.OTEL_TRACES_SAMPLER_ARG),
    delayMs: timeOf(env.OTEL_BSP_SCHEDULE_DELAY, 0, DEFAULT_DELAY_MS),
  };
}

/** The same for metrics. `instance` tells this process from others, whose sums are their own. */
export function metricExportSettings(env: TracingEnvironment, instance: string): MetricExportSettings | null {
  const target = otlpTarget(env, "METRICS");
  if (target === null) return null;
  return {
    ...target,
    resource: { "service.instance.id": instance, ...target.resource },
    intervalMs: timeOf(env.OTEL_METRIC_EXPORT_INTERVAL, MIN_INTERVAL_MS, DEFAULT_INTERVAL_MS),
  };
}

function otlpTarget(env: TracingEnvironment, signal: "TRACES" | "METRICS"): OtlpTarget | null {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env[`OTEL_${signal}_EXPORTER`] === "none")
    return null;
  const own = env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`];
  const url = own || beneath(env.OTEL_EXPORTER_OTLP_ENDPOINT, signal);
  if (url === null || url === "") return null;
  return {
    url,
    headers: {
      ...pairs(env.OTEL_EXPORTER_OTLP_HEADERS),
      ...pairs(env[`OTEL_EXPORTER_OTLP_${signal}_HEADERS`]),
    },
    resource: {
      "service.name": "text-generation-gateway",
      ...pairs(env.OTEL_RESOURCE_ATTRIBUTES),
      ...(env.OTEL_SERVICE_NAME ? { "service.name": env.OTEL_SERVICE_NAME } : {}),
    },
  };
}

export type TracingEnvironment = Readonly<Record<string, string | undefined>>;

/** Where one kind of telemetry is sent, and what is said of its sender. */
export interface OtlpTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
}

export interface MetricExportSettings extends OtlpTarget {
  readonly intervalMs: number;
}

export interface TracingSettings extends OtlpTarget {
  /** Whether a client that is in a trace decides for the gateway too. */
  readonly asksParent: boolean;
  /** The part of the other requests that is recorded. */
  readonly ratio: number;
  /** Between two batches. */
  readonly delayMs: number;
}

/**
 * Services that see the same trace and have the same ratio decide alike, because the decision is the trace
 * id's.
 */
export function isSampled(
  { asksParent, ratio }: TracingSettings,
  parent: TraceContext | null,
  traceId: string,
): boolean {
  if (asksParent && parent !== null) return parent.sampled;
  return Number.parseInt(traceId.slice(-RATIO_DIGITS), 16) < ratio * 16 ** RATIO_DIGITS;
}

const RATIO_DIGITS = 8;

const beneath = (endpoint: string | undefined, signal: string): string | null =>
  endpoint ? `${endpoint.replace(/\/+$/, "")}/v1/${signal.toLowerCase()}` : null;

function ratioOf(sampler: string, written: string | undefined): number {
  if (sampler.endsWith("always_off")) return 0;
  if (!sampler.endsWith("traceidratio")) return 1;
  const ratio = Number(written || 1);
  return ratio >= 0 && ratio <= 1 ? ratio : 1;
}

function timeOf(written: string | undefined, leastMs: number, fallbackMs: number): number {
  const ms = Number(written || fallbackMs);
  return ms >= leastMs && ms <= MAX_TIME_MS ? ms : fallbackMs;
}

const DEFAULT_DELAY_MS = 5_000;
const DEFAULT_INTERVAL_MS = 60_000;
const MIN_INTERVAL_MS = 1_000;
const MAX_TIME_MS = 3_600_000;

/** `a=1,b=2`, with values as in URLs. */
function pairs(written: string | undefined): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pair of written?.split(",") ?? []) {
    const at = pair.indexOf("=");
    if (at > 0) found[pair.slice(0, at).trim()] = unescaped(pair.slice(at + 1).trim());
  }
  return found;
}
