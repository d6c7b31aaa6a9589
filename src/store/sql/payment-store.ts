import type { Credit } from "../../ledger/credit.ts";
import {
  advanced,
  type Payment,
  type PaymentChange,
  type RailName,
  TOO_MUCH,
} from "../../payments/payment.ts";
import type {
  Added,
  AmountCap,
  CountCap,
  NetworkGasCap,
  PaymentAudit,
  PaymentCap,
  PaymentFilter,
  PaymentStore,
} from "../../payments/payment-store.ts";
import { assert } from "../../units/assert.ts";
import { type Clock, type EpochMs, epochMs } from "../../units/clock.ts";
import type { PaymentId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { AUDIT_MS } from "../audit.ts";
import { cancelClaims, creditSteps } from "./credits.ts";
import {
  creditOf,
  MAY_FAIL_STATES,
  NOTHING_STATES,
  PAYMENT,
  type PaymentRow,
  paymentFromRow,
  rowOf,
  WAITING_STATES,
} from "./payment-rows.ts";
import {
  assigned,
  behind,
  inserted,
  part,
  type SqlDatabase,
  type SqlPart,
  type Steps,
  sql,
  verbatim,
} from "./statement.ts";

/**
 * Payments, next to the credits that they become. Payments into one balance, and of one payer where these are counted,
 * are added one after another; of several gateways that look at one payment, each decides on what the other has
 * written.
 */
export class SqlPaymentStore implements PaymentStore, PaymentAudit {
  constructor(
    private readonly db: SqlDatabase,
    private readonly clock: Pick<Clock, "now">,
    /** Told of a credit in the turn in which it was committed. */
    private readonly credited: (credit: Credit) => void = () => {},
  ) {}

  async add<Cap extends PaymentCap>(payment: Payment, caps: readonly Cap[]): Promise<Added<Cap>> {
    const { db } = this;
    const { rail, external, balanceId, idempotencyKey, payer } = payment;
    return db.write<Added<Cap>>(function* () {
      if (caps.some(({ of }) => of === "payer")) yield* db.lock(`${rail} ${payer}`);
      for (const cap of caps) if (cap.of === "network gas") yield* db.lock(`wasted gas ${cap.network}`);
      yield* sql`SELECT id FROM balances WHERE id = ${balanceId} ${db.forUpdate}`;
      const [sameName] = yield* sql<PaymentRow>`SELECT ${PAYMENT} FROM payments
        WHERE rail = ${rail} AND external = ${external} ${db.forUpdate}`;
      const [sameKey] = yield* sql<PaymentRow>`SELECT ${PAYMENT} FROM payments
        WHERE balance_id = ${balanceId} AND idempotency_key = ${idempotencyKey} AND ${CAME_TO_SOMETHING} ${db.forUpdate}`;
      const known = sameName ?? sameKey;
      if (known !== undefined) return { kind: "known", payment: paymentFromRow(known) };
      for (const cap of caps) {
        if (yield* isOver(payment, cap)) return { kind: "capped", cap };
      }
      // Where another balance adds the same at this moment, this is tried again and finds it.
      yield* sql`INSERT INTO payments ${inserted(rowOf(payment))}`;
      return { kind: "added", payment };
    });
  }

  async find(id: PaymentId): Promise<Payment | null> {
    return this.db.read(() => locked(this.db, id));
  }

  async byExternal(rail: RailName, external: string): Promise<Payment | null> {
    const [row] = await this.db.query<PaymentRow>`
      SELECT ${PAYMENT} FROM payments WHERE rail = ${rail} AND external = ${external}`;
    return row === undefined ? null : paymentFromRow(row);
  }

  async change(id: PaymentId, decide: (payment: Payment) => PaymentChange | null): Promise<Payment> {
    const { db } = this;
    const now = this.clock.now();
    const steps = function* (): Steps<{ payment: Payment; credit: Credit | null }> {
      const present = yield* locked(db, id);
      assert(present !== null, `change of ${id}, which does not exist`);
      const change = decide(present);
      const next = change === null ? null : advanced(present, change, now);
      if (next === null) return { payment: present, credit: null };
      const credit = creditOf(next, change!);
      if (credit === null) return { payment: yield* write(next), credit };
      const done = yield* creditSteps(db, credit);
      if (done === null)
        return { payment: yield* write(advanced(present, TOO_MUCH, next.changedAt)!), credit: null };
      assert(done === credit, `${credit.idempotencyKey} was credited already`);
      yield* cancelClaims(id, credit.amount);
      return { payment: yield* write(next), credit };
    };
    const { payment } = await db.write(steps, {
      committed: ({ credit }) => {
        if (credit !== null) this.credited(credit);
      },
    });
    return payment;
  }

  async drifts(): ReturnType<PaymentAudit["drifts"]> {
    const settled = epochMs(this.clock.now() - NOTED_WITHIN_MS);
    const steps = () => sql<{ payment: string; drift: number | string }>`
      SELECT payment, sum(credited) - sum(entered) AS drift FROM (
        SELECT id AS payment, balance_id, credited, 0 AS entered, 0 AS debited_at FROM payments
        UNION ALL SELECT payment_id, balance_id, 0, amount, CASE WHEN amount < 0 THEN at ELSE 0 END
          FROM credits WHERE payment_id IS NOT NULL
      ) AS lines GROUP BY payment, balance_id
      HAVING sum(credited) <> sum(entered) AND max(debited_at) < ${settled}
      UNION ALL SELECT id, credited - lost - should_be FROM payments
        WHERE look_at IS NULL AND credited - lost <> should_be`;
    const rows = await this.db.read(steps, AUDIT_MS);
    return rows.map(({ payment, drift }) => {
      const by = BigInt(drift);
      return { payment, driftNano: by < 0n ? -by : by };
    });
  }

  async claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Payment[]> {
    const { skipLocked } = this.db;
    const due = await this.db.query`SELECT id FROM payments WHERE look_at <= ${now} LIMIT 1`;
    if (due.length === 0) return [];
    return this.db.write(function* () {
      const rows = yield* sql<PaymentRow>`UPDATE payments SET look_at = ${until} WHERE id IN
        (SELECT id FROM payments WHERE look_at <= ${now} ORDER BY look_at LIMIT ${limit} ${skipLocked}) RETURNING ${PAYMENT}`;
      return rows.map(paymentFromRow);
    });
  }

  async oldestSubmitted(butOfReason: string): Promise<EpochMs | null> {
    const [row] = await this.db.query<{ at: EpochMs | null }>`SELECT min(created_at) AS at FROM payments
      WHERE state = 'submitted' AND state IN (${verbatim(MAY_FAIL_STATES)}) AND coalesce(reason, '') <> ${butOfReason}`;
    return row?.at ?? null;
  }

  async list(
    { balanceId, keyId, state }: PaymentFilter,
    limit: number,
    before: PaymentId | null,
  ): Promise<readonly Payment[]> {
    const rows = await this.db.query<PaymentRow>`SELECT ${PAYMENT} FROM payments
      WHERE (CAST(${balanceId} AS TEXT) IS NULL OR balance_id = ${balanceId})
        AND (CAST(${keyId} AS TEXT) IS NULL OR key_id = ${keyId})
        AND (CAST(${state} AS TEXT) IS NULL OR state = ${state})
        AND (created_at, id) < (${behind("payments", before)}) ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
    return rows.map(paymentFromRow);
  }
}

/** Locked, because a commit that still waits for the replica is visible, and could yet be lost. */
function* locked({ forUpdate }: SqlDatabase, id: PaymentId): Steps<Payment | null> {
  const [row] = yield* sql<PaymentRow>`SELECT ${PAYMENT} FROM payments WHERE id = ${id} ${forUpdate}`;
  return row === undefined ? null : paymentFromRow(row);
}

function* isOver(payment: Payment, cap: PaymentCap): Steps<boolean> {
  if ("limit" in cap) return (yield* paidIn(payment, cap)) + payment.amount > cap.limit;
  if (cap.of === "network gas") return (yield* gasRisked(cap)) + payment.gas > cap.most;
  if (cap.of === "payer gas") {
    const wasted = yield* sql`SELECT id FROM payments WHERE wasted_at > ${cap.since}
      AND rail = ${payment.rail} AND payer = ${payment.payer} LIMIT 1`;
    return wasted.length > 0;
  }
  const [row] = yield* sql<{ count: number }>`
    SELECT count(*) AS count FROM payments WHERE ${countedBy(payment, cap)}`;
  return row!.count >= cap.most;
}

function countedBy({ rail, payer, balanceId }: Payment, { of }: CountCap): SqlPart {
  switch (of) {
    case "payer":
      return part`rail = ${rail} AND payer = ${payer} AND state IN (${verbatim(MAY_FAIL_STATES)})`;
    case "unused":
      return part`balance_id = ${balanceId} AND state = 'unused' AND look_at IS NOT NULL`;
    case "page":
      return part`balance_id = ${balanceId} AND rail = 'card' AND state IN (${verbatim(WAITING_STATES)})`;
  }
}

function* gasRisked({ network, since }: NetworkGasCap): Steps<number> {
  const isThere = part`substr(external, 1, ${network.length + 1}) = ${`${network}/`}`;
  const [row] = yield* sql<{ gas: number | string }>`SELECT
    coalesce((SELECT sum(gas) FROM payments WHERE wasted_at > ${since} AND ${isThere}), 0)
    + coalesce((SELECT sum(gas) FROM payments
        WHERE state IN (${verbatim(MAY_FAIL_STATES)}) AND wasted_at IS NULL AND ${isThere}), 0) AS gas`;
  return Number(row!.gas);
}

function* paidIn({ balanceId, keyId }: Payment, { of, since }: AmountCap): Steps<NanoUsd> {
  const byKey = of === "balance" ? part`` : part`AND key_id = ${keyId} AND is_inline = 1`;
  const [row] = yield* sql<{ paid: number | string }>`SELECT coalesce(sum(amount), 0) AS paid FROM payments
    WHERE balance_id = ${balanceId} AND created_at > ${since} AND ${CAME_TO_SOMETHING} ${byKey}`;
  return Number(row!.paid) as NanoUsd;
}

function* write(payment: Payment): Steps<Payment> {
  const { id, rail, external, balance_id, key_id, idempotency_key, is_inline, created_at, ...changed } =
    rowOf(payment);
  yield* sql`UPDATE payments SET ${assigned(changed)} WHERE id = ${id}`;
  return payment;
}

/** Whoever has debited begins to note it in the same moment; or, where that process ended, the next one does. */
const NOTED_WITHIN_MS = 60_000;

const CAME_TO_SOMETHING = part`state NOT IN (${verbatim(NOTHING_STATES)})`;
