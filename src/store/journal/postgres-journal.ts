import type { Journal } from "../../ledger/ledger.ts";
import { EpochFenced } from "../../ledger/node-lease.ts";
import {
  formatRecord,
  type HoldRecord,
  type LedgerRecord,
  type TerminalRecord,
} from "../../ledger/record.ts";
import type { Clock } from "../../units/clock.ts";
import type { ReceiptId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { DurableWaiters } from "./durable-waiters.ts";

/**
 * The journal of a node that keeps nothing on disk: records are durable once PostgreSQL has committed them.
 * One transaction is under way at a time and carries everything that arrived during the previous one. What
 * begins and ends within one transaction is written as its end alone. The hold of an unstreamed request is
 * not written at all: its client sees nothing before its end, so there is nothing to bill if the process
 * dies.
 *
 * A failed commit is retried together with everything that has arrived since. Callers receive `false` only
 * once PostgreSQL has been away for as long as a lease lasts; then `healthy` is false until a commit
 * succeeds.
 */
export class PostgresJournal implements Journal {
  private appended = 0;
  private durableThrough = 0;
  private pending: PendingCommit[] = [];
  private readonly waiters = new DurableWaiters(MAX_BATCH);
  /** Holds that are in PostgreSQL, or may be. */
  private readonly placed = new Set<ReceiptId>();
  /** Up to this record, a commit was sent and its answer lost: these records can no longer be taken back. */
  private doubtfulThrough = 0;
  private sentThrough = 0;
  private state: "idle" | "scheduled" | "committing" | "retrying" | "closed" = "idle";
  private failingSinceMs: number | null = null;
  /** PostgreSQL's last refusal, until it commits again. */
  failure: string | null = null;
  /** Transactions since start. */
  syncs = 0;
  /** Ends that were committed since start. */
  ends = 0;

  constructor(private readonly options: PostgresJournalOptions) {}

  append(record: LedgerRecord): number {
    this.pending.push({ record, sequence: ++this.appended });
    return this.appended;
  }

  /**
   * True once the record is committed; false when PostgreSQL has been away for too long, or this node is
   * closed.
   */
  durable(sequence: number): true | Promise<boolean> {
    if (sequence <= this.durableThrough) return true;
    this.schedule();
    if (!this.waitable) return Promise.resolve(false);
    return this.waiters.wait(sequence);
  }

  /** Only records that were never sent, or were certainly refused. */
  withdraw(sequence: number): boolean {
    if (sequence <= this.sentThrough) return false;
    const at = this.pending.findIndex((line) => line.sequence === sequence);
    if (at === -1) return false;
    this.pending.splice(at, 1);
    return true;
  }

  get healthy(): boolean {
    return this.waitable && this.pending.length < MAX_PENDING;
  }

  /** Commits what was appended although nobody waits for it. */
  schedule(): void {
    if (this.state !== "idle" || this.pending.length === 0) return;
    this.state = "scheduled";
    this.options.defer(() => void this.commit());
  }

  /** Resolves true when everything appended so far is committed. */
  async flushed(): Promise<boolean> {
    return this.durable(this.appended);
  }

  get undurable(): number {
    return this.appended - this.durableThrough;
  }

  get durableNow(): number {
    return this.durableThrough;
  }

  /** What is durable is in PostgreSQL. */
  readonly unappliedCount = 0;

  /** Commits nothing more; callers that wait receive `false`. */
  close(): void {
    this.state = "closed";
    this.waiters.answer(false, Number.POSITIVE_INFINITY);
  }

  private get waitable(): boolean {
    return this.state !== "closed" && !this.givenUp;
  }

  private get givenUp(): boolean {
    const { failingSinceMs } = this;
    return failingSinceMs !== null && this.options.clock.elapsedMs() - failingSinceMs >= TIMEOUT_MS;
  }

  private async commit(): Promise<void> {
    if (this.state === "closed") return;
    this.state = "committing";
    const lines = this.nextLines();
    const batch = batchOf(lines, this.placed);
    const last = lines.at(-1)?.sequence ?? this.durableThrough;
    const startedMs = this.options.clock.elapsedMs();
    this.sentThrough = last;
    this.waiters.sent(last);
    for (const { receipt } of batch.holds) this.placed.add(receipt);
    try {
      if (!isEmpty(batch)) {
        await this.options.commit(batch);
        this.syncs += 1;
      }
    } catch (error) {
      return this.refuse(error, last, startedMs);
    }
    for (const receipt of batch.closed) this.placed.delete(receipt);
    this.ends += batch.ends.length;
    this.accept(lines.length, last);
  }

  private nextLines(): PendingCommit[] {
    const most = this.pending.slice(0, MAX_BATCH);
    const end = this.waiters.batchEnd(most.at(-1)?.sequence ?? 0);
    const lines = most.filter(({ sequence }) => sequence <= end);
    return lines.length === 0 ? most : lines;
  }

  private accept(count: number, last: number): void {
    this.failure = null;
    this.failingSinceMs = null;
    this.pending.splice(0, count);
    this.durableThrough = last;
    this.waiters.answer(true, last);
    if (this.state === "closed") return;
    this.state = "idle";
    this.schedule();
  }

  private refuse(error: unknown, last: number, startedMs: number): void {
    this.failure = error instanceof Error ? error.message : String(error);
    this.failingSinceMs ??= startedMs;
    if (error instanceof CommitUnknown) this.doubtfulThrough = last;
    this.sentThrough = this.doubtfulThrough;
    this.options.onFault(error);
    // No caller may take back what the retry sends: so the waiting are answered while nothing is
    // under way.
    if (error instanceof EpochFenced) return this.close();
    if (this.state === "closed") return;
    if (this.givenUp) this.waiters.answer(false, Number.POSITIVE_INFINITY);
    this.state = "retrying";
    this.options.clock.after(RETRY_MS, () => {
      if (this.state !== "retrying") return;
      this.state = "idle";
      this.schedule();
    });
  }
}

export interface PostgresJournalOptions {
  /**
   * Commits the batch in the node's epoch; committing it again, or a later one that repeats it, changes
   * nothing. Rejects with `EpochFenced` once the node was closed, and with `CommitUnknown` when it may have
   * been committed all the same.
   */
  commit(batch: CommitBatch): Promise<void>;
  readonly clock: Pick<Clock, "after" | "elapsedMs">;
  /** Runs once everything of this turn of the loop has been appended. */
  readonly defer: (run: () => void) => void;
  readonly onFault: (error: unknown) => void;
}

/** COMMIT was sent, and no answer came. */
export class CommitUnknown extends Error {
  override name = "CommitUnknown";
}

/** What some records come to, each receipt once. */
export interface CommitBatch {
  readonly holds: readonly OpenHold[];
  /** Holds that are there, and what became of them; null is what did not change. */
  readonly moved: readonly MovedHold[];
  readonly ends: readonly TerminalRecord[];
  /** Holds that may be there, and are over. */
  readonly closed: readonly ReceiptId[];
}

export interface OpenHold {
  readonly receipt: ReceiptId;
  /** The record, as ledger/record formats it. */
  readonly text: string;
  readonly held: NanoUsd;
  readonly delivered: number;
}

interface MovedHold {
  readonly receipt: ReceiptId;
  readonly held: NanoUsd | null;
  readonly delivered: number | null;
}

interface PendingCommit {
  readonly record: LedgerRecord;
  readonly sequence: number;
}

/** Records in one transaction: some 50 ms of PostgreSQL. */
const MAX_BATCH = 1_000;
/** About ten seconds of a busy gateway. */
const MAX_PENDING = 100_000;
const RETRY_MS = 100;
/** The length of a lease: after that, nothing may be admitted anyway. */
const TIMEOUT_MS = 10_000;

interface Fate {
  hold: HoldRecord | null;
  held: NanoUsd | null;
  delivered: number | null;
  end: TerminalRecord | null;
}

function batchOf(lines: readonly PendingCommit[], placed: ReadonlySet<ReceiptId>): CommitBatch {
  const fates = new Map<ReceiptId, Fate>();
  const unknown = (): Fate => ({ hold: null, held: null, delivered: null, end: null });
  const fateOf = (receipt: ReceiptId): Fate => fates.getOrInsertComputed(receipt, unknown);
  for (const { record } of lines) {
    if (record.kind === "hold") {
      if (record.about.stream) Object.assign(fateOf(record.receipt), { hold: record, held: record.amount });
    } else if (record.kind === "extend") fateOf(record.receipt).held = record.held;
    else if (record.kind === "delivered") {
      for (const [receipt, tokens] of record.tokens) fateOf(receipt).delivered = tokens;
    } else fateOf(record.receipt).end = record;
  }
  const holds: OpenHold[] = [];
  const moved: MovedHold[] = [];
  const ends: TerminalRecord[] = [];
  const closed: ReceiptId[] = [];
  for (const [receipt, { hold, held, delivered, end }] of fates) {
    const isPlaced = placed.has(receipt);
    // Placed, and to be placed again: the transaction that was not answered may still be under way, and only
    // who inserts the same waits for it. Who only deletes would not see it, and it would stay behind.
    if (hold !== null && (end === null || isPlaced)) {
      holds.push({ receipt, text: formatRecord(hold), held: held!, delivered: delivered ?? 0 });
    }
    if (end !== null) {
      ends.push(end);
      if (isPlaced) closed.push(receipt);
    } else if (hold === null && isPlaced) moved.push({ receipt, held, delivered });
  }
  return { holds, moved, ends, closed };
}

const isEmpty = ({ holds, moved, ends, closed }: CommitBatch): boolean =>
  holds.length + moved.length + ends.length + closed.length === 0;
