import type { SQL, TransactionSQL } from "bun";
import { advanced, type Payment, type PaymentChange, type RailName } from "../../payments/payment.ts";
import type {
  Added,
  AmountCap,
  CountCap,
  PaymentCap,
  PaymentFilter,
  PaymentStore,
} from "../../payments/payment-store.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { PaymentId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import {
  creditOf,
  MAY_FAIL_STATES,
  NOTHING_STATES,
  type PaymentRow,
  paymentFromRow,
  rowOf,
  TOO_MUCH,
  WAITING_STATES,
} from "../payment-rows.ts";
import { creditIn } from "./ledger-store.ts";
import type { Postgres } from "./postgres.ts";

/**
 * Payments in PostgreSQL, beside the credits that they become. Payments into one balance, and of one payer where these
 * are counted, are added one after another;
 * of several gateways that look at one payment, each decides on what the other has written.
 */
export class PostgresPaymentStore implements PaymentStore {
  constructor(
    private readonly postgres: Postgres,
    private readonly clock: Pick<Clock, "now">,
  ) {}

  async add(payment: Payment, caps: readonly PaymentCap[]): Promise<Added> {
    return this.postgres.transaction(async (sql): Promise<Added> => {
      const { rail, external, balanceId, idempotencyKey, payer } = payment;
      if (caps.some(({ of }) => of === "payer"))
        await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`${rail} ${payer}`}, 0))`;
      await sql`SELECT id FROM balances WHERE id = ${balanceId} FOR UPDATE`;
      const [known] = await sql<PaymentRow<string>[]>`SELECT * FROM payments
        WHERE (rail = ${rail} AND external = ${external}) OR (balance_id = ${balanceId}
          AND idempotency_key = ${idempotencyKey} AND ${cameToSomething(sql)}) FOR UPDATE`;
      if (known !== undefined) return { kind: "known", payment: paymentFromRow(known) };
      for (const cap of caps) {
        if (await isOver(sql, payment, cap)) return { kind: "capped", cap };
      }
      // Where another balance adds the same at this moment, this is tried again and finds it.
      await sql`INSERT INTO payments ${sql(rowOf(payment))}`;
      return { kind: "added", payment };
    });
  }

  async find(id: PaymentId): Promise<Payment | null> {
    return this.postgres.transaction((sql) => locked(sql, id));
  }

  async byExternal(rail: RailName, external: string): Promise<Payment | null> {
    const [row] = await this.postgres.query<PaymentRow<string>>(
      (sql) => sql`SELECT * FROM payments WHERE rail = ${rail} AND external = ${external}`,
    );
    return row === undefined ? null : paymentFromRow(row);
  }

  async change(id: PaymentId, decide: (payment: Payment) => PaymentChange | null): Promise<Payment> {
    return this.postgres.transaction(async (sql) => {
      const present = await locked(sql, id);
      assert(present !== null, `change of ${id}, which does not exist`);
      const change = decide(present);
      const next = change === null ? null : advanced(present, change, this.clock.now());
      if (next === null) return present;
      const credit = creditOf(next, change!);
      const done = credit === null ? next : await creditIn(sql, credit);
      assert(done === null || done === next || done === credit, `${id} was credited already`);
      return write(sql, done === null ? advanced(present, TOO_MUCH, next.changedAt)! : next);
    });
  }

  async claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Payment[]> {
    return this.postgres.transaction(async (sql) => {
      const rows = await sql<PaymentRow<string>[]>`UPDATE payments SET look_at = ${until} WHERE id IN
        (SELECT id FROM payments WHERE look_at <= ${now} ORDER BY look_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)
        RETURNING *`;
      return rows.map(paymentFromRow);
    });
  }

  async list(
    { balanceId, keyId, state }: PaymentFilter,
    limit: number,
    before: PaymentId | null,
  ): Promise<readonly Payment[]> {
    const rows = await this.postgres.query<PaymentRow<string>>(
      (sql) => sql`SELECT * FROM payments
        WHERE (${balanceId}::text IS NULL OR balance_id = ${balanceId})
          AND (${keyId}::text IS NULL OR key_id = ${keyId}) AND (${state}::text IS NULL OR state = ${state})
          AND (created_at, id) < (
            coalesce((SELECT created_at FROM payments WHERE id = ${before}), ${Number.MAX_SAFE_INTEGER}), coalesce(${before}::text, ''))
        ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
    );
    return rows.map(paymentFromRow);
  }
}

/** Locked, because a commit that still waits for the replica is visible, and could yet be lost. */
async function locked(sql: TransactionSQL, id: PaymentId): Promise<Payment | null> {
  const [row] = await sql<PaymentRow<string>[]>`SELECT * FROM payments WHERE id = ${id} FOR UPDATE`;
  return row === undefined ? null : paymentFromRow(row);
}

async function isOver(sql: TransactionSQL, payment: Payment, cap: PaymentCap): Promise<boolean> {
  if ("limit" in cap) return (await paidIn(sql, payment, cap)) + payment.amount > cap.limit;
  const counted = countedBy(sql, payment, cap);
  const [row] = await sql<{ count: string }[]>`SELECT count(*) AS count FROM payments WHERE ${counted}`;
  return Number(row!.count) >= cap.most;
}

function countedBy(sql: TransactionSQL, { rail, payer, balanceId }: Payment, { of }: CountCap) {
  switch (of) {
    case "payer":
      return sql`rail = ${rail} AND payer = ${payer} AND state IN (${sql.unsafe(MAY_FAIL_STATES)})`;
    case "unused":
      return sql`balance_id = ${balanceId} AND state = 'unused' AND look_at IS NOT NULL`;
    case "page":
      return sql`balance_id = ${balanceId} AND rail = 'card' AND state IN (${sql.unsafe(WAITING_STATES)})`;
  }
}

async function paidIn(
  sql: TransactionSQL,
  { balanceId, keyId }: Payment,
  { of, since }: AmountCap,
): Promise<NanoUsd> {
  const [row] = await sql<{ paid: string }[]>`SELECT coalesce(sum(amount), 0) AS paid FROM payments
    WHERE balance_id = ${balanceId} AND created_at > ${since} AND ${cameToSomething(sql)}
      AND (${of} = 'balance' OR (key_id = ${keyId} AND is_inline = 1))`;
  return Number(row!.paid) as NanoUsd;
}

async function write(sql: TransactionSQL, payment: Payment): Promise<Payment> {
  const { id, state, payer, transaction, reason, order, credited, lost, changedAt, lookAt } = payment;
  await sql`UPDATE payments SET state = ${state}, payer = ${payer}, "transaction" = ${transaction}, reason = ${reason},
      "order" = ${order}, credited = ${credited}, lost = ${lost}, changed_at = ${changedAt}, look_at = ${lookAt}
    WHERE id = ${id}`;
  return payment;
}

const cameToSomething = (sql: SQL) => sql`state NOT IN (${sql.unsafe(NOTHING_STATES)})`;
