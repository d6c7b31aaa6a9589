import type { TransactionSQL } from "bun";
import type { CounterId } from "../../ledger/counter.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import { type HoldRecord, parseRecord, type TerminalRecord } from "../../ledger/record.ts";
import type { OrphanHold } from "../../ledger/recovery.ts";
import type { Clock } from "../../units/clock.ts";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import { inNumbers, type Postgres, URGENT } from "../database/postgres.ts";
import { insertEnds, spend } from "../ledger/postgres-ledger-store.ts";
import { CHECKPOINT_EVERY_MS, checkpoint, PeriodicTimers } from "./periodic-timers.ts";
import { type CommitBatch, CommitUnknown, type OpenHold, PostgresJournal } from "./postgres-journal.ts";

/**
 * What a node keeps that has no disk: nothing. Its journal is in PostgreSQL, and what it left open is ended
 * by others.
 */
export class DisklessBooks {
  readonly journal: PostgresJournal;
  private readonly timers: PeriodicTimers;
  private epoch = 0;

  constructor({ store, node, ...options }: DisklessBooksOptions) {
    this.timers = new PeriodicTimers(options.clock, options.onFault);
    this.journal = new PostgresJournal({
      ...options,
      commit: (batch) => store.commit(node, this.epoch, batch),
    });
  }

  /** Starts following the ledger, in the epoch that has started. */
  follow(ledger: Ledger, epoch: number, onForgotten: (counters: readonly CounterId[]) => void): void {
    this.epoch = epoch;
    this.timers.every(CHECKPOINT_EVERY_MS, () => checkpoint(ledger, this.journal));
    this.timers.forgetIdle(ledger, () => this.appliedThrough, onForgotten);
  }

  /** The journal's number up to which PostgreSQL's sums are complete. */
  get appliedThrough(): number {
    return this.journal.durableNow;
  }

  /** Resolves when everything that happened so far is in PostgreSQL; rejects when that cannot be reached. */
  async catchUp(): Promise<void> {
    if (!(await this.journal.flushed()))
      throw new StoreUnreachable(`nothing is committed: ${this.journal.failure}`);
  }

  /** Its ends are in PostgreSQL once they are durable. */
  unbooked(): null {
    return null;
  }

  /** True: whatever could not be committed, those who close this node need not wait for it. */
  async close(): Promise<boolean> {
    this.timers.stop();
    await this.journal.flushed();
    this.journal.close();
    return true;
  }

  get shipped(): number {
    return this.journal.ends;
  }

  get batches(): number {
    return this.journal.syncs;
  }
}

export interface DisklessBooksOptions {
  readonly store: PostgresHolds;
  readonly node: string;
  readonly clock: Clock;
  /** Runs once everything of this turn of the loop has been appended. */
  readonly defer: (run: () => void) => void;
  readonly onFault: (error: unknown) => void;
}

/** What nodes without a journal commit: open streams and settlements. */
export class PostgresHolds {
  constructor(private readonly postgres: Postgres) {}

  /**
   * Commits a batch in the node's epoch, all or nothing. A closed node finds its epoch over, so whatever its
   * clock says, nothing of it is booked after what it left open was ended.
   */
  async commit(node: string, epoch: number, batch: CommitBatch): Promise<void> {
    let isCommitting = false;
    let givenUp = false;
    try {
      await this.postgres.transaction(async (sql) => {
        isCommitting = false;
        await book(sql, node, epoch, batch);
        if (givenUp) throw new Error("its caller has received the failure");
        isCommitting = true;
      }, URGENT);
    } catch (error) {
      givenUp = true;
      throw isCommitting
        ? new CommitUnknown("PostgreSQL did not say whether it committed", { cause: error })
        : error;
    }
  }

  /**
   * Ends some of the streams that a node left open, `end` says how; false when there are no more. Only for a
   * node whose epoch is over.
   */
  async endSome(node: string, end: (orphan: OrphanHold) => TerminalRecord): Promise<boolean> {
    return this.postgres.transaction(async (sql) => {
      const rows = await sql<OpenHoldRow[]>`
        SELECT receipt, held, delivered, record FROM holds WHERE node = ${node}
        ORDER BY receipt LIMIT ${END_AT_ONCE} FOR UPDATE`;
      if (rows.length === 0) return false;
      const orphans = inNumbers(rows).map(({ held, delivered, record }) => ({
        hold: parseRecord(record) as HoldRecord,
        held,
        delivered,
      }));
      // An end that is there already stands: the commit that brought it did not see the hold, which came
      // late.
      await spend(
        sql,
        node,
        await insertEnds(
          sql,
          node,
          orphans.map((orphan) => ({ record: end(orphan) })),
        ),
      );
      await remove(
        sql,
        rows.map(({ receipt }) => receipt),
      );
      return true;
    });
  }
}

type OpenHoldRow = Omit<OpenHold, "text"> & { readonly record: string };

const END_AT_ONCE = 500;

async function book(sql: TransactionSQL, node: string, epoch: number, batch: CommitBatch): Promise<void> {
  // In one go: each waits for the network once. The lock is the fence; and by it this commit waits for a
  // synchronous replica even where everything else is there already, by a commit that was not answered.
  const [life, fresh] = await Promise.all([
    sql<{ epoch: bigint; open: boolean }[]>`SELECT epoch, open FROM nodes WHERE name = ${node} FOR KEY SHARE`,
    insertEnds(
      sql,
      node,
      batch.ends.map((record) => ({ record })),
    ),
    // Before holds are removed: see batchOf.
    insertHolds(sql, node, batch.holds),
    moveHolds(sql, batch.moved),
    remove(sql, batch.closed),
  ]);
  if (Number(life[0]?.epoch) !== epoch || !life[0]!.open)
    throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
  await spend(sql, node, fresh);
}

async function insertHolds(sql: TransactionSQL, node: string, holds: CommitBatch["holds"]): Promise<void> {
  if (holds.length === 0) return;
  const rows = JSON.stringify(
    holds.map(({ receipt, text, held, delivered }) => ({ receipt, record: text, held, delivered })),
  );
  await sql`INSERT INTO holds (receipt, node, held, delivered, record)
    SELECT receipt, ${node}, held, delivered, record
    FROM json_to_recordset(${rows}::text::json) AS row (receipt TEXT, held BIGINT, delivered BIGINT, record TEXT)
    ON CONFLICT (receipt) DO UPDATE SET held = excluded.held, record = excluded.record,
      delivered = greatest(excluded.delivered, holds.delivered)`;
}

async function moveHolds(sql: TransactionSQL, moved: CommitBatch["moved"]): Promise<void> {
  if (moved.length === 0) return;
  const rows = JSON.stringify(moved);
  await sql`UPDATE holds SET held = coalesce(row.held, holds.held), delivered = coalesce(row.delivered, holds.delivered)
    FROM json_to_recordset(${rows}::text::json) AS row (receipt TEXT, held BIGINT, delivered BIGINT)
    WHERE holds.receipt = row.receipt`;
}

async function remove(sql: TransactionSQL, receipts: readonly string[]): Promise<void> {
  if (receipts.length === 0) return;
  const list = JSON.stringify(receipts);
  await sql`DELETE FROM holds
    WHERE receipt IN (SELECT value FROM json_array_elements_text(${list}::text::json))`;
}
