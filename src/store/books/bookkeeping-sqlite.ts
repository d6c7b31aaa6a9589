import type { Database } from "bun:sqlite";
import { Keyring } from "../../customers/keys/keyring.ts";
import { Runs } from "../../customers/keys/runs.ts";
import type { RunningSums } from "../../ledger/counter-cache.ts";
import type { Credit } from "../../ledger/credit.ts";
import { type DebitStore, Debits } from "../../ledger/debits.ts";
import { type KeyHolders, Ledger } from "../../ledger/ledger.ts";
import { assert } from "../../units/assert.ts";
import type { Clock } from "../../units/clock.ts";
import { SqlAccountStore } from "../customers/account-store.ts";
import { SqlKeyStore } from "../customers/key-store.ts";
import { LogSync } from "../database/log-sync.ts";
import { diskRefused, openDatabase } from "../database/sqlite.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { maintenanceOf } from "../database/sqlite-maintenance.ts";
import { SqlExportStore } from "../export/export-store.ts";
import { type BooksOptions, JournalBooks, onTheLoop } from "../journal/books.ts";
import { lostToClaims, soleClaims } from "../ledger/credits.ts";
import { LedgerStore } from "../ledger/sqlite-ledger-store.ts";
import { SqlPaymentStore } from "../payments/payment-store.ts";
import { MAX_CHARTS, MAX_SPENDINGS, UsageReader } from "../usage/usage.ts";
import {
  type Bookkeeping,
  type BookkeepingParts,
  journalOptions,
  sqlStores,
  withMemory,
} from "./bookkeeping.ts";

/** One process that keeps everything in its data folder. */
export async function openSqliteBooks(parts: BookkeepingParts): Promise<Bookkeeping> {
  const { folder, clock } = parts;
  const onFault = (error: unknown) => parts.log("books", { error: String(error) });
  const db = openDatabase(folder.databasePath);
  const store = new LedgerStore(db);
  const booksDb = openDatabase(folder.databasePath, "NORMAL", BOOKS_WAIT_MS);
  const ends = new LedgerStore(booksDb);
  const thread = maintenanceOf(db, folder.databasePath, clock, onFault);
  let closing = false;
  // A thread is not started for the last one, which keeps nobody waiting.
  const checkpoint = async () => (closing && !thread?.isRunning ? ends : (thread ?? ends)).checkpoint();
  const opening = { ...journalOptions(parts, folder.path), store: { ...onTheLoop(ends), checkpoint } };
  // What strangers change as well: keys, accounts, sessions. The event loop does not wait for their syncs.
  const controlDb = openDatabase(folder.databasePath, "NORMAL");
  const log = new LogSync(folder.databasePath, onFault);
  const durable = () =>
    log.durable().catch((error: unknown) => {
      // The change is made all the same, and its caller gets an error: a key that was to end must not go on.
      keyring.forgetAll();
      runs.forgetAll();
      throw error;
    });
  const keys = new SqlKeyStore(new SqliteDatabase(controlDb, durable), clock);
  const keyring = new Keyring(keys, undefined, undefined, (concerns) => ledger.recheck(concerns));
  const runs = new Runs(keys);
  const { books, ledger, debits }: LedgerOnDisk = await openLedger(opening, {
    reached: store.reached(),
    sums: store,
    debits: store,
    holders: keyring,
  });
  const claims = soleClaims(debits, clock, parts.log);
  const readers = {
    usage: new UsageReader(folder.databasePath, MAX_CHARTS),
    spending: new UsageReader(folder.databasePath, MAX_SPENDINGS),
  };
  return {
    ledger,
    journal: books.journal,
    keys,
    nodes: { list: async () => [], close: async () => "unknown" },
    accounts: new SqlAccountStore(new SqliteDatabase(controlDb, durable), clock),
    node: null,
    ...sqlStores(new SqliteDatabase(db), clock),
    exports: new SqlExportStore(new SqliteDatabase(controlDb, () => log.durable())),
    payments: soleSqlitePayments(db, clock, ({ balanceId, amount }) => ledger.credited(balanceId, amount)),
    keyring,
    runs,
    healthy: () => books.journal.healthy,
    balance: (id) => ledger.balance(id),
    spent: async (id) => (await ledger.counters.use(id)).spent,
    held: async (id) => ({ held: ledger.counters.heldOn(id), heldAt: "all_processes" }),
    ...creditsOf(store, ledger, debits),
    ...readsOf(store, books, ledger, readers, onFault),
    fold: async (before) => (thread ?? ends).fold(before),
    diskRefused,
    figures: () => [lostToClaims(debits.lost)],
    async close() {
      await claims.stop();
      closing = true;
      await books.close();
      await thread?.close();
      for (const one of [readers.usage, readers.spending]) one.stop();
      for (const one of [booksDb, controlDb, log, db]) one.close();
    },
  };
}

/** What is credited and debited by hand, and by payments. */
function creditsOf(
  store: LedgerStore,
  ledger: Ledger,
  debits: Debits,
): Pick<Bookkeeping, "credit" | "debit" | "credits"> {
  return {
    async credit(credit) {
      // A balance that nobody ever used may have been removed since it was looked up.
      assert(store.hasBalance(credit.balanceId), `credit for ${credit.balanceId}, which does not exist`);
      const done = store.credit(credit);
      if (done === credit) ledger.credited(credit.balanceId, credit.amount);
      return done;
    },
    debit: (debit) => debits.take(debit),
    credits: async (balance, limit) => store.credits(balance, limit),
  };
}

/** Receipts are read, and added up, once they are all there; on a database that refuses them, those that are. */
function readsOf(
  store: LedgerStore,
  books: JournalBooks,
  ledger: Ledger,
  { usage, spending }: Readonly<Record<"usage" | "spending", UsageReader>>,
  onFault: (error: unknown) => void,
): Pick<Bookkeeping, "receipt" | "unbooked" | "receipts" | "usage" | "keyActivity" | "spending" | "audit"> {
  const booked = async () => {
    await books.journal.flushed();
    await books.catchUp().catch(onFault);
  };
  return {
    async receipt(id) {
      await booked();
      return books.unbooked(id) ?? store.receipt(id);
    },
    unbooked: (id) => books.unbooked(id),
    async receipts(balance, filter, limit, before) {
      await booked();
      return store.receipts(balance, filter, limit, before);
    },
    async usage(of) {
      await booked();
      return usage.sums(of);
    },
    async keyActivity(of, isNext) {
      await booked();
      return usage.keyActivity(of, isNext);
    },
    async spending(of) {
      await booked();
      return spending.spending(of);
    },
    async audit() {
      await booked();
      return withMemory(store.audit(), ledger, books.appliedThrough, (id) => store.spent(id));
    },
  };
}

/** The ledger, once all of its journal is booked: on a disk and a database of any kind. */
export async function openLedger(
  opening: BooksOptions,
  { reached, sums, debits, holders }: LedgerParts,
): Promise<LedgerOnDisk> {
  const books = await JournalBooks.open(opening, reached);
  const ledger = new Ledger(opening.clock, books.journal, sums, holders);
  books.follow(ledger);
  return { books, ledger, debits: new Debits(ledger, books.journal, debits) };
}

interface LedgerParts {
  readonly reached: Parameters<typeof JournalBooks.open>[1];
  readonly sums: RunningSums;
  readonly debits: DebitStore;
  readonly holders: KeyHolders;
}

export interface LedgerOnDisk {
  readonly books: JournalBooks;
  readonly ledger: Ledger;
  readonly debits: Debits;
}

/**
 * Waits this long for another writer, because all streams wait too; then the ends stay in the
 * journal a little longer.
 */
const BOOKS_WAIT_MS = 20;

/** Payments in SQLite, where nobody else is at them: what the process before had claimed is due. */
export function soleSqlitePayments(
  db: Database,
  clock: Pick<Clock, "now">,
  credited: (credit: Credit) => void,
): SqlPaymentStore {
  db.run("UPDATE payments SET look_at = ?1 WHERE look_at > ?1", [clock.now()]);
  return new SqlPaymentStore(new SqliteDatabase(db), clock, credited);
}
