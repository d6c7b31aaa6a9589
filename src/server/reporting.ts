import { isNameable } from "../catalog/closest-id.ts";
import type { Config } from "../config/config.ts";
import type { FinishedRequest } from "../ledger/receipt.ts";
import { type MetricSources, Metrics } from "../telemetry/metrics.ts";
import { type LogWriter, RequestLog } from "../telemetry/request-log.ts";
import type { Known } from "../telemetry/spans.ts";
import { TraceExporter } from "../telemetry/trace-exporter.ts";
import { tracingSettings } from "../telemetry/tracing-settings.ts";
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

  constructor(
    private readonly active: Pick<ActiveConfig, "config">,
    deps: ReportingDeps,
    measured: Omit<MetricSources, "knows" | "dropped">,
  ) {
    const { writeLog, clock } = deps;
    const knows = (model: string) => isNameable(model, active.config.catalog);
    this.requestLog = writeLog === null ? null : new RequestLog(writeLog, clock, knows);
    this.tracing = openTracing(deps, { model: knows, server: (host) => serverOf(host, active.config) });
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
  }

  /** Resolves once all that was added is written. */
  async flushLog(): Promise<void> {
    await this.requestLog?.flush();
  }

  /** Sends the spans that are left, for at most `ms`. */
  async stopTracing(ms: number): Promise<void> {
    await this.tracing?.stop(ms);
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

function serverOf(id: string, { catalog }: Config): ReturnType<Known["server"]> {
  const url = URL.parse(catalog.hosts.get(id)?.baseUrl ?? "");
  if (url === null) return null;
  return { address: url.hostname, port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) };
}
