import { type LiveRoutes, liveTogether } from "../../hosts/route-report.ts";
import { lasting, type Metric, togetherOf } from "../../telemetry/metric.ts";
import { labels, sampled } from "../../telemetry/series.ts";
import { atMost, type Clock } from "../../units/clock.ts";
import { ANSWER_MS, KEEPER, type WorkerState } from "./messages.ts";

/**
 * Combines what all workers say about themselves into one answer, whichever of them was asked. Each is asked
 * every time, with a deadline that a scraper hardly notices; a silent one is left out. Counters, however,
 * keep their last values, even those of a worker that has ended: a sum that fell and came back would
 * look like that many new requests.
 */
export class WorkerReport {
  /** Resolves with the workers that kept silent. */
  private running: Promise<ReadonlySet<number>> | null = null;
  /** By worker: what its present process said last. */
  private readonly latest = new Map<number, WorkerState>();
  /** Metrics of processes that have ended. */
  private past: readonly Metric[] = [];
  private readonly restarts = { keeper: 0, workers: 0 };

  constructor(
    private readonly clock: Clock,
    /** And the keeper of their database, where there is one. */
    private readonly workers: () => readonly ReportingWorker[],
  ) {}

  async metrics(): Promise<Metric[]> {
    const silent = await this.round();
    const reports = [...this.latest].map(([worker, { metrics }]) => ({
      worker: worker === KEEPER ? ("keeper" as const) : worker,
      metrics: silent.has(worker) ? lasting(metrics) : metrics,
    }));
    return [...togetherOf([...reports, { worker: 0, metrics: this.past }]), ...this.own(silent)];
  }

  async hosts(): Promise<LiveRoutes> {
    const silent = await this.round();
    return liveTogether(
      [...this.latest].flatMap(([worker, { hosts }]) => (silent.has(worker) ? [] : [hosts])),
    );
  }

  /** The worker's process has ended; another is started in its place. */
  ended(worker: number): void {
    const last = lasting(this.latest.get(worker)?.metrics ?? []);
    this.latest.delete(worker);
    this.past = togetherOf([
      { worker, metrics: this.past },
      { worker, metrics: last },
    ]).map((metric) => ({ ...metric, samples: metric.samples.slice(0, MAX_PAST_SAMPLES) }));
    this.restarts[worker === KEEPER ? "keeper" : "workers"] += 1;
  }

  /** Callers during a round share its result. */
  private round(): Promise<ReadonlySet<number>> {
    this.running ??= this.runRound().finally(() => {
      this.running = null;
    });
    return this.running;
  }

  private async runRound(): Promise<ReadonlySet<number>> {
    const silent = new Set<number>();
    const answers = this.workers().map(async ({ number, requestState }) => {
      if (requestState === null) return;
      silent.add(number);
      const state = await requestState();
      if (state === undefined) return;
      silent.delete(number);
      // An answer that is too late for its round is still the newest one known.
      this.latest.set(number, state);
    });
    await atMost(this.clock, ANSWER_MS, Promise.all(answers));
    return silent;
  }

  private own(silent: ReadonlySet<number>): Metric[] {
    const all = this.workers();
    const workers = all.filter(({ number }) => number !== KEEPER);
    const states = { answered: 0, silent: 0, starting: 0 };
    for (const { number, requestState } of workers)
      states[requestState === null ? "starting" : silent.has(number) ? "silent" : "answered"] += 1;
    const restarts = (name: string, what: string, count: number) =>
      sampled({ name, help: `${what} that ended and were started again.`, type: "counter" }, [["", count]]);
    return [
      sampled(
        {
          name: "gateway_workers",
          help: "Workers by their reply when these figures were collected. The gauges of a silent one are missing here.",
        },
        Object.entries(states).map(([state, count]) => [labels({ state }), count]),
      ),
      restarts("gateway_worker_restarts_total", "Workers", this.restarts.workers),
      ...(all.length === workers.length
        ? []
        : [restarts("gateway_keeper_restarts_total", "Keepers of the database", this.restarts.keeper)]),
    ];
  }
}

export interface ReportingWorker {
  readonly number: number;
  /** Requests its state: undefined if it ends, or owes too many answers. Null while it does not serve. */
  readonly requestState: (() => Promise<WorkerState | undefined>) | null;
}

/** Samples of one metric: the labels of models that were configured once and of hosts that are gone add up. */
const MAX_PAST_SAMPLES = 100_000;
