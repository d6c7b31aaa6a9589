import type { KeyStore } from "../../src/customers/keys/key-store.ts";
import type { SqlLedgerStore } from "../../src/store/ledger/sql-ledger-store.ts";
import { DAY_MS, type EpochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";

const CLAIMED = 1_000 * DAY_MS;

/**
 * What the gateway of the first release has left, which knew no roots: a balance that was set up and got a second key,
 * the same claimed, and one that a first sign-in made; of the claim, keys that a session made, and what the account's own
 * secret may have made.
 */
export const ROWS_WITHOUT_ROOTS = `
  INSERT INTO accounts (id, email, created_at, proved_at) VALUES ('acct_kim', 'kim@example.com', 5, 6);
  INSERT INTO balances (id, recovery_hash, created_at, setup_key) VALUES ('bal_free', 'r1', 10, 'key_z');
  INSERT INTO balances (id, recovery_hash, undo_hash, created_at, account_id, attached_at, claimed_at, setup_key) VALUES
    ('bal_claimed', 'r2', NULL, 10, 'acct_kim', ${CLAIMED}, ${CLAIMED}, 'key_c'),
    ('bal_replaced', 'r3', 'r4', 10, 'acct_kim', ${CLAIMED}, ${CLAIMED}, 'key_1');
  INSERT INTO balances (id, created_at, account_id, attached_at) VALUES ('bal_own', 20, 'acct_kim', 20);
  INSERT INTO keys (id, hash, prefix, balance_id, lineage, made_by, state, created_at, budgets) VALUES
    ('key_z', 'h1', 'or-live-aaaa', 'bal_free', 'key_z', NULL, 'rotated', 10, '[]'),
    ('key_y', 'h2', 'or-live-bbbb', 'bal_free', 'key_z', NULL, 'active', 30, '[]'),
    ('key_a', 'h3', 'or-live-cccc', 'bal_free', 'key_a', NULL, 'active', 11, '[]'),
    ('key_c', 'h4', 'or-live-dddd', 'bal_claimed', 'key_c', NULL, 'active', 11, '[]'),
    ('key_o', 'h5', 'or-live-eeee', 'bal_own', 'key_o', NULL, 'active', 21, '[]'),
    ('key_s', 'h6', 'or-live-ffff', 'bal_claimed', 'key_s', 'acct_kim', 'active', 12, '[]'),
    ('key_m', 'h7', 'or-live-gggg', 'bal_own', 'key_m', 'acct_kim', 'active', 22, '[]'),
    ('key_1', 'h8', 'or-live-hhhh', 'bal_replaced', 'key_1', NULL, 'active', 10, '[]'),
    ('key_2', 'h9', 'or-live-iiii', 'bal_replaced', 'key_1', NULL, 'active', ${CLAIMED + 1}, '[]');`;

/** Credit, of which some was taken back, one end, and a grant that a node holds: in the columns that each database had. */
export const oldBooks = (isPostgres: boolean): string => `
  INSERT INTO ${isPostgres ? "counters (id, credited, spent, reserved)" : "totals (account, credited, spent)"} VALUES
    ('balance:bal_free', 500, 20${isPostgres ? ", 80" : ""}), ('day:key_z:0', 0, 20${isPostgres ? ", 0" : ""});
  INSERT INTO credits (idempotency_key, at, balance_id, amount, note) VALUES
    ('payment:pay_a', 1, 'bal_free', 600, 'card'), ('payment:pay_a:back:1', 2, 'bal_free', -100, 'card');
  INSERT INTO ends (receipt, at, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body${isPostgres ? ", node" : ""})
    VALUES ('rcpt_1', 5, 'bal_free', 'key_z', 'settled', 20, 0, 0, 'day:key_z:0', '', '{}'${isPostgres ? ", 'n0'" : ""});
  INSERT INTO nodes (name, epoch, open${isPostgres ? ", lease_until, seen" : ""})
    VALUES ('n0', 3, ${isPostgres ? "TRUE, now(), 0" : "1"});
  INSERT INTO grants (counter, node, granted, used, number, heard, shipped${isPostgres ? "" : ", inquiry"})
    VALUES ('balance:bal_free', 'n0', 100, 30, 4, 2, 20${isPostgres ? "" : ", 2"});
  INSERT INTO budgets VALUES ('bud_1', 'bal_free', 'team', 50, 'month');
  INSERT INTO suspensions (at, subject, reason, ${isPostgres ? "by_whom" : "by"})
    VALUES (7, 'bal_free', 'abuse', 'kim');`;

/** What the stores say of it. */
export async function readOldBooks(keys: KeyStore, ledger: SqlLedgerStore) {
  const { budgets } = (await keys.balanceWithBudgets("bal_free"))!;
  const [suspension] = await keys.suspensions("bal_free", 9);
  const debit = { balanceId: "bal_free", note: null, at: 9 as EpochMs, amount: "all" } as const;
  return {
    budgets: budgets.map(({ name, window, cap }) => [name, window, cap]),
    suspendedBy: suspension?.by,
    credits: (await ledger.credits("bal_free", 9)).map(({ amount }) => amount),
    drifts: (await ledger.audit()).drifts,
    // All but what is spent and what is granted.
    taken: await ledger.debit({ ...debit, idempotencyKey: "all" }),
  };
}

export const OLD_BOOKS = {
  budgets: [["team", "month", 50]],
  suspendedBy: "kim",
  credits: [-100, 600],
  drifts: [],
  taken: { amount: -400 },
};

export const OLD_BALANCES = ["bal_free", "bal_claimed", "bal_own", "bal_replaced"] as BalanceId[];

/** The roots of all keys. */
export async function readOldRoots(keys: KeyStore): Promise<Record<string, number>> {
  const all = await keys.keysOf(OLD_BALANCES, 20, null);
  return Object.fromEntries(all.map(({ id, root }) => [id, root]));
}

export const OLD_ROOTS = {
  key_z: 0,
  key_y: 0,
  key_a: 0,
  key_c: 0,
  key_o: 0,
  key_s: 1,
  key_m: 0,
  key_1: 0,
  key_2: 1,
};
