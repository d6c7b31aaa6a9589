import { LRUCache } from "lru-cache";
import { type Refusal, refused } from "../errors/refusal.ts";
import type { EpochMs } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import type { KeyStore } from "./key-store.ts";
import {
  hasEnded,
  isSameLimits,
  joinRun,
  type RunLimits,
  type RunSpec,
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
  private readonly known = new LRUCache<string, AgentRun>({
    max: MAX_KNOWN,
    // Nobody would tell it of a change any more.
    dispose: (run) => run.forget(),
  });
  /** By what is asked; no more than requests in flight. */
  private readonly joining = new Map<string, Promise<AgentRun | Refusal>>();
  /** How often limits were changed by others. */
  private changes = 0;

  constructor(private readonly store: Pick<KeyStore, "run" | "changeRun">) {}

  /** `most` is asked how many runs the balance may have at once, where the store has to be. */
  join(
    balance: BalanceId,
    spec: RunSpec,
    at: EpochMs,
    most: MostRuns,
  ): AgentRun | Promise<AgentRun | Refusal> {
    const run = this.known.get(runSubject(balance, spec.name));
    return run?.covers(spec, at) ? run : this.joinStored(balance, spec, at, most);
  }

  /** Another process has tightened it: its limits are read again, before its streams have to grow. */
  tightened(subject: string): void {
    this.changes += 1;
    const run = this.known.get(subject);
    if (run === undefined) return;
    run.forget();
    run.look();
  }

  /** Others may have changed any of them. */
  forgetAll(): void {
    this.changes += 1;
    this.known.clear();
  }

  private joinStored(
    balance: BalanceId,
    spec: RunSpec,
    at: EpochMs,
    most: MostRuns,
  ): Promise<AgentRun | Refusal> {
    const asked = `${runSubject(balance, spec.name)} ${spec.cap} ${spec.calls}`;
    let joining = this.joining.get(asked);
    if (joining === undefined) {
      joining = this.change(balance, spec, at, most).finally(() => this.joining.delete(asked));
      this.joining.set(asked, joining);
    }
    return joining;
  }

  private async change(
    balance: BalanceId,
    spec: RunSpec,
    at: EpochMs,
    most: MostRuns,
  ): Promise<AgentRun | Refusal> {
    const bound = await most();
    if (refused(bound)) return bound;
    const before = this.changes;
    const change = await this.store.changeRun(balance, spec.name, (known, others) =>
      joinRun(spec, at, bound, known, others),
    );
    if (refused(change)) return change;
    const subject = runSubject(balance, spec.name);
    const { startedAt } = change.run;
    let run = this.known.get(subject);
    if (run?.startedAt !== startedAt) {
      run = new AgentRun(balance, change.run, (run) => this.read(run));
      this.known.set(subject, run);
    }
    // What was read while others changed it may be the old state.
    if (before === this.changes) run.has(change.run);
    else await this.read(run);
    return run;
  }

  private async read(run: AgentRun): Promise<void> {
    for (let round = 0; round < MAX_READS; round++) {
      const before = this.changes;
      const stored = await this.store.run(run.balanceId, run.name);
      if (before !== this.changes) continue;
      // It has ended, and its name may be another's: what it was limited to holds for what is still open.
      if (stored?.startedAt !== run.startedAt) run.ended();
      else run.has(stored);
      return;
    }
  }
}

/** Refused where somebody without credit has changed too much. */
export type MostRuns = () => Promise<number | Refusal>;

/** A run that requests belong to. */
export class AgentRun {
  readonly name: string;
  readonly startedAt: EpochMs;
  /** Null while they have to be read. */
  limits: RunLimits | null = null;
  private last: RunLimits;
  private usedAt: EpochMs;
  private looking = false;

  constructor(
    readonly balanceId: BalanceId,
    { name, startedAt, usedAt, ...limits }: StoredRun,
    private readonly read: (run: AgentRun) => Promise<void>,
  ) {
    this.name = name;
    this.startedAt = startedAt;
    this.usedAt = usedAt;
    this.last = limits;
  }

  /** Whether a request may go on with what is known. */
  covers(spec: RunLimits, at: EpochMs): boolean {
    const { limits, startedAt, usedAt } = this;
    if (limits === null || at - usedAt >= TOUCH_MS || hasEnded({ startedAt, usedAt }, at)) return false;
    return isSameLimits(stricter(limits, spec), limits);
  }

  /** Limits are never widened, so of two that were read the stricter is the later. */
  has({ cap, calls, usedAt }: StoredRun): void {
    this.usedAt = usedAt;
    this.last = stricter(this.last, { cap, calls });
    this.limits = this.last;
  }

  ended(): void {
    this.limits = this.last;
  }

  forget(): void {
    this.limits = null;
  }

  /** Has the limits read, for those that need them soon. */
  look(): void {
    if (this.looking) return;
    this.looking = true;
    void this.read(this)
      .catch(() => {})
      .finally(() => {
        this.looking = false;
      });
  }
}

/** About 300 bytes each. */
const MAX_KNOWN = 20_000;
const MAX_READS = 8;

/** Runs of a balance with credit at once, and of one without, whose requests cost nothing. */
export const MOST_RUNS = 1_000;
export const MOST_UNPAID_RUNS = 20;
