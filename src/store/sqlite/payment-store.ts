import type { Database } from "bun:sqlite";
import type { Credit } from "../../ledger/credit.ts";
import { advanced, type Payment, type PaymentChange, type RailName } from "../../payments/payment.ts";
import type { Added, PaymentCap, PaymentFilter, PaymentStore } from "../../payments/payment-store.ts";
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
import type { LedgerStore } from "./ledger-store.ts";

/** Payments in SQLite, beside the credits that they become. Where the connection syncs at every commit, durable. */
export class SqlitePaymentStore implements PaymentStore {
  private readonly statements;

  constructor(
    private readonly db: Database,
    private readonly ledger: Pick<LedgerStore, "credit">,
    private readonly clock: Pick<Clock, "now">,
    /** Called in the turn in which the credit was committed. */
    private readonly credited: (credit: Credit) => void,
  ) {
    this.statements = prepare(db);
  }

  /** Where nobody else is at them: what the process before had claimed is due. */
  static alone(...parts: ConstructorParameters<typeof SqlitePaymentStore>): SqlitePaymentStore {
    const store = new SqlitePaymentStore(...parts);
    store.statements.wake.run(store.clock.now());
    return store;
  }

  async add(payment: Payment, caps: readonly PaymentCap[]): Promise<Added> {
    return this.db
      .transaction((): Added => {
        const { rail, external, balanceId, idempotencyKey } = payment;
        const known =
          this.statements.byExternal.get(rail, external) ??
          this.statements.byKey.get(balanceId, idempotencyKey);
        if (known !== null) return { kind: "known", payment: paymentFromRow(known) };
        for (const cap of caps) {
          if (this.isOver(payment, cap)) return { kind: "capped", cap };
        }
        this.statements.add.run(JSON.stringify(rowOf(payment)));
        return { kind: "added", payment };
      })
      .immediate();
  }

  async find(id: PaymentId): Promise<Payment | null> {
    return found(this.statements.byId.get(id));
  }

  async byExternal(rail: RailName, external: string): Promise<Payment | null> {
    return found(this.statements.byExternal.get(rail, external));
  }

  async change(id: PaymentId, decide: (payment: Payment) => PaymentChange | null): Promise<Payment> {
    const { payment, credit } = this.db
      .transaction(() => {
        const present = found(this.statements.byId.get(id));
        assert(present !== null, `change of ${id}, which does not exist`);
        const change = decide(present);
        const next = change === null ? null : advanced(present, change, this.clock.now());
        if (next === null) return { payment: present, credit: null };
        const credit = creditOf(next, change!);
        if (credit !== null) {
          const done = this.ledger.credit(credit);
          if (done === null)
            return { payment: this.write(advanced(present, TOO_MUCH, next.changedAt)!), credit: null };
          assert(done.repeated === null, `${credit.idempotencyKey} was credited already`);
        }
        return { payment: this.write(next), credit };
      })
      .immediate();
    if (credit !== null) this.credited(credit);
    return payment;
  }

  async claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Payment[]> {
    return this.statements.claim.all(until, now, limit).map(paymentFromRow);
  }

  async list(
    { balanceId, keyId, state }: PaymentFilter,
    limit: number,
    before: PaymentId | null,
  ): Promise<readonly Payment[]> {
    const from = before === null ? null : this.statements.byId.get(before);
    const at = from?.created_at ?? Number.MAX_SAFE_INTEGER;
    return this.statements.list.all(balanceId, keyId, state, at, from?.id ?? "", limit).map(paymentFromRow);
  }

  private isOver({ rail, payer, balanceId, keyId, amount }: Payment, cap: PaymentCap): boolean {
    const { paidInto, paidBy, movingOf, unusedOf, pagesOf } = this.statements;
    switch (cap.of) {
      case "balance":
        return paidInto.get(balanceId, cap.since)!.paid + amount > cap.limit;
      case "key":
        return paidBy.get(balanceId, keyId, cap.since)!.paid + amount > cap.limit;
      case "payer":
        return movingOf.get(rail, payer)!.count >= cap.most;
      case "unused":
        return unusedOf.get(balanceId)!.count >= cap.most;
      case "page":
        return pagesOf.get(balanceId)!.count >= cap.most;
    }
  }

  private write(payment: Payment): Payment {
    const { id, state, payer, transaction, reason, order, credited, lost, changedAt, lookAt } = payment;
    this.statements.write.run(
      state,
      payer,
      transaction,
      reason,
      order,
      credited,
      lost,
      changedAt,
      lookAt,
      id,
    );
    return payment;
  }
}

const found = (row: PaymentRow<number> | null): Payment | null => (row === null ? null : paymentFromRow(row));

const COLUMNS = [
  "id",
  "rail",
  "external",
  "balance_id",
  "key_id",
  "state",
  "amount",
  "payer",
  "transaction",
  "reason",
  "order",
  "idempotency_key",
  "is_inline",
  "credited",
  "lost",
  "created_at",
  "changed_at",
  "look_at",
] as const satisfies (keyof PaymentRow<number>)[];

function prepare(db: Database) {
  const columns = COLUMNS.map((column) => `"${column}"`).join(", ");
  const some = `SELECT ${columns} FROM payments`;
  return {
    wake: db.query<never, [number]>("UPDATE payments SET look_at = ?1 WHERE look_at > ?1"),
    add: db.query<never, [string]>(
      `INSERT INTO payments (${columns}) SELECT ${COLUMNS.map((column) => `?1 ->> '${column}'`).join(", ")}`,
    ),
    byId: db.query<PaymentRow<number>, [string]>(`${some} WHERE id = ?`),
    byExternal: db.query<PaymentRow<number>, [string, string]>(`${some} WHERE rail = ? AND external = ?`),
    byKey: db.query<PaymentRow<number>, [string, string | null]>(
      `${some} WHERE balance_id = ? AND idempotency_key = ? AND state NOT IN (${NOTHING_STATES})`,
    ),
    paidInto: db.query<{ paid: NanoUsd }, [string, number]>(
      `SELECT coalesce(sum(amount), 0) AS paid FROM payments
       WHERE balance_id = ? AND created_at > ? AND state NOT IN (${NOTHING_STATES})`,
    ),
    paidBy: db.query<{ paid: NanoUsd }, [string, string | null, number]>(
      `SELECT coalesce(sum(amount), 0) AS paid FROM payments
       WHERE balance_id = ? AND key_id = ? AND created_at > ? AND is_inline = 1 AND state NOT IN (${NOTHING_STATES})`,
    ),
    movingOf: db.query<{ count: number }, [string, string | null]>(
      `SELECT count(*) AS count FROM payments WHERE rail = ? AND payer = ? AND state IN (${MAY_FAIL_STATES})`,
    ),
    unusedOf: db.query<{ count: number }, [string]>(
      "SELECT count(*) AS count FROM payments WHERE balance_id = ? AND state = 'unused' AND look_at IS NOT NULL",
    ),
    pagesOf: db.query<{ count: number }, [string]>(
      `SELECT count(*) AS count FROM payments WHERE balance_id = ? AND rail = 'card' AND state IN (${WAITING_STATES})`,
    ),
    write: db.query<
      never,
      [
        string,
        string | null,
        string | null,
        string | null,
        string,
        number,
        number,
        number,
        number | null,
        string,
      ]
    >(
      `UPDATE payments SET state = ?, payer = ?, "transaction" = ?, reason = ?, "order" = ?, credited = ?, lost = ?,
         changed_at = ?, look_at = ? WHERE id = ?`,
    ),
    claim: db.query<PaymentRow<number>, [number, number, number]>(
      `UPDATE payments SET look_at = ? WHERE id IN
         (SELECT id FROM payments WHERE look_at <= ? ORDER BY look_at LIMIT ?) RETURNING ${columns}`,
    ),
    list: db.query<PaymentRow<number>, [string | null, string | null, string | null, number, string, number]>(
      `${some} WHERE (?1 IS NULL OR balance_id = ?1) AND (?2 IS NULL OR key_id = ?2) AND (?3 IS NULL OR state = ?3)
         AND (created_at, id) < (?4, ?5) ORDER BY created_at DESC, id DESC LIMIT ?6`,
    ),
  };
}
