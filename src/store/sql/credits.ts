import { balanceCounter } from "../../ledger/counter.ts";
import {
  type Credit,
  type CreditClaim,
  type Debit,
  debitEntry,
  lossKey,
  lostOf,
  type TooMuch,
  taken,
} from "../../ledger/credit.ts";
import { paymentOfKey } from "../../payments/payment.ts";
import { assert } from "../../units/assert.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, PaymentId } from "../../units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../../units/usd.ts";
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
  if (!(yield* insertEntry(credit, ON_CONFLICT))) return yield* entryOf(db, idempotencyKey);
  const added = yield* sql`INSERT INTO counters (id, credited)
    VALUES (${balanceCounter(balanceId)}, ${amount})
    ON CONFLICT (id) DO UPDATE SET credited = counters.credited + excluded.credited
    WHERE counters.credited + excluded.credited <= ${MAX_NANO_USD} RETURNING credited`;
  if (added.length > 0) return credit;
  yield* sql`DELETE FROM credits WHERE idempotency_key = ${idempotencyKey}`;
  return null;
}

/**
 * Takes credit back, once for each idempotency key: of what is neither spent nor granted to a node; one up to an amount
 * also of what is granted, as a claim. Returns what was done under that key, now or before; or what could be taken, and
 * then nothing was.
 */
export function* debitSteps(db: SqlDatabase, debit: Debit): Steps<Credit | TooMuch> {
  const { credited, spent, granted } = yield* lockedSums(db, debit.balanceId);
  const known = yield* entryOf(db, debit.idempotencyKey);
  if (known !== null) return known;
  const unspent = credited - spent;
  const done = taken(debit.amount, { available: unspent - granted, unspent });
  if (done === null) return { available: Math.max(0, unspent - granted) as NanoUsd };
  const entry = debitEntry(debit, done);
  yield* enterDebit(entry);
  return entry;
}

function* lockedSums(db: SqlDatabase, balance: BalanceId): Steps<BalanceSums> {
  const counter = balanceCounter(balance);
  const [sums] = yield* sql<Omit<BalanceSums, "granted">>`
    SELECT credited, spent FROM counters WHERE id = ${counter} ${db.forUpdate}`;
  // A statement of its own, which sees what was granted while this transaction waited for the lock.
  const [{ granted } = { granted: 0 }] = yield* sql<Pick<BalanceSums, "granted">>`
    SELECT CAST(coalesce(sum(granted - shipped), 0) AS BIGINT) AS granted FROM grants WHERE counter = ${counter}`;
  return { credited: 0, spent: 0, ...sums, granted };
}

/** What nodes were granted and have not shipped as spent is not spent for good. */
interface BalanceSums {
  readonly credited: number;
  readonly spent: number;
  readonly granted: number;
}

/** Open claims behind this key, in the order of their keys. */
export function* openClaims(after: string, limit: number): Steps<CreditClaim[]> {
  return yield* sql<CreditClaim>`SELECT idempotency_key AS "idempotencyKey", balance_id AS "balanceId", claimed FROM credits
    WHERE claimed > 0 AND idempotency_key > ${after} ORDER BY idempotency_key LIMIT ${limit}`;
}

/**
 * Ends a claim, as soon as what nodes were granted is covered, or none of them has a grant any more. Returns what was
 * lost; null while it has to stay open.
 */
export function* decideClaim(db: SqlDatabase, claim: CreditClaim, at: EpochMs): Steps<NanoUsd | null> {
  yield* lockPayment(db, claim);
  const { credited, spent, granted } = yield* lockedSums(db, claim.balanceId);
  const [open] = yield* sql<Pick<CreditClaim, "claimed">>`
    SELECT claimed FROM credits WHERE idempotency_key = ${claim.idempotencyKey}`;
  const lost = lostOf({ ...claim, ...open }, { short: spent + granted - credited, held: granted });
  return lost === null ? null : yield* endClaim(claim, lost, at);
}

/** Whoever credits a payment has locked it before the balance. */
function* lockPayment(db: SqlDatabase, { idempotencyKey }: CreditClaim): Steps<void> {
  yield* sql`SELECT id FROM payments WHERE id = ${paymentOfKey(idempotencyKey)} ${db.forUpdate}`;
}

/** What a payment is credited again was not taken back after all: its open claims, the latest first, are less by that. */
export function* cancelClaims(payment: PaymentId, credited: NanoUsd): Steps<void> {
  const claims = yield* sql<{
    key: string;
    claimed: number;
  }>`SELECT idempotency_key AS key, claimed FROM credits
    WHERE claimed > 0 AND payment_id = ${payment} ORDER BY at DESC, idempotency_key DESC`;
  let left: number = credited;
  for (const { key, claimed } of claims) {
    const less = Math.min(left, claimed);
    left -= less;
    if (less > 0) yield* sql`UPDATE credits SET claimed = claimed - ${less} WHERE idempotency_key = ${key}`;
  }
}

/** What is lost was not taken back after all. Returns that; zero where somebody else has ended the claim. */
export function* endClaim(
  { idempotencyKey, balanceId }: CreditClaim,
  lost: NanoUsd,
  at: EpochMs,
): Steps<NanoUsd> {
  const ended = yield* sql`UPDATE credits SET claimed = 0
    WHERE idempotency_key = ${idempotencyKey} AND claimed > 0 RETURNING idempotency_key`;
  if (ended.length === 0 || lost === 0) return ZERO_USD;
  yield* sql`UPDATE counters SET credited = credited + ${lost} WHERE id = ${balanceCounter(balanceId)}`;
  const note = "spent before it could be taken back";
  yield* insertEntry({ balanceId, amount: lost, idempotencyKey: lossKey(idempotencyKey), note, at });
  yield* sql`UPDATE payments SET credited = credited + ${lost}, lost = lost + ${lost}
    WHERE id = ${paymentOfKey(idempotencyKey)}`;
  return lost;
}

/** Of what is known to be there. */
export function* enterDebit(entry: Credit): Steps<void> {
  yield* sql`UPDATE counters SET credited = credited + ${entry.amount}
    WHERE id = ${balanceCounter(entry.balanceId)}`;
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
export function* creditsOf(balance: BalanceId, limit: number): Steps<Credit[]> {
  const rows = yield* sql<CreditRow>`SELECT ${CREDIT} FROM credits
    WHERE balance_id = ${balance} AND amount <> 0 ORDER BY at DESC LIMIT ${limit}`;
  return rows.map(creditOf);
}

/** False where the idempotency key has been used, and that is no error. */
function* insertEntry(entry: Credit, onConflict = part``): Steps<boolean> {
  const { at, idempotencyKey, balanceId, amount, note, tookAll = false, claimed = ZERO_USD } = entry;
  const rows =
    yield* sql`INSERT INTO credits (idempotency_key, at, balance_id, amount, note, took_all, claimed)
    VALUES (${idempotencyKey}, ${at}, ${balanceId}, ${amount}, ${note}, ${Number(tookAll)} = 1, ${claimed})
    ${onConflict} RETURNING amount`;
  return rows.length > 0;
}

const ON_CONFLICT = part`ON CONFLICT (idempotency_key) DO NOTHING`;

const CREDIT = part`balance_id AS "balanceId", amount, idempotency_key AS "idempotencyKey", note, at,
  took_all AS "tookAll", claimed`;

/** SQLite knows no booleans. */
type CreditRow = Omit<Credit, "tookAll"> & { readonly tookAll: boolean | 0 | 1 };

const creditOf = (row: CreditRow): Credit => ({ ...row, tookAll: Boolean(row.tookAll) });
