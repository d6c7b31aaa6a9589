import { Database } from "bun:sqlite";
import type { Credit } from "../../src/ledger/credit.ts";
import type { DebitStore } from "../../src/ledger/debits.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import type { EndStore } from "../../src/store/journal/books.ts";
import type { StoredReceipt } from "../../src/store/ledger/receipts.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import type { Clock } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { enterCredit } from "../store/enter-credit.ts";
import type { Random } from "./random.ts";

/**
 * The production store on SQLite in memory. The database's own durability is taken as it is documented: what
 * is checkpointed, or committed durably, survives a power cut; later commits may be gone. A savepoint stands
 * where the surely durable part ends.
 */
export class SimulatedDatabase {
  private readonly db = emptyDatabase();
  readonly store = new SqliteLedgerStore(new SqliteDatabase(this.db));
  private readonly receiptsOf = this.db.query<StoredReceipt, [string]>(
    `SELECT receipt AS id, at, balance_id AS balanceId, key_id AS keyId, body FROM ends WHERE balance_id = ?`,
  );

  constructor() {
    this.store.checkpoint = async () => {
      this.durable();
      return true;
    };
    this.db.run("SAVEPOINT sure");
  }

  credit(credit: Credit): void {
    enterCredit(this.db, credit);
    this.durable();
  }

  receipts(balance: BalanceId): StoredReceipt[] {
    return this.receiptsOf.all(balance);
  }

  /**
   * What one life of the process asks of it: done in the order in which it was asked, after a while, and
   * answered after another, unless the life ends before. `refuses` says whether its disk is full.
   */
  overNetwork(clock: Clock, random: Random, refuses: () => boolean): EndStore {
    const ends = this.store.endsOf(null);
    const someTime = () =>
      new Promise<void>((resolve) => void clock.after(random.below(MAX_MS), () => resolve()));
    let before = Promise.resolve();
    function delayed<T>(task: () => Promise<T>): Promise<T> {
      const done = before.then(someTime).then(() => {
        if (refuses()) throw new Error("SQLITE_FULL: database or disk is full");
        return task();
      });
      before = done.then(someTime, someTime);
      return before.then(() => done);
    }
    return {
      ...ends,
      apply: (batch, epoch) => delayed(() => ends.apply(batch, epoch)),
      checkpoint: () => delayed(async () => random.chance(0.8) && ends.checkpoint()),
      forgetReachedBefore: (file) => delayed(() => ends.forgetReachedBefore(file)),
    };
  }

  /** What takes credit back asks of it. An error need not mean that nothing was done. */
  debits(random: Random, refuses: () => boolean): DebitStore {
    const { store } = this;
    return {
      entry: (key) => store.entry(key),
      credited: (balance) => store.credited(balance),
      debit: async (...of) => {
        if (refuses()) throw new Error("SQLITE_FULL: database or disk is full");
        const done = await store.debit(...of);
        this.durable();
        if (random.chance(0.1)) throw new Error("SQLITE_IOERR: disk I/O error");
        return done;
      },
      decideClaim: async (...of) => {
        if (refuses()) throw new Error("SQLITE_FULL: database or disk is full");
        return store.decideClaim(...of);
      },
    };
  }

  crash(random: Random, kind: "process" | "power"): void {
    if (kind === "power" && random.chance(0.7)) this.db.run("ROLLBACK TO sure");
    this.durable();
  }

  private durable(): void {
    this.db.run("RELEASE sure");
    this.db.run("SAVEPOINT sure");
  }
}

const MAX_MS = 40;

let empty: Uint8Array | null = null;

/** As `openDatabase` makes it in memory, but the tables are made once, and copied for each run. */
export function emptyDatabase(): Database {
  if (empty === null) {
    const db = openDatabase(":memory:");
    empty = db.serialize();
    db.close();
  }
  const db = Database.deserialize(empty, { strict: true });
  db.run("PRAGMA foreign_keys = ON");
  return db;
}
