import { type HoldRecord, parseRecord, type TerminalRecord } from "../../ledger/record.ts";
import type { OrphanHold } from "../../ledger/recovery.ts";
import { type Clock, systemClock } from "../../units/clock.ts";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import { type Database, type SqlPart, type Steps, sql } from "../database/database.ts";
import { URGENT } from "../database/postgres.ts";
import type { PostgresDatabase } from "../database/postgres-database.ts";
import { booking } from "../ledger/ends.ts";
import type { FollowingBooks } from "../nodes/node-store.ts";
import { PeriodicTimers } from "./periodic-timers.ts";
import { type CommitBatch, CommitUnknown, type OpenHold, PostgresJournal } from "./postgres-journal.ts";

/**
 * What a node keeps that has no disk: nothing. Its journal is in PostgreSQL, and what it left open is ended
 * by others.
 */
export function disklessBooks({ store, node, ...options }: DisklessBooksOptions): FollowingBooks {
  let epoch = 0;
  const timers = new PeriodicTimers(options.clock, options.onFault);
  const journal = new PostgresJournal({
    ...options,
    commit: (batch) => store.commit(node, epoch, batch),
  });
  return {
    journal,
    follow(ledger, started, onForgotten) {
      epoch = started;
      timers.follow(ledger, journal, () => journal.durableNow, onForgotten);
    },
    get appliedThrough() {
      return journal.durableNow;
    },
    async catchUp() {
      if (!(await journal.flushed())) throw new StoreUnreachable(`nothing is committed: ${journal.failure}`);
    },
    // Its ends are in PostgreSQL once they are durable.
    unbooked: () => null,
    async close() {
      timers.stop();
      await journal.flushed();
      journal.close();
      // Whatever could not be committed, those who close this node need not wait for it.
      return true;
    },
    get shipped() {
      return journal.ends;
    },
    get batches() {
      return journal.syncs;
    },
  };
}

interface DisklessBooksOptions {
  readonly store: PostgresHolds;
  readonly node: string;
  readonly clock: Clock;
  /** Runs once everything of this turn of the loop has been appended. */
  readonly defer: (run: () => void) => void;
  readonly onFault: (error: unknown) => void;
}

/** What nodes without a journal commit: open streams and settlements. */
export class PostgresHolds {
  constructor(private readonly db: PostgresDatabase) {}

  /**
   * Commits a batch in the node's epoch, all or nothing. A closed node finds its epoch over, so whatever its
   * clock says, nothing of it is booked after what it left open was ended.
   */
  async commit(node: string, epoch: number, { ends, ...holds }: CommitBatch): Promise<void> {
    const { db } = this;
    const at = systemClock.now();
    let isCommitting = false;
    let givenUp = false;
    try {
      await db.transact(function* () {
        isCommitting = false;
        yield* booking(db, { node, epoch, ends, at, also: holdsOf(db, node, holds) });
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
  endSome(node: string, end: (orphan: OrphanHold) => TerminalRecord): Promise<boolean> {
    return this.db.transact(() => endingSome(this.db, node, end));
  }
}

function* endingSome(
  db: Database,
  node: string,
  end: (orphan: OrphanHold) => TerminalRecord,
): Steps<boolean> {
  const [rows] = yield [
    sql`SELECT receipt, held, delivered, record FROM holds WHERE node = ${node}
      ORDER BY receipt LIMIT ${END_AT_ONCE} ${db.forUpdate}`,
  ];
  const open = rows as readonly OpenHoldRow[];
  if (open.length === 0) return false;
  const ends = open.map(({ record, ...hold }) => end({ hold: parseRecord(record) as HoldRecord, ...hold }));
  // An end that is there already stands: the commit that brought it did not see the hold, which came late.
  const also = [
    removing(
      db,
      open.map(({ receipt }) => receipt),
    ),
  ];
  yield* booking(db, { node, epoch: null, ends, at: systemClock.now(), also });
  return true;
}

type OpenHoldRow = Omit<OpenHold, "text"> & { readonly record: string };

const END_AT_ONCE = 500;

/** What becomes of holds. New ones before those that are removed: see batchOf. */
function holdsOf(
  db: Database,
  node: string,
  { holds, moved, closed }: Omit<CommitBatch, "ends">,
): readonly SqlPart[] {
  const rows = holds.map(({ text, ...hold }) => ({ ...hold, record: text }));
  const adding = sql`INSERT INTO holds (receipt, node, held, delivered, record)
    SELECT receipt, ${node}, held, delivered, record FROM ${db.table(rows, { ...HOLD_COLUMNS, record: "TEXT" })} AS new WHERE true
    ON CONFLICT (receipt) DO UPDATE SET held = excluded.held, record = excluded.record,
      delivered = greatest(excluded.delivered, holds.delivered)`;
  const moving = sql`UPDATE holds SET held = coalesce(new.held, holds.held),
      delivered = coalesce(new.delivered, holds.delivered)
    FROM ${db.table(moved, HOLD_COLUMNS)} AS new WHERE holds.receipt = new.receipt`;
  return [
    ...(holds.length === 0 ? [] : [adding]),
    ...(moved.length === 0 ? [] : [moving]),
    ...(closed.length === 0 ? [] : [removing(db, closed)]),
  ];
}

const HOLD_COLUMNS = { receipt: "TEXT", held: "BIGINT", delivered: "BIGINT" } as const;

const removing = (db: Database, receipts: readonly string[]): SqlPart =>
  sql`DELETE FROM holds WHERE receipt IN ${db.among(receipts)}`;
