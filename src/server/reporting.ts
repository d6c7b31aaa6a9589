import { isNameable } from "../catalog/closest-id.ts";
import type { Config } from "../config/config.ts";
import type { FinishedRequest } from "../ledger/receipt.ts";
import { MetricExporter } from "../telemetry/metric-exporter.ts";
import { type MetricSources, Metrics } from "../telemetry/metrics.ts";
import { metricExportSettings, tracingSettings } from "../telemetry/otlp-settings.ts";
import { type LogWriter, RequestLog } from "../telemetry/request-log.ts";
import type { Known } from "../telemetry/spans.ts";
import { TraceExporter } from "../telemetry/trace-exporter.ts";
import type { Clock } from "../units/clock.ts";
import type { Log } from "../units/log.ts";
import type { RandomBytes } from "../units/random.ts";
import type { Trace } from "../units/trace-context.ts";
import type { ActiveConfig } from "./active-config.ts";

/** What the operator gets of requests: metrics, the request log and traces, each where it is wanted. */
export class RequestReporting {
  readonly metrics: Metrics;
  private readonly requestLog: RequestLog | null;
  private readonly tracing: TraceExporter | null;
  private readonly metricExport: MetricExporter | null;

  constructor(
    private readonly active: Pick<ActiveConfig, "config">,
    deps: ReportingDeps,
    measured: Omit<MetricSources, "knows" | "dropped">,
  ) {
    const { writeLog, clock } = deps;
    const knows = (model: string) => isNameable(model, active.config.catalog);
    this.requestLog = writeLog === null ? null : new RequestLog(writeLog, clock, knows);
    const known = { model: knows, server: (host: string) => serverOf(host, active.config) };
    this.tracing = openTracing(deps, known);
    this.metricExport = openMetricExport(deps, known);
    this.metrics = new Metrics({
      ...measured,
      knows,
      dropped: () => ({
        ...(this.requestLog === null ? {} : { log: this.requestLog.dropped }),
        ...(this.tracing === null ? {} : { trace: this.tracing.dropped }),
      }),
    });
  }

  openTrace(headers: Headers): Trace | null {
    return this.tracing?.open(headers) ?? null;
  }

  finished(done: FinishedRequest): void {
    this.metrics.finished(done);
    if (this.active.config.log === "json") this.requestLog?.add(done);
    this.tracing?.add(done);
    this.metricExport?.add(done);
  }

  /** Resolves once all that was added is written. */
  async flushLog(): Promise<void> {
    await this.requestLog?.flush();
  }

  /** Sends what a collector lacks, for at most `ms`. */
  async stopSending(ms: number): Promise<void> {
    await Promise.all([this.tracing?.stop(ms), this.metricExport?.stop(ms)]);
  }
}

interface ReportingDeps {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
  /** Takes the lines of the request log; null where there is none. */
  readonly writeLog: LogWriter | null;
}

function openTracing({ env, clock, random, log }: ReportingDeps, known: Known): TraceExporter | null {
  const settings = tracingSettings(env);
  if (settings === null) return null;
  // Headers may hold a secret, and so may an address.
  log("tracing", { host: URL.parse(settings.url)?.host ?? null });
  return new TraceExporter(settings, { clock, random, known, fetch });
}

function openMetricExport({ env, clock, random, log }: ReportingDeps, known: Known): MetricExporter | null {
  const settings = metricExportSettings(env, Buffer.from(random(new Uint8Array(16))).toString("hex"));
  if (settings === null) return null;
  log("metric export", { host: URL.parse(settings.url)?.host ?? null });
  return new MetricExporter(settings, { clock, known, fetch });
}

function serverOf(id: string, { catalog }: Config): ReturnType<Known["server"]> {
  const url = URL.parse(catalog.hosts.get(id)?.baseUrl ?? "");
  if (url === null) return null;
  return { address: url.hostname, port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) };
}
