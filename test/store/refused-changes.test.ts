import { afterEach, expect, test } from "bun:test";
import type { Account } from "../../src/customers/accounts/account.ts";
import type { AccountState } from "../../src/customers/accounts/account-store.ts";
import { SqlAccountStore } from "../../src/store/customers/account-store.ts";
import type { SqlPart } from "../../src/store/database/database.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { refuse, refused } from "../../src/units/errors/refusal.ts";
import type { AccountId, BalanceId } from "../../src/units/id.ts";
import type { SecretHash } from "../../src/units/secret-hash.ts";
import { ManualClock } from "../fakes/clock.ts";

/** Somebody else commits before the read of this number. */
class InterruptedDatabase extends SqliteDatabase {
  reads = 0;
  interrupt: { readonly at: number; run(): Promise<unknown> } | null = null;

  override async rows<Row>(statement: SqlPart): Promise<Row[]> {
    const { interrupt } = this;
    if (interrupt !== null && ++this.reads === interrupt.at) {
      this.interrupt = null;
      await interrupt.run();
    }
    return super.rows(statement);
  }
}

const BALANCE = "bal_1" as BalanceId;
const RECOVERY = "recovery" as SecretHash;
const OWNER = { id: "acct_1" as AccountId, email: "a@example.com", wallet: null } as Account;

const open: ReturnType<typeof openDatabase>[] = [];
afterEach(() => {
  for (const db of open.splice(0)) db.close();
});

test.each([1, 2, 3])(
  "an owner who confirms before read %i of a change that would be refused is seen whole, or not at all",
  async (at) => {
    const db = openDatabase(":memory:");
    open.push(db);
    const clock = new ManualClock();
    const database = new InterruptedDatabase(db);
    const store = new SqlAccountStore(database, clock);
    const other = new SqlAccountStore(new SqliteDatabase(db), clock);
    db.run("INSERT INTO balances (id, recovery_hash, created_at, setup_key) VALUES (?, ?, 0, 'key_1')", [
      BALANCE,
      RECOVERY,
    ]);
    const account = { ...OWNER, createdAt: clock.now(), provedAt: clock.now(), suspended: null } as Account;
    await other.change({ balance: BALANCE }, () => ({
      account,
      claim: { balanceId: BALANCE, accountId: account.id, at: clock.now() },
    }));
    const run = () =>
      other.change({ account: account.id, balance: BALANCE }, () => ({ account, attach: [BALANCE] }));
    database.interrupt = { at, run };
    const seen: AccountState[] = [];
    const decided = await store.change({ recovery: RECOVERY }, (state) => {
      seen.push(state);
      return refuse("invalid_request", "there is nothing to undo");
    });
    expect(refused(decided)).toBe(true);
    const { owner, claim } = seen.at(-1)!.balance!;
    expect([owner?.account.id ?? null, claim?.accountId ?? null]).toEqual([account.id, null]);
  },
);
