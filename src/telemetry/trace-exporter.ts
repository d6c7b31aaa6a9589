import type { FinishedRequest, RequestTrace } from "../ledger/receipt.ts";
import { atMost } from "../units/clock.ts";
import type { RandomBytes } from "../units/random.ts";
import { openTrace, readTraceparent, type Trace } from "../units/trace-context.ts";
import { Batches } from "./batches.ts";
import { type OtlpDeps, OtlpSender, resourceOf, SCOPE } from "./otlp-sender.ts";
import { isSampled, type TracingSettings } from "./otlp-settings.ts";
import { type Known, spansOf } from "./spans.ts";

/**
 * Sends the traces of requests to a collector, as OTLP over HTTP in JSON. OpenTelemetry's own SDK was measured and turned
 * down: docs/decisions/0007-tracing.md.
 */
export class TraceExporter extends Batches<SampledRequest> {
  private readonly sender: OtlpSender;

  constructor(
    private readonly settings: TracingSettings,
    private readonly deps: TraceExporterDeps,
  ) {
    super(deps.clock, { maxQueued: MAX_QUEUED, maxBatch: BATCH, delayMs: settings.delayMs });
    this.sender = new OtlpSender(settings, deps);
  }

  open(headers: Headers): Trace {
    const parent = readTraceparent(headers.get("traceparent"));
    return openTrace(parent, (from, id) => isSampled(this.settings, from, id), this.deps.random);
  }

  add(done: FinishedRequest): void {
    const { trace } = done;
    if (trace?.sampled === true) this.push([done, trace]);
  }

  /** Sends what is left, for at most `ms`; what did not arrive by then is lost. */
  async stop(ms: number): Promise<void> {
    this.sender.stop();
    await atMost(this.deps.clock, ms, this.flush());
  }

  protected leave(batch: readonly SampledRequest[]): Promise<boolean> {
    const spans = batch.flatMap(([done, trace]) => spansOf(done, trace, this.deps.known));
    const scopeSpans = [{ scope: SCOPE, spans }];
    return this.sender.send({ resourceSpans: [{ resource: resourceOf(this.settings), scopeSpans }] });
  }
}

type SampledRequest = readonly [FinishedRequest, RequestTrace];

export interface TraceExporterDeps extends OtlpDeps {
  readonly random: RandomBytes;
  readonly known: Known;
}

const MAX_QUEUED = 4_096;
const BATCH = 256;
