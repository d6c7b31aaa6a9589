import type { FinishedRequest, RequestTrace } from "../ledger/receipt.ts";
import { atMost, type Timer } from "../units/clock.ts";
import type { RandomBytes } from "../units/random.ts";
import { openTrace, readTraceparent, type Trace } from "../units/trace-context.ts";
import { type OtlpDeps, OtlpSender, resourceOf, SCOPE } from "./otlp-sender.ts";
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
  private readonly sender: OtlpSender;

  constructor(
    private readonly settings: TracingSettings,
    private readonly deps: TraceExporterDeps,
  ) {
    this.sender = new OtlpSender(settings, deps);
  }

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
    this.sender.stop();
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
      if (!(await this.sender.send(this.requestBody(spans)))) this.dropped += batch.length;
    }
  }

  private requestBody(spans: readonly Span[]): object {
    const scopeSpans = [{ scope: SCOPE, spans }];
    return { resourceSpans: [{ resource: resourceOf(this.settings), scopeSpans }] };
  }
}

export interface TraceExporterDeps extends OtlpDeps {
  readonly random: RandomBytes;
  readonly known: Known;
}

const MAX_QUEUED = 4_096;
const BATCH = 256;
