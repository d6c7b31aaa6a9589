import type { FinishedRequest } from "../ledger/receipt.ts";
import { atMost, type Clock, type EpochMs } from "../units/clock.ts";
import { Rounds } from "../units/rounds.ts";
import { type OtlpDeps, OtlpSender, resourceOf, SCOPE } from "./otlp-sender.ts";
import type { MetricExportSettings } from "./otlp-settings.ts";
import { Distribution } from "./series.ts";
import { type Attribute, attributes, type Known, nanos } from "./spans.ts";

/**
 * Sends durations and tokens of requests to a collector, as histograms by the names and bounds of OpenTelemetry's
 * conventions for generative AI ("Semantic conventions for generative AI metrics"). They count from the start of the
 * process, so what a collector missed is in what it gets next.
 */
export class MetricExporter {
  private readonly series = new Map<string, GenAiSeries>();
  private readonly sender: OtlpSender;
  private readonly rounds: Rounds;
  private readonly startedAt: EpochMs;

  constructor(
    private readonly settings: MetricExportSettings,
    private readonly deps: MetricExporterDeps,
  ) {
    this.sender = new OtlpSender(settings, deps);
    this.startedAt = deps.clock.now();
    this.rounds = new Rounds(deps.clock, settings.intervalMs, () => this.send());
  }

  add(done: FinishedRequest): void {
    const { totalMs, host, tokens } = done;
    const { duration, input, output } = this.seriesOf(done);
    if (totalMs !== null) duration.observe(totalMs / 1_000);
    if (host === null) return;
    input.observe(tokens.input + tokens.cacheRead + tokens.cacheWrite);
    output.observe(tokens.output);
  }

  /** Sends what there is, for at most `ms`. */
  async stop(ms: number): Promise<void> {
    this.sender.stop();
    void this.rounds.stop();
    await atMost(this.deps.clock, ms, this.send());
  }

  private async send(): Promise<void> {
    if (this.series.size === 0) return;
    const time = {
      startTimeUnixNano: nanos(this.startedAt),
      timeUnixNano: nanos(this.deps.clock.now()),
    };
    const points = (kind: "duration" | "input" | "output", type: Attribute[]) =>
      [...this.series.values()].flatMap((series) => pointOf(series[kind], [...series.about, ...type], time));
    const metrics = [
      histogram("gen_ai.client.operation.duration", "s", points("duration", [])),
      histogram("gen_ai.client.token.usage", "{token}", [
        ...points("input", attributes({ "gen_ai.token.type": "input" })),
        ...points("output", attributes({ "gen_ai.token.type": "output" })),
      ]),
    ];
    await this.sender.send({
      resourceMetrics: [{ resource: resourceOf(this.settings), scopeMetrics: [{ scope: SCOPE, metrics }] }],
    });
  }

  private seriesOf({ modelRequested, model, host, errorCode }: FinishedRequest): GenAiSeries {
    const { known } = this.deps;
    const requested = known.model(modelRequested) ? modelRequested : "unknown";
    const key = `${requested}\n${model}\n${host}\n${errorCode}`;
    const isOver = !this.series.has(key) && this.series.size >= MAX_SERIES;
    return this.series.getOrInsertComputed(isOver ? OTHERS : key, () => {
      const server = host === null ? null : known.server(host);
      const about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": requested,
        "gen_ai.response.model": model,
        "gen_ai.provider.name": host,
        "server.address": server?.address ?? null,
        "server.port": server?.port ?? null,
        "error.type": errorCode,
      };
      return {
        about: attributes(isOver ? { "otel.metric.overflow": true } : about),
        duration: new Distribution(SECONDS),
        input: new Distribution(TOKENS),
        output: new Distribution(TOKENS),
      };
    });
  }
}

interface MetricExporterDeps extends OtlpDeps {
  readonly clock: Clock;
  readonly known: Known;
}

interface GenAiSeries {
  readonly about: readonly Attribute[];
  readonly duration: Distribution;
  readonly input: Distribution;
  readonly output: Distribution;
}

const histogram = (name: string, unit: string, dataPoints: readonly object[]) => ({
  name,
  unit,
  histogram: { aggregationTemporality: CUMULATIVE, dataPoints },
});

function pointOf(
  { counts, sum, bounds }: Distribution,
  about: readonly Attribute[],
  time: { readonly startTimeUnixNano: string; readonly timeUnixNano: string },
): object[] {
  const count = counts.reduce((all, some) => all + some, 0);
  if (count === 0) return [];
  return [
    {
      ...time,
      attributes: about,
      count: String(count),
      sum,
      bucketCounts: [...counts].map(String),
      explicitBounds: bounds,
    },
  ];
}

const CUMULATIVE = 2;
const OTHERS = "";
/** Models times hosts times errors; beyond it, one series for all others. */
const MAX_SERIES = 2_000;
/** As the conventions have them. */
const SECONDS = Array.from({ length: 14 }, (_, at) => 2 ** at / 100);
const TOKENS = Array.from({ length: 14 }, (_, at) => 4 ** at);
