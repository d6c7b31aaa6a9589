import { lasting, type Metric, togetherOf } from "../telemetry/metric.ts";
import { labels, looked } from "../telemetry/series.ts";
import type { Clock } from "../units/clock.ts";

/**
 * The metrics of all workers as one answer, whichever of them was asked. Each is asked anew, for as long as a scraper
 * hardly notices; of one that keeps silent, what only grows stands as it was last heard, and its gauges are left out. So
 * is what an ended worker had counted: a sum that fell and came back would be read as that many new requests.
 */
export class RollCall {
  private round = 0;
  private running: Promise<Metric[]> | null = null;
  /** Whose answer the present round waits for. */
  private readonly missing = new Set<number>();
  private complete: () => void = () => {};
  /** By worker: what its present process said last. */
  private readonly heard = new Map<number, readonly Metric[]>();
  /** Of processes that have ended. */
  private past: readonly Metric[] = [];
  private restarts = 0;

  constructor(
    private readonly clock: Clock,
    private readonly workers: () => readonly Member[],
  ) {}

  /** Who asks while a round is running shares its answer. */
  metrics(): Promise<Metric[]> {
    this.running ??= this.ask().finally(() => {
      this.running = null;
    });
    return this.running;
  }

  told(worker: number, round: number, metrics: readonly Metric[]): void {
    // An answer that comes too late for its round is still the newest that is known.
    this.heard.set(worker, metrics);
    if (round === this.round) this.answered(worker);
  }

  /** The worker's process has ended; another is begun in its place. */
  ended(worker: number): void {
    const said = lasting(this.heard.get(worker) ?? []);
    this.heard.delete(worker);
    this.past = togetherOf([
      { worker, metrics: this.past },
      { worker, metrics: said },
    ]).map((metric) => ({ ...metric, samples: metric.samples.slice(0, MAX_PAST_SAMPLES) }));
    this.restarts += 1;
    this.answered(worker);
  }

  private async ask(): Promise<Metric[]> {
    this.round += 1;
    const serving = this.workers().filter((worker) => worker.tell !== null);
    for (const { number } of serving) this.missing.add(number);
    for (const { tell } of serving) tell!(this.round);
    await this.allAnswered();
    const silent = new Set(this.missing);
    this.missing.clear();
    return this.sum(silent);
  }

  private async allAnswered(): Promise<void> {
    if (this.missing.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.complete = resolve;
    const timer = this.clock.after(DEADLINE_MS, resolve);
    await promise;
    timer.cancel();
  }

  private answered(worker: number): void {
    this.missing.delete(worker);
    if (this.missing.size === 0) this.complete();
  }

  private sum(silent: ReadonlySet<number>): Metric[] {
    const reports = [...this.heard].map(([worker, said]) => ({
      worker,
      metrics: silent.has(worker) ? lasting(said) : said,
    }));
    return [...togetherOf([...reports, { worker: 0, metrics: this.past }]), ...this.own(silent.size)];
  }

  private own(silent: number): Metric[] {
    const workers = this.workers();
    const starting = workers.filter(({ tell }) => tell === null).length;
    const states = { answered: workers.length - starting - silent, silent, starting };
    return [
      looked(
        {
          name: "gateway_workers",
          help: "Workers by what they did when these figures were asked for. Of a silent one, gauges are missing here.",
        },
        Object.entries(states).map(([state, count]) => [labels({ state }), count]),
      ),
      looked(
        {
          name: "gateway_worker_restarts_total",
          help: "Workers that ended and were begun again.",
          type: "counter",
        },
        [["", this.restarts]],
      ),
    ];
  }
}

export interface Member {
  readonly number: number;
  /** Asks it for its metrics; null while it does not serve. */
  readonly tell: ((round: number) => void) | null;
}

/** A worker that is alive answers between two turns of its loop. */
const DEADLINE_MS = 500;
/** Of one metric: the labels of models that were configured once and of hosts that are gone add up. */
const MAX_PAST_SAMPLES = 100_000;
