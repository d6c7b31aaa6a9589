import type { AccountStore } from "../../src/customers/accounts/account-store.ts";
import { belonging } from "../../src/customers/accounts/belonging.ts";
import type { KeyStore } from "../../src/customers/keys/key-store.ts";
import type { EpochMs } from "../../src/units/clock.ts";

const DAY_MS = 86_400_000;
const CLAIMED = 1_000 * DAY_MS;

/**
 * What a gateway from before claims could be undone has left: a balance that was set up and got a second key,
 * the same claimed, and one that a first sign-in made.
 */
export const OLD_ROWS = `
  INSERT INTO accounts (id, email, created_at, proved_at) VALUES ('acct_kim', 'kim@example.com', 5, 6);
  INSERT INTO balances (id, recovery_hash, created_at) VALUES ('bal_free', 'r1', 10);
  INSERT INTO balances (id, recovery_hash, created_at, account_id, attached_at)
    VALUES ('bal_claimed', 'r2', 10, 'acct_kim', ${CLAIMED});
  INSERT INTO balances (id, created_at, account_id, attached_at) VALUES ('bal_own', 20, 'acct_kim', 20);
  INSERT INTO keys (id, hash, prefix, balance_id, lineage, state, created_at, budgets) VALUES
    ('key_z', 'h1', 'or-live-aaaa', 'bal_free', 'key_z', 'rotated', 10, '[]'),
    ('key_y', 'h2', 'or-live-bbbb', 'bal_free', 'key_z', 'active', 30, '[]'),
    ('key_a', 'h3', 'or-live-cccc', 'bal_free', 'key_a', 'active', 11, '[]'),
    ('key_c', 'h4', 'or-live-dddd', 'bal_claimed', 'key_c', 'active', 11, '[]'),
    ('key_o', 'h5', 'or-live-eeee', 'bal_own', 'key_o', 'active', 21, '[]');`;

/** What one from before roots has left: of a claim, keys that a session made, and what the account's own secret may have. */
export const ROWS_WITHOUT_ROOTS = `
  INSERT INTO balances (id, recovery_hash, undo_hash, created_at, account_id, attached_at, claimed_at, setup_key)
    VALUES ('bal_replaced', 'r3', 'r4', 10, 'acct_kim', ${CLAIMED}, ${CLAIMED}, 'key_1');
  INSERT INTO keys (id, hash, prefix, balance_id, lineage, made_by, state, created_at, budgets) VALUES
    ('key_s', 'h6', 'or-live-ffff', 'bal_claimed', 'key_s', 'acct_kim', 'active', 12, '[]'),
    ('key_m', 'h7', 'or-live-gggg', 'bal_own', 'key_m', 'acct_kim', 'active', 22, '[]'),
    ('key_1', 'h8', 'or-live-hhhh', 'bal_replaced', 'key_1', NULL, 'active', 10, '[]'),
    ('key_2', 'h9', 'or-live-iiii', 'bal_replaced', 'key_1', NULL, 'active', ${CLAIMED + 1}, '[]');`;

/** The roots of the keys of both. */
export async function readOldRoots(keys: KeyStore): Promise<Record<string, number>> {
  const all = await keys.keysOf(["bal_free", "bal_claimed", "bal_own", "bal_replaced"], 20, null);
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

/** Of each balance, whose keys may claim it, and whom it belongs to a day and a week after the claim. */
export async function readOldAccounts(keys: KeyStore, accounts: AccountStore) {
  const seen: Record<string, unknown> = {};
  for (const id of ["bal_free", "bal_claimed", "bal_own"] as const) {
    const { balance } = (await keys.balanceWithBudgets(id))!;
    const belongings = (await accounts.belonging(id))!;
    const stateOn = (day: number) => belonging(belongings, (CLAIMED + day * DAY_MS) as EpochMs).state;
    seen[id] = [balance.setUpKey, balance.closed, stateOn(1), stateOn(7)];
  }
  return seen;
}

export const OLD_ACCOUNTS = {
  bal_free: ["key_z", false, "nobody's", "nobody's"],
  bal_claimed: ["key_c", false, "claimed", "kept"],
  bal_own: [null, false, "own", "own"],
};
