import { boundedCache } from "../../units/bounded-cache.ts";
import type { EpochMs } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import { MergingFlight } from "../../units/merging-flight.ts";
import type { KeyStore } from "./key-store.ts";
import type { Actor } from "./root.ts";
import {
  hasEnded,
  isSameLimits,
  type JoiningRequest,
  joinRun,
  type RunLimits,
  revisedRun,
  runSubject,
  type StoredRun,
  stricter,
  TOUCH_MS,
} from "./run.ts";

/**
 * The runs that requests name, as the store has them. One that is remembered, and not tightened by the
 * request, costs no wait. Its limits are in one place for all of its requests, so what tightens them binds
 * those that are open.
 */
export class Runs {
  private readonly known = boundedCache<string, AgentRun>(
    MAX_KNOWN,
    // It would no longer learn of a change.
    (run) => run.forget(),
  );
  /** By run and by what the request sets; every lowered limit has all processes give back what they were granted. */
  private readonly joining = new MergingFlight<string, JoiningRequest, JoinedRun>((one, other) => ({
    ...other,
    spec: { ...other.spec, ...stricter(one.spec, other.spec) },
  }));
  /** How often each run that is being read was changed meanwhile; bounded by the requests that read. */
  private readonly reading = new Map<string, RunReads>();

  constructor(private readonly store: RunStore) {}

  /** `most` is asked how many runs the balance may have at once, where the store has to be. */
  join(balance: BalanceId, request: JoiningRequest, most: MostRuns): AgentRun | Promise<AgentRun | Refusal> {
    const { spec, at } = request;
    const run = this.known.get(runSubject(balance, spec.name));
    return run?.covers(spec, at) ? run : this.joinStored(balance, request, most);
  }

  /** Sets limits, or ends the run, as its owner wishes. */
  async revise(
    balance: BalanceId,
    name: string,
    at: EpochMs,
    change: Partial<RunLimits> | "end",
    by: Actor,
  ): Promise<StoredRun | Refusal> {
    const run = await this.store.reviseRun(balance, name, revisedRun(name, at, change, by));
    if (!refused(run)) this.changed(runSubject(balance, name));
    return run;
  }

  /** It has other limits, or has ended: both are read again, before its streams have to grow. */
  changed(subject: string): void {
    const reads = this.reading.get(subject);
    if (reads !== undefined) reads.changes += 1;
    const run = this.known.get(subject);
    if (run === undefined) return;
    run.forget();
    void run.reread();
  }

  /** Others may have changed any of them. */
  forgetAll(): void {
    for (const reads of this.reading.values()) reads.changes += 1;
    for (const run of this.known.values()) run.forget();
  }

  private async joinStored(
    balance: BalanceId,
    request: JoiningRequest,
    most: MostRuns,
  ): Promise<AgentRun | Refusal> {
    const { spec, by } = request;
    const alike = `${runSubject(balance, spec.name)} ${spec.cap !== null} ${spec.calls !== null} ${by}`;
    const { run, of } = await this.joining.do(alike, request, async (merged) => ({
      run: await this.change(balance, merged, most),
      of: merged.spec,
    }));
    // Another key's request may be refused for limits that only the one that it was merged with would lower.
    return refused(run) && !isSameLimits(of, spec) ? this.change(balance, request, most) : run;
  }

  private async change(
    balance: BalanceId,
    request: JoiningRequest,
    most: MostRuns,
  ): Promise<AgentRun | Refusal> {
    const bound = await most();
    if (refused(bound)) return bound;
    const { name } = request.spec;
    const subject = runSubject(balance, name);
    return this.noticing(subject, async (reads) => {
      const before = reads.changes;
      const change = await this.store.changeRun(balance, name, bound, (known, others) =>
        joinRun(request, known, others),
      );
      if (refused(change)) return change;
      const { startedAt } = change.run;
      let run = this.known.get(subject);
      if (run?.startedAt !== startedAt) {
        run = new AgentRun(balance, change.run, (run) => this.read(run));
        this.known.set(subject, run);
      }
      // What was read while others changed it may be the old state.
      if (before === reads.changes) run.has(change.run);
      else await this.read(run);
      return run;
    });
  }

  private read(run: AgentRun): Promise<void> {
    return this.noticing(runSubject(run.balanceId, run.name), async (reads) => {
      for (let round = 0; round < MAX_READS; round++) {
        const before = reads.changes;
        const stored = await this.store.run(run.balanceId, run.name);
        if (before !== reads.changes) continue;
        // It has ended, and its name may be another's: what it was limited to holds for what is still open.
        if (stored?.startedAt !== run.startedAt) return run.ended();
        this.remember(run);
        run.has(stored);
        return;
      }
    });
  }

  /** Changes of other runs do not count: a fleet makes them faster than one read takes. */
  private async noticing<Result>(
    subject: string,
    read: (reads: RunReads) => Promise<Result>,
  ): Promise<Result> {
    const reads = this.reading.getOrInsertComputed(subject, () => ({ readers: 0, changes: 0 }));
    reads.readers += 1;
    try {
      return await read(reads);
    } finally {
      reads.readers -= 1;
      if (reads.readers === 0) this.reading.delete(subject);
    }
  }

  /** One that was forgotten while its requests went on: those learn what later ones do. */
  private remember(run: AgentRun): void {
    const subject = runSubject(run.balanceId, run.name);
    const known = this.known.get(subject);
    if (known === undefined) this.known.set(subject, run);
    else if (known.startedAt === run.startedAt) run.isSameAs(known);
  }
}

export type RunStore = Pick<KeyStore, "run" | "changeRun" | "reviseRun">;

interface JoinedRun {
  readonly run: AgentRun | Refusal;
  /** What the request was merged to. */
  readonly of: RunLimits;
}

interface RunReads {
  readers: number;
  changes: number;
}

/** Refused where somebody without credit has changed too much. */
export type MostRuns = () => Promise<number | Refusal>;

/** A run that requests belong to. */
export class AgentRun {
  readonly name: string;
  readonly startedAt: EpochMs;
  private known: KnownRun;
  private looking: Promise<void> | null = null;

  constructor(
    readonly balanceId: BalanceId,
    { name, startedAt, usedAt, revision, cap, calls }: StoredRun,
    private readonly read: (run: AgentRun) => Promise<void>,
  ) {
    this.name = name;
    this.startedAt = startedAt;
    this.known = { limits: null, last: { cap, calls }, usedAt, revision };
  }

  /** Null while they have to be read. */
  get limits(): RunLimits | null {
    return this.known.limits;
  }

  /** Whether a request may go on with what is known. */
  covers(spec: RunLimits, at: EpochMs): boolean {
    const { startedAt } = this;
    const { limits, usedAt } = this.known;
    if (limits === null || at - usedAt >= TOUCH_MS || hasEnded({ startedAt, usedAt }, at)) return false;
    return isSameLimits(stricter(limits, spec), limits);
  }

  /** Keys only lower limits, so of two that were read between the same changes of owners the stricter is the later. */
  has({ cap, calls, usedAt, revision }: StoredRun): void {
    const { known } = this;
    if (revision < known.revision) {
      known.limits = known.last;
      return;
    }
    const last = revision > known.revision ? { cap, calls } : stricter(known.last, { cap, calls });
    Object.assign(known, { limits: last, last, usedAt, revision } satisfies KnownRun);
  }

  ended(): void {
    this.known.limits = this.known.last;
  }

  forget(): void {
    this.known.limits = null;
  }

  /** From here on, what is known of the one is known of the other. */
  isSameAs({ known }: AgentRun): void {
    this.known = known;
  }

  /** Has the limits read, for those that need them soon. */
  reread(): Promise<void> {
    this.looking ??= this.read(this)
      .catch(() => {})
      .finally(() => {
        this.looking = null;
      });
    return this.looking;
  }
}

interface KnownRun {
  limits: RunLimits | null;
  /** Before they had to be read. */
  last: RunLimits;
  usedAt: EpochMs;
  /** As `StoredRun`'s. */
  revision: number;
}

/** About 300 bytes each. */
const MAX_KNOWN = 20_000;
const MAX_READS = 8;

/** Runs of a balance with credit at once, and of one without, whose requests cost nothing. */
export const MAX_RUNS = 1_000;
export const MAX_UNPAID_RUNS = 20;
