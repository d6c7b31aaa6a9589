import type { FinishedRequest, RequestTrace } from "../ledger/receipt.ts";
import { atMost, type Clock, pause, type Timer } from "../units/clock.ts";
import type { RandomBytes } from "../units/random.ts";
import { openTrace, readTraceparent, type Trace } from "../units/trace-context.ts";
import { type Known, type Span, spansOf } from "./spans.ts";
import { isSampled, type TracingSettings } from "./tracing-settings.ts";

/**
 * Sends the traces of requests to a collector, as OTLP over HTTP in JSON, in batches, off the requests' path.
 * A slow or missing collector costs spans, which are counted, never a request. OpenTelemetry's own SDK was
 * measured and turned down: docs/decisions/0007-tracing.md.
 */
export class TraceExporter {
  /** Number of requests whose spans were not sent. */
  dropped = 0;
  private queue: [FinishedRequest, RequestTrace][] = [];
  private timer: Timer | null = null;
  private sending: Promise<void> | null = null;
  private stopped = false;

  constructor(
    private readonly settings: TracingSettings,
    private readonly deps: TraceExporterDeps,
  ) {}

  open(headers: Headers): Trace {
    const parent = readTraceparent(headers.get("traceparent"));
    return openTrace(parent, (from, id) => isSampled(this.settings, from, id), this.deps.random);
  }

  add(done: FinishedRequest): void {
    const { trace } = done;
    if (trace === null || !trace.sampled) return;
    if (this.queue.length >= MAX_QUEUED) {
      this.dropped += 1;
      return;
    }
    this.queue.push([done, trace]);
    if (this.queue.length >= BATCH) this.begin();
    else this.timer ??= this.deps.clock.after(this.settings.delayMs, () => this.begin());
  }

  /** Sends what is left, for at most `ms`; what did not arrive by then is lost. */
  async stop(ms: number): Promise<void> {
    this.stopped = true;
    this.begin();
    await atMost(this.deps.clock, ms, this.sending);
  }

  private begin(): void {
    this.timer?.cancel();
    this.timer = null;
    this.sending ??= this.sendAll().finally(() => {
      this.sending = null;
    });
  }

  private async sendAll(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, BATCH);
      const { known } = this.deps;
      const spans = batch.flatMap(([done, trace]) => spansOf(done, trace, known));
      if (!(await this.send(this.requestBody(spans)))) this.dropped += batch.length;
    }
  }

  /** OTLP, "Failures": some statuses are worth another try. */
  private async send(body: string): Promise<boolean> {
    for (let attempt = 0; ; attempt++) {
      const status = await this.post(body);
      if (status !== null && status.code >= 200 && status.code <= 299) return true;
      const again = status === null || RETRYABLE.has(status.code);
      if (!again || this.stopped || attempt + 1 >= MAX_ATTEMPTS) return false;
      await pause(
        this.deps.clock,
        Math.min(status?.retryAfterMs ?? BACKOFF_MS * 2 ** attempt, MAX_BACKOFF_MS),
      );
    }
  }

  private async post(body: string): Promise<{ code: number; retryAfterMs: number | null } | null> {
    const { url, headers } = this.settings;
    try {
      const response = await this.deps.fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
      const retryAfterS = Number(response.headers.get("retry-after") ?? Number.NaN);
      return {
        code: response.status,
        retryAfterMs: retryAfterS >= 0 ? retryAfterS * 1_000 : null,
      };
    } catch {
      return null;
    }
  }

  private requestBody(spans: readonly Span[]): string {
    const attributes = Object.entries(this.settings.resource).map(([key, value]) => ({
      key,
      value: { stringValue: value },
    }));
    const scopeSpans = [{ scope: { name: "text-generation-gateway" }, spans }];
    return JSON.stringify({ resourceSpans: [{ resource: { attributes }, scopeSpans }] });
  }
}

export interface TraceExporterDeps {
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly known: Known;
  fetch(url: string, init: RequestInit): Promise<Response>;
}

const MAX_QUEUED = 4_096;
const BATCH = 256;
const TIMEOUT_MS = 10_000;
const MAX_ATTEMPTS = 4;
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
const RETRYABLE = new Set([408, 429, 502, 503, 504]);
