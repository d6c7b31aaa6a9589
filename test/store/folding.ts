import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import type { EpochMs } from "../../src/units/clock.ts";

/** A process that deletes every receipt of a database, slice by slice, and says after each how far it is. */
const [path, before] = process.argv.slice(2) as [string, string];
const store = new SqliteLedgerStore(new SqliteDatabase(openDatabase(path, "NORMAL")));
for (;;) {
  const deleted = await store.fold(Number(before) as EpochMs);
  if (deleted === 0) break;
  process.stdout.write(`${deleted}\n`);
  await Bun.sleep(0);
}
