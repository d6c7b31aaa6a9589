import { Database } from "bun:sqlite";
import type { DebitStore } from "../../src/ledger/debits.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import type { EndStore } from "../../src/store/journal/books.ts";
import { LedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import type { Clock } from "../../src/units/clock.ts";
import type { Random } from "./random.ts";

/**
 * The production store on SQLite in memory. The database's own durability is taken as it is documented: what
 * is checkpointed, or committed durably, survives a power cut; later commits may be gone. A savepoint stands
 * where the surely durable part ends.
 */
export class SimulatedDatabase {
  private readonly db = emptyDatabase();
  readonly store = new LedgerStore(this.db);

  constructor() {
    this.store.checkpoint = () => {
      this.durable();
      return true;
    };
    const { debit } = this.store;
    this.store.debit = (entry) => {
      const result = debit.call(this.store, entry);
      this.durable();
      return result;
    };
    const credit = this.store.credit.bind(this.store);
    this.store.credit = (entry) => {
      const result = credit(entry);
      this.durable();
      return result;
    };
    this.db.run("SAVEPOINT sure");
  }

  /**
   * What one life of the process asks of it: done in the order in which it was asked, after a while, and
   * answered after another, unless the life ends before. `refuses` says whether its disk is full.
   */
  overNetwork(clock: Clock, random: Random, refuses: () => boolean): EndStore {
    const { store } = this;
    const someTime = () =>
      new Promise<void>((resolve) => void clock.after(random.below(MAX_MS), () => resolve()));
    let before = Promise.resolve();
    function delayed<T>(task: () => T): Promise<T> {
      const done = before.then(someTime).then(() => {
        if (refuses()) throw new Error("SQLITE_FULL: database or disk is full");
        return task();
      });
      before = done.then(someTime, someTime);
      return before.then(() => done);
    }
    return {
      apply: (batch) => delayed(() => store.apply(batch)),
      checkpoint: () => delayed(() => random.chance(0.8) && store.checkpoint()),
      forgetReachedBefore: (file) => delayed(() => store.forgetReachedBefore(file)),
    };
  }

  /** What takes credit back asks of it. An error need not mean that nothing was done. */
  debits(random: Random, refuses: () => boolean): DebitStore {
    const { store } = this;
    return {
      entry: (key) => store.entry(key),
      credited: (balance) => store.credited(balance),
      debit(entry) {
        if (refuses()) throw new Error("SQLITE_FULL: database or disk is full");
        const done = store.debit(entry);
        if (random.chance(0.1)) throw new Error("SQLITE_IOERR: disk I/O error");
        return done;
      },
      claims: (after, limit) => store.claims(after, limit),
      endClaim(claim, lost, at) {
        if (refuses()) throw new Error("SQLITE_FULL: database or disk is full");
        return store.endClaim(claim, lost, at);
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
