import { balanceCounter } from "../../ledger/counter.ts";
import { type Credit, type Debit, debitEntry, type TooMuch, taken } from "../../ledger/credit.ts";
import { assert } from "../../units/assert.ts";
import type { BalanceId } from "../../units/id.ts";
import { MAX_NANO_USD, type NanoUsd } from "../../units/usd.ts";
import { part, type SqlDatabase, type Steps, sql } from "./statement.ts";

/**
 * Credits a balance that exists, once for each idempotency key. Returns what was credited under that key, now or before.
 * Null, and nothing is credited, where it would come to more in all than is counted exactly.
 */
export function* creditSteps(db: SqlDatabase, credit: Credit): Steps<Credit | null> {
  const { balanceId } = credit;
  // A balance that nobody ever used may be removed at any time.
  const there = yield* sql`SELECT id FROM balances WHERE id = ${balanceId} ${db.forReference}`;
  assert(there.length > 0, `credit for ${balanceId}, which does not exist`);
  return yield* enterCredit(db, credit);
}

/** The same, whether or not the balance is there. */
export function* enterCredit(db: SqlDatabase, credit: Credit): Steps<Credit | null> {
  const { amount, idempotencyKey, balanceId } = credit;
  const { totals, account } = db.names;
  if (!(yield* insertEntry(credit, ON_CONFLICT))) return yield* entryOf(db, idempotencyKey);
  const added = yield* sql`INSERT INTO ${totals} (${account}, credited)
    VALUES (${balanceCounter(balanceId)}, ${amount})
    ON CONFLICT (${account}) DO UPDATE SET credited = ${totals}.credited + excluded.credited
    WHERE ${totals}.credited + excluded.credited <= ${MAX_NANO_USD} RETURNING credited`;
  if (added.length > 0) return credit;
  yield* sql`DELETE FROM credits WHERE idempotency_key = ${idempotencyKey}`;
  return null;
}

/**
 * Takes credit back, once for each idempotency key, as far as it is neither spent nor granted to a node. Returns what was
 * done under that key, now or before; or what could be taken, and then nothing was.
 */
export function* debitSteps(db: SqlDatabase, debit: Debit): Steps<Credit | TooMuch> {
  const { totals, account, reserved } = db.names;
  const [sums] = yield* sql<Record<"credited" | "spent" | "reserved", number>>`
    SELECT credited, spent, ${reserved} AS reserved FROM ${totals}
    WHERE ${account} = ${balanceCounter(debit.balanceId)} ${db.forUpdate}`;
  const known = yield* entryOf(db, debit.idempotencyKey);
  if (known !== null) return known;
  const { credited, spent, reserved: granted } = sums ?? { credited: 0, spent: 0, reserved: 0 };
  const available = (credited - spent - granted) as NanoUsd;
  const amount = taken(debit.amount, available);
  if (amount === null) return { available };
  const entry = debitEntry(debit, amount);
  yield* enterDebit(db, entry);
  return entry;
}

/** Of what is known to be there. */
export function* enterDebit({ names }: SqlDatabase, entry: Credit): Steps<void> {
  yield* sql`UPDATE ${names.totals} SET credited = credited + ${entry.amount}
    WHERE ${names.account} = ${balanceCounter(entry.balanceId)}`;
  // In PostgreSQL, where the key is being used for another balance right now, this is tried again and finds it.
  yield* insertEntry(entry);
}

/** What was credited, or taken back, under this idempotency key. */
export function* entryOf({ forUpdate }: SqlDatabase, idempotencyKey: string): Steps<Credit | null> {
  const [row] = yield* sql<CreditRow>`
    SELECT ${CREDIT} FROM credits WHERE idempotency_key = ${idempotencyKey} ${forUpdate}`;
  return row === undefined ? null : creditOf(row);
}

/** Newest first. */
export function* creditsOf({ names }: SqlDatabase, balance: BalanceId, limit: number): Steps<Credit[]> {
  const rows = yield* sql<CreditRow>`SELECT ${CREDIT} FROM credits
    WHERE balance_id = ${balance} AND amount <> 0 ORDER BY ${names.entered} DESC LIMIT ${limit}`;
  return rows.map(creditOf);
}

/** False where the idempotency key has been used, and that is no error. */
function* insertEntry(entry: Credit, onConflict = part``): Steps<boolean> {
  const { at, idempotencyKey, balanceId, amount, note, tookAll = false } = entry;
  const rows = yield* sql`INSERT INTO credits (idempotency_key, at, balance_id, amount, note, took_all)
    VALUES (${idempotencyKey}, ${at}, ${balanceId}, ${amount}, ${note}, ${Number(tookAll)} = 1)
    ${onConflict} RETURNING amount`;
  return rows.length > 0;
}

const ON_CONFLICT = part`ON CONFLICT (idempotency_key) DO NOTHING`;

const CREDIT = part`balance_id AS "balanceId", amount, idempotency_key AS "idempotencyKey", note, at,
  took_all AS "tookAll"`;

/** SQLite knows no booleans. */
type CreditRow = Omit<Credit, "tookAll"> & { readonly tookAll: boolean | 0 | 1 };

const creditOf = (row: CreditRow): Credit => ({ ...row, tookAll: Boolean(row.tookAll) });
