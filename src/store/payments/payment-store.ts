import { eventOf, type RecordedEvent } from "../../customers/events/event.ts";
import type { Credit } from "../../ledger/credit.ts";
import {
  advanced,
  CAME_TO_NOTHING,
  heldInstead,
  type Payment,
  type PaymentChange,
  type PaymentState,
  paymentKey,
  type RailName,
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
import { usdFromNano } from "../../units/usd.ts";
import { logging } from "../customers/change-log.ts";
import { recording } from "../customers/events.ts";
import {
  assigned,
  type Batch,
  behind,
  type CommitStatement,
  changesOne,
  type Database,
  finds,
  inserted,
  type SqlPart,
  sql,
  touch,
  type VersionedRow,
  verbatim,
} from "../database/database.ts";
import { cancellingClaims, enteringCredit, hasRoom } from "../ledger/credits.ts";
import { AUDIT_MS } from "../ledger/sql-ledger-store.ts";
import { AS_NUMBER, NEXT_POLL_AT, TableColumns } from "../schema/columns.ts";

const PAYMENT = new TableColumns<Payment>(
  `id rail external balanceId keyId state amount payer transaction reason order idempotencyKey isInline credited lost
    shouldBe gas wastedAt createdAt changedAt nextPollAt`,
  { isInline: AS_NUMBER, nextPollAt: NEXT_POLL_AT },
);

/** States that count against no limit, as SQL lists them. */
const NOTHING_STATES = listed(CAME_TO_NOTHING);
/** States in which it may cost gas and bring nothing. */
const MAY_FAIL_STATES = listed(["created", "submitted"]);
/** States in which a card's page is open, or what was entered there is not through. */
const WAITING_STATES = listed(["created", "submitted", "confirming"]);

/** What a change of state means for the owner. */
function paymentEvents(before: Payment, after: Payment, version: number): readonly RecordedEvent[] {
  const { id, state, balanceId, rail, amount, credited, changedAt } = after;
  if (state === before.state || !(state === "credited" || state === "refunded" || state === "disputed"))
    return [];
  return [
    eventOf(`payment.${state}`, `${id} ${version}`, {
      at: changedAt,
      balance: balanceId,
      payment_id: id,
      method: rail,
      amount_usd: usdFromNano(amount),
      credited_usd: usdFromNano(credited),
    }),
  ];
}

/** What somebody orders or decides; what a rail does by itself is nobody's change. */
function loggingPayment(
  before: Payment | null,
  { id, balanceId, rail, amount, state, reason }: Payment,
): Batch {
  const about = { subject: id, balance: balanceId };
  if (before === null)
    return logging({
      ...about,
      action: "payment.created",
      before: {},
      after: { rail, amount_usd: usdFromNano(amount), state },
    });
  if (before.state === state) return [];
  return logging({
    ...about,
    action: "payment.changed",
    before: { state: before.state },
    after: { state, reason },
  });
}

/** The entry that credits the balance; null for a change that credits nothing. */
function creditOf({ id, balanceId, rail, changedAt }: Payment, { credit }: PaymentChange): Credit | null {
  if (credit === undefined) return null;
  const { amount, purpose } = credit;
  return { balanceId, amount, idempotencyKey: paymentKey(id, purpose), note: rail, at: changedAt };
}

function listed(states: readonly PaymentState[]): string {
  return states.map((state) => `'${state}'`).join(", ");
}

/**
 * Payments, next to the credits that they become. Payments into one balance, and of one payer where these are counted,
 * are added one after another; if several gateways poll one payment, each decides on what the other has
 * written.
 */
export class SqlPaymentStore implements PaymentStore, PaymentAudit {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, "now">,
    /** Called with a credit in the turn in which it was committed. */
    private readonly credited: (credit: Credit) => void = () => {},
  ) {}

  async add<Cap extends PaymentCap>(payment: Payment, caps: readonly Cap[]): Promise<Added<Cap>> {
    const { db } = this;
    const { rail, external, balanceId, idempotencyKey, payer } = payment;
    return db.change<Added<Cap>>(balanceId, async () => {
      const [balance] = await db.read<VersionedRow>`SELECT id, version FROM balances WHERE id = ${balanceId}`;
      assert(balance !== undefined, `payment for ${balanceId}, which does not exist`);
      const withinCaps: { readonly cap: Cap; readonly statement: SqlPart; readonly holds: boolean }[] = [];
      for (const cap of caps) {
        const statement = isWithin(payment, cap);
        withinCaps.push({ cap, statement, holds: (await db.rows(statement)).length > 0 });
      }
      // Last, whether it is known: what is above a cap may be this payment, which somebody else has added meanwhile.
      const [sameName] = await db.read<object>`SELECT ${PAYMENT} FROM payments
        WHERE rail = ${rail} AND external = ${external} ${db.forUpdate}`;
      const [sameKey] = await db.read<object>`SELECT ${PAYMENT} FROM payments
        WHERE balance_id = ${balanceId} AND idempotency_key = ${idempotencyKey} AND ${CAME_TO_SOMETHING} ${db.forUpdate}`;
      const known = sameName ?? sameKey;
      if (known !== undefined) return { result: { kind: "known", payment: PAYMENT.read(known) } };
      const reached = withinCaps.find(({ holds }) => !holds);
      if (reached !== undefined) return { result: { kind: "capped", cap: reached.cap } };
      return {
        result: { kind: "added", payment },
        statements: [
          caps.some(({ of }) => of === "payer") ? db.lock(`${rail} ${payer}`) : null,
          caps.map((cap) => (cap.of === "network gas" ? db.lock(`wasted gas ${cap.network}`) : null)),
          touch("balances", balance),
          withinCaps.map(({ statement }) => finds(1, statement)),
          changesOne(sql`INSERT INTO payments ${inserted(PAYMENT.row(payment))}`),
          loggingPayment(null, payment),
        ],
      };
    });
  }

  async find(id: PaymentId): Promise<Payment | null> {
    return (await this.versioned(id))?.payment ?? null;
  }

  async byExternal(rail: RailName, external: string): Promise<Payment | null> {
    const [row] = await this.db.read<object>`
      SELECT ${PAYMENT} FROM payments WHERE rail = ${rail} AND external = ${external}`;
    return row === undefined ? null : PAYMENT.read(row);
  }

  async change(id: PaymentId, decide: (payment: Payment) => PaymentChange | null): Promise<Payment> {
    const { db } = this;
    const now = this.clock.now();
    return db.change<Payment>(id, async () => {
      const present = await this.versioned(id);
      assert(present !== null, `change of ${id}, which does not exist`);
      const change = decide(present.payment);
      const next = change === null ? null : advanced(present.payment, change, now);
      if (next === null) return { result: present.payment };
      const credit = creditOf(next, change!);
      const events = recording(db, paymentEvents(present.payment, next, present.version));
      const logged = loggingPayment(present.payment, next);
      if (credit === null)
        return { result: next, statements: [updating(next, present.version), events, logged] };
      if (!(await hasRoom(db, credit))) {
        const held = advanced(present.payment, heldInstead(next), next.changedAt)!;
        const statements = [updating(held, present.version), loggingPayment(present.payment, held)];
        return { result: held, statements };
      }
      return {
        result: next,
        statements: [
          updating(next, present.version),
          enteringCredit(db, credit),
          await cancellingClaims(db, id, credit.amount),
          events,
          logged,
        ],
        committed: () => this.credited(credit),
      };
    });
  }

  async drifts(): ReturnType<PaymentAudit["drifts"]> {
    const settled = epochMs(this.clock.now() - NOTED_WITHIN_MS);
    const rows = await this.db.rows<{ payment: string; drift: number | string }>(
      sql`
      SELECT payment, sum(credited) - sum(entered) AS drift FROM (
        SELECT id AS payment, balance_id, credited, 0 AS entered, 0 AS debited_at FROM payments
        UNION ALL SELECT payment_id, balance_id, 0, amount, CASE WHEN amount < 0 THEN at ELSE 0 END
          FROM credits WHERE payment_id IS NOT NULL
      ) AS lines GROUP BY payment, balance_id
      HAVING sum(credited) <> sum(entered) AND max(debited_at) < ${settled}
      UNION ALL SELECT id, credited - lost - should_be FROM payments
        WHERE ${verbatim(NEXT_POLL_AT)} IS NULL AND credited - lost <> should_be`,
      AUDIT_MS,
    );
    return rows.map(({ payment, drift }) => {
      const by = BigInt(drift);
      return { payment, driftNano: by < 0n ? -by : by };
    });
  }

  async claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Payment[]> {
    for (;;) {
      const due = await this.db.read<VersionedRow>`SELECT ${PAYMENT}, version FROM payments
        WHERE ${verbatim(NEXT_POLL_AT)} <= ${now} ORDER BY ${verbatim(NEXT_POLL_AT)} LIMIT ${limit}`;
      if (due.length === 0) return [];
      const taken = await this.db.commit(
        due.map(
          ({
            id,
            version,
          }) => sql`UPDATE payments SET ${verbatim(NEXT_POLL_AT)} = ${until}, version = version + 1
          WHERE id = ${id} AND version = ${version} AND ${verbatim(NEXT_POLL_AT)} <= ${now}`,
        ),
      );
      const mine = due.filter((_, at) => taken?.[at] === 1);
      // What others have taken is not due any more.
      if (mine.length > 0)
        return mine.map(({ version: _, ...row }) => PAYMENT.read({ ...row, nextPollAt: until }));
    }
  }

  /** Locked, because a commit that still waits for the replica is visible, and could yet be lost. */
  private async versioned(id: PaymentId): Promise<{ payment: Payment; version: number } | null> {
    const [row] = await this.db.read<VersionedRow>`
      SELECT ${PAYMENT}, version FROM payments WHERE id = ${id} ${this.db.forUpdate}`;
    if (row === undefined) return null;
    const { version, ...payment } = row;
    return { payment: PAYMENT.read(payment), version };
  }

  async oldestSubmitted(butOfReason: string): Promise<EpochMs | null> {
    const [row] = await this.db.read<{ at: EpochMs | null }>`SELECT min(created_at) AS at FROM payments
      WHERE state = 'submitted' AND state IN (${verbatim(MAY_FAIL_STATES)}) AND coalesce(reason, '') <> ${butOfReason}`;
    return row?.at ?? null;
  }

  async list(
    { balanceId, keyId, state }: PaymentFilter,
    limit: number,
    before: PaymentId | null,
  ): Promise<readonly Payment[]> {
    const rows = await this.db.read<object>`SELECT ${PAYMENT} FROM payments
      WHERE (CAST(${balanceId} AS TEXT) IS NULL OR balance_id = ${balanceId})
        AND (CAST(${keyId} AS TEXT) IS NULL OR key_id = ${keyId})
        AND (CAST(${state} AS TEXT) IS NULL OR state = ${state})
        AND (created_at, id) < (${behind("payments", before)}) ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
    return rows.map(PAYMENT.read);
  }
}

/** Found where the cap is not reached. */
function isWithin(payment: Payment, cap: PaymentCap): SqlPart {
  if ("limit" in cap) return sql`SELECT 1 WHERE ${paidIn(payment, cap)} + ${payment.amount} <= ${cap.limit}`;
  if (cap.of === "network gas") return sql`SELECT 1 WHERE ${gasRisked(cap)} + ${payment.gas} <= ${cap.most}`;
  if (cap.of === "payer gas")
    return sql`SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM payments WHERE wasted_at > ${cap.since}
      AND rail = ${payment.rail} AND payer = ${payment.payer})`;
  return sql`SELECT 1 WHERE (SELECT count(*) FROM payments WHERE ${countedBy(payment, cap)}) < ${cap.most}`;
}

function countedBy({ rail, payer, balanceId }: Payment, { of }: CountCap): SqlPart {
  switch (of) {
    case "payer":
      return sql`rail = ${rail} AND payer = ${payer} AND state IN (${verbatim(MAY_FAIL_STATES)})`;
    case "unused":
      return sql`balance_id = ${balanceId} AND state = 'unused' AND ${verbatim(NEXT_POLL_AT)} IS NOT NULL`;
    case "page":
      return sql`balance_id = ${balanceId} AND rail = 'card' AND state IN (${verbatim(WAITING_STATES)})`;
  }
}

/** Two sums, of which each has an index. */
function gasRisked({ network, since }: NetworkGasCap): SqlPart {
  const isThere = sql`substr(external, 1, ${network.length + 1}) = ${`${network}/`}`;
  return sql`CAST(coalesce((SELECT sum(gas) FROM payments WHERE wasted_at > ${since} AND ${isThere}), 0)
    + coalesce((SELECT sum(gas) FROM payments
        WHERE state IN (${verbatim(MAY_FAIL_STATES)}) AND wasted_at IS NULL AND ${isThere}), 0) AS BIGINT)`;
}

function paidIn({ balanceId, keyId }: Payment, { of, since }: AmountCap): SqlPart {
  const byKey = of === "balance" ? sql`` : sql`AND key_id = ${keyId} AND is_inline = 1`;
  return sql`(SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM payments
    WHERE balance_id = ${balanceId} AND created_at > ${since} AND ${CAME_TO_SOMETHING} ${byKey})`;
}

function updating(payment: Payment, version: number): CommitStatement {
  const { id, rail, external, balanceId, keyId, idempotencyKey, isInline, createdAt, ...changed } = payment;
  return changesOne(sql`UPDATE payments SET ${assigned(PAYMENT.row(changed))}, version = version + 1
    WHERE id = ${id} AND version = ${version}`);
}

/** The process that has debited notes it at once; if it ended, the next one does. */
const NOTED_WITHIN_MS = 60_000;

const CAME_TO_SOMETHING = sql`state NOT IN (${verbatim(NOTHING_STATES)})`;
