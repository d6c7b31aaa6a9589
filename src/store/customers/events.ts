import type { RecordedEvent } from "../../customers/events/event.ts";
import { balanceCounter, type CounterId, isBalanceCounter } from "../../ledger/counter.ts";
import { type CreditSums, creditEvents } from "../../ledger/credit-events.ts";
import type { EpochMs } from "../../units/clock.ts";
import { isOfCharges } from "../../units/event-kinds.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { Database } from "../database/database.ts";
import { type Batch, type SqlPart, sql } from "../database/statement.ts";

/**
 * Records events, in the transaction of what they are about: once each, for the endpoints that take them and for an
 * export. Events about charges are written only if somebody takes them.
 */
export function recording(db: Pick<Database, "table">, events: readonly RecordedEvent[]): Batch {
  if (events.length === 0) return [];
  const rows = db.table(
    events.map(({ id, kind, balanceId, at, data }) => ({
      id,
      kind,
      balance: balanceId,
      at,
      data,
      kept: isOfCharges(kind) ? 0 : 1,
    })),
    { id: "TEXT", kind: "TEXT", balance: "TEXT", at: "BIGINT", data: "TEXT", kept: "BIGINT" },
  );
  const isNew = sql`NOT EXISTS (SELECT 1 FROM events WHERE events.id = e.id)`;
  return [
    sql`INSERT INTO webhook_deliveries (webhook_id, created_at, event_id)
      SELECT w.id, e.at, e.id FROM ${rows} e JOIN webhooks w ON ${ACCEPTED} WHERE ${isNew}`,
    sql`INSERT INTO owner_deliveries (webhook_id, created_at, event_id)
      SELECT w.id, e.at, e.id FROM ${rows} e JOIN owner_webhooks w ON ${OWNERS_TAKES} WHERE ${isNew}`,
    sql`INSERT INTO events (id, kind, balance_id, created_at, data)
      SELECT e.id, e.kind, e.balance, e.at, e.data FROM ${rows} e
      WHERE e.kept = 1 OR EXISTS (SELECT 1 FROM webhooks w WHERE ${ACCEPTED})
        OR EXISTS (SELECT 1 FROM owner_webhooks w WHERE ${OWNERS_TAKES})
        OR ${EXPORTED}
      ON CONFLICT (id) DO NOTHING`,
  ];
}

const ACCEPTED = sql`(w.kinds = '' OR w.kinds LIKE '% ' || e.kind || ' %')`;
/** One that is paused misses what happens. */
const OWNERS_TAKES = sql`w.balance_id = e.balance AND w.paused_at IS NULL AND ${ACCEPTED}`;

const EXPORTED = sql`EXISTS (SELECT 1 FROM export_targets WHERE is_active = 1)`;

/** Below so much credit, there is an event; null for none. */
export const LOW_CREDIT = sql`(SELECT max(low_credit) FROM webhooks)`;

/**
 * The balances among counters that were just charged, with their sums: none where nobody takes events. Read in the
 * transaction that charged them, whose locks keep others from charging them in between.
 */
export function chargedBalances(
  db: Pick<Database, "table">,
  spent: ReadonlyMap<CounterId, number>,
): SqlPart | null {
  const charged = [...spent].flatMap(([id, amount]) =>
    isBalanceCounter(id) && amount > 0 ? [{ id, amount }] : [],
  );
  if (charged.length === 0) return null;
  return sql`SELECT c.id AS counter, r.amount, c.credited, c.spent, ${LOW_CREDIT} AS low
    FROM ${db.table(charged, { id: "TEXT", amount: "BIGINT" })} r JOIN counters c ON c.id = r.id
    WHERE EXISTS (SELECT 1 FROM webhooks) OR ${EXPORTED}`;
}

export interface ChargedBalance extends CreditSums {
  readonly counter: CounterId;
  readonly amount: number;
  readonly low: NanoUsd | null;
}

/** What follows from the charges. */
export const recordingCharges = (
  db: Pick<Database, "table">,
  charged: readonly ChargedBalance[],
  at: EpochMs,
): Batch =>
  recording(
    db,
    charged.flatMap(({ counter, amount, credited, spent, low }) => {
      const before = { credited, spent: spent - amount };
      return creditEvents(balanceOf(counter), before, { credited, spent }, { low, at });
    }),
  );

const balanceOf = (counter: CounterId): BalanceId =>
  counter.slice(balanceCounter("" as BalanceId).length) as BalanceId;
