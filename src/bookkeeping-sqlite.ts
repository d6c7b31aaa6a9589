import { type Bookkeeping, type BookkeepingParts, journalOptions, withMemory } from "./bookkeeping.ts";
import { Keyring } from "./keys/keyring.ts";
import { Ledger } from "./ledger/ledger.ts";
import { SqliteAccountStore } from "./store/account-store.ts";
import { Books } from "./store/books.ts";
import { Checkpointer } from "./store/checkpointer.ts";
import { SqliteKeyStore } from "./store/key-store.ts";
import { LedgerStore } from "./store/ledger-store.ts";
import { mendsWalReset, openDatabase, sqliteVersion } from "./store/sqlite.ts";
import { UsageReader } from "./store/usage.ts";

/** One process that keeps everything in its data folder. */
export async function openSqliteBooks(parts: BookkeepingParts): Promise<Bookkeeping> {
  const { folder, clock, log } = parts;
  const controlDb = openDatabase(folder.databasePath);
  const booksDb = openDatabase(folder.databasePath, "NORMAL");
  const control = new LedgerStore(controlDb);
  const store = new LedgerStore(booksDb);
  const checkpointer = mendsWalReset(sqliteVersion(booksDb))
    ? new Checkpointer(folder.databasePath, clock, (error) => log("books", { error: String(error) }))
    : null;
  const books = await Books.open({
    ...journalOptions(parts, folder.path),
    store,
    ...(checkpointer === null ? {} : { checkpoint: () => checkpointer.now() }),
  });
  const ledger = new Ledger(clock, books.journal, control);
  books.follow(ledger);
  const keys = new SqliteKeyStore(controlDb, clock);
  const usage = new UsageReader(folder.databasePath);
  return {
    ledger,
    journal: books.journal,
    keys,
    nodes: { list: async () => [], close: async () => "unknown" },
    accounts: new SqliteAccountStore(controlDb, clock),
    keyring: new Keyring(keys),
    healthy: () => books.journal.healthy,
    balance: (id) => ledger.balance(id),
    use: (id) => ledger.use(id),
    async credit(credit) {
      const done = control.credit(credit);
      if (done === null || done.repeated !== null) return done?.repeated ?? null;
      ledger.credited(credit.balanceId, credit.amount);
      return credit;
    },
    credits: async (balance, limit) => control.credits(balance, limit),
    async receipt(id) {
      books.applyAll();
      return control.receipt(id);
    },
    async receipts(balance, filter, limit, before) {
      books.applyAll();
      return control.receipts(balance, filter, limit, before);
    },
    usage(of) {
      books.applyAll();
      return usage.sums(of);
    },
    fold: async (before) => store.fold(before),
    async audit() {
      await books.journal.flushed();
      books.applyAll();
      return withMemory(control.audit(), ledger, books.appliedThrough, (id) => control.spent(id));
    },
    figures: () => [],
    async close() {
      checkpointer?.stop();
      await books.close();
      usage.stop();
      controlDb.close();
      booksDb.close();
    },
  };
}
