import type { Database } from "bun:sqlite";
import { Keyring } from "../../customers/keys/keyring.ts";
import { Runs } from "../../customers/keys/runs.ts";
import type { CounterId } from "../../ledger/counter.ts";
import type { RunningSums } from "../../ledger/counter-cache.ts";
import type { Credit } from "../../ledger/credit.ts";
import { type DebitStore, Debits } from "../../ledger/debits.ts";
import { type KeyHolders, Ledger } from "../../ledger/ledger.ts";
import type { Clock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { SqlAccountStore } from "../customers/account-store.ts";
import { SqlKeyStore } from "../customers/key-store.ts";
import { LogSync } from "../database/log-sync.ts";
import { diskRefused, openDatabase } from "../database/sqlite.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { maintenanceOf } from "../database/sqlite-maintenance.ts";
import { SqlExportStore } from "../export/export-store.ts";
import { type BooksOptions, JournalBooks } from "../journal/books.ts";
import { ClaimRounds, lostToClaims } from "../ledger/credits.ts";
import { SqliteLedgerStore } from "../ledger/sqlite-ledger-store.ts";
import { SqlPaymentStore } from "../payments/payment-store.ts";
import { bookedReads } from "./booked-reads.ts";
import { type Bookkeeping, type BookkeepingParts, journalOptions, sqlStores } from "./bookkeeping.ts";

/** One process that keeps everything in its data folder. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table: what one process keeps, and where.
export async function openSqliteBooks(parts: BookkeepingParts): Promise<Bookkeeping> {
  const { folder, clock } = parts;
  const onFault = (error: unknown) => parts.log("books", { error: String(error) });
  const db = openDatabase(folder.databasePath);
  const database = new SqliteDatabase(db);
  const credited = (balance: BalanceId, amount: NanoUsd) => ledger.credited(balance, amount);
  const store = new SqliteLedgerStore(database, { onCredited: credited });
  const booksDb = openDatabase(folder.databasePath, "NORMAL", BOOKS_WAIT_MS);
  const thread = maintenanceOf(db, folder.databasePath, clock, onFault);
  const ends = new SqliteLedgerStore(new SqliteDatabase(booksDb));
  let closing = false;
  // A thread is not started for the last one, which keeps nobody waiting.
  const checkpoint = async () => (closing && !thread?.isRunning ? ends : (thread ?? ends)).checkpoint();
  const opening = { ...journalOptions(parts, folder.path), store: { ...ends.endsOf(null), checkpoint } };
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
    sums: store,
    debits: store,
    holders: keyring,
  });
  const claims = new ClaimRounds(
    {
      claims: (...page) => store.claims(...page),
      decideClaim: (claim, at) => debits.decideClaim(claim, at),
    },
    clock,
    parts.log,
  );
  // A database that refuses what has ended is read as it is.
  const booked = async () => {
    await books.journal.flushed();
    await books.catchUp().catch(onFault);
  };
  const known = async () => (id: CounterId) => store.spent(id);
  const { stop, ...reads } = bookedReads({ store, books, ledger, path: folder.databasePath, booked, known });
  return {
    ledger,
    journal: books.journal,
    keys,
    nodes: { list: async () => [], close: async () => "unknown" },
    accounts: new SqlAccountStore(new SqliteDatabase(controlDb, durable), clock),
    node: null,
    ...sqlStores(database, clock),
    exports: new SqlExportStore(new SqliteDatabase(controlDb, () => log.durable())),
    payments: soleSqlitePayments(db, clock, ({ balanceId, amount }) => credited(balanceId, amount)),
    keyring,
    runs,
    healthy: () => books.journal.healthy,
    balance: (id) => ledger.balance(id),
    spent: async (id) => (await ledger.counters.use(id)).spent,
    held: async (id) => ({ held: ledger.counters.heldOn(id), heldAt: "all_processes" }),
    credit: (credit) => store.credit(credit),
    debit: (debit) => debits.take(debit),
    ...reads,
    async receipt(id) {
      await booked();
      return books.unbooked(id) ?? store.receipt(id);
    },
    fold: (before) => (thread ?? ends).fold(before),
    diskRefused,
    figures: () => [lostToClaims(claims.lost)],
    async close() {
      await claims.stop();
      closing = true;
      await books.close();
      await thread?.close();
      stop();
      for (const one of [booksDb, controlDb, log, db]) one.close();
    },
  };
}

/** The ledger, once all of its journal is booked: on a disk and a database of any kind. */
export async function openLedger(
  opening: BooksOptions,
  { sums, debits, holders }: LedgerParts,
): Promise<LedgerOnDisk> {
  const books = await JournalBooks.open(opening);
  const ledger = new Ledger(opening.clock, books.journal, sums, holders);
  books.follow(ledger);
  return { books, ledger, debits: new Debits(ledger, books.journal, debits) };
}

interface LedgerParts {
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
