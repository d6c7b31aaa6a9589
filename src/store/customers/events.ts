import type { EventId, RecordedEvent } from "../../customers/events/event.ts";
import type { DeliveredEvent, EventFilter, EventReader } from "../../customers/events/event-reader.ts";
import { type CounterId, isBalanceCounter } from "../../ledger/counter.ts";
import { type CreditSums, creditEvents } from "../../ledger/credit-events.ts";
import { countedLimit, limitEvents } from "../../ledger/limit-events.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import type { EpochMs } from "../../units/clock.ts";
import { isOfCharges } from "../../units/event-kinds.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { type Batch, behind, type Database, type SqlPart, sql, verbatim } from "../database/database.ts";
import { ROTATION_ID } from "../schema/columns.ts";

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

/** Below so much credit of a balance, there is an event: below what its owner or else the operator says; null for none. */
export const lowCreditOf = (balance: SqlPart): SqlPart =>
  sql`coalesce((SELECT low_credit FROM balances WHERE id = ${balance}), (SELECT max(low_credit) FROM webhooks))`;

/**
 * What was just charged, with its sums: balances, and limits where an endpoint takes their events. None where nobody takes
 * events. Read in the transaction that charged it, whose locks keep others from charging it in between.
 */
export function chargedCounters(
  db: Pick<Database, "table">,
  spent: ReadonlyMap<CounterId, number>,
  ends: readonly TerminalRecord[],
): SqlPart | null {
  const rows = chargedRows(spent, ends);
  if (rows.length === 0) return null;
  return sql`SELECT c.id AS counter, r.amount, r.balance, c.credited, c.spent, ${lowCreditOf(sql`r.balance`)} AS low,
      CASE r.kind WHEN 'day' THEN k.daily_limit WHEN 'month' THEN k.monthly_limit WHEN 'budget' THEN b.cap ELSE x.cap END AS cap,
      k.id AS "keyId", k.name AS "keyName", b.name AS "budgetName", b.per AS "perTag"
    FROM ${db.table(rows, COLUMNS)} r JOIN counters c ON c.id = r.id
      LEFT JOIN keys k ON r.kind IN ('day', 'month') AND k.id = (SELECT id FROM keys
        WHERE ${verbatim(ROTATION_ID)} = r.subject AND state <> 'revoked' ORDER BY created_at DESC, id DESC LIMIT 1)
      LEFT JOIN budgets b ON r.kind = 'budget' AND b.id = r.subject AND b.period = r.period
        AND (b.per IS NOT NULL) = (r.of_value = 1)
      LEFT JOIN runs x ON r.kind = 'run' AND x.balance_id = r.balance AND x.name = r.subject
        AND CAST(x.started_at AS TEXT) = r.period
    WHERE CASE WHEN r.kind = 'balance'
      THEN ${CREDIT_TAKEN} OR EXISTS (SELECT 1 FROM owner_webhooks w WHERE w.balance_id = r.balance)
        OR EXISTS (SELECT 1 FROM balances o WHERE o.id = r.balance AND o.low_credit IS NOT NULL) OR ${EXPORTED}
      ELSE coalesce(k.daily_limit, k.monthly_limit, b.cap, x.cap) IS NOT NULL AND (${LIMITS_TAKEN} OR ${EXPORTED}) END`;
}

const COLUMNS = {
  id: "TEXT",
  amount: "BIGINT",
  balance: "TEXT",
  kind: "TEXT",
  subject: "TEXT",
  period: "TEXT",
  of_value: "BIGINT",
} as const;

/** An endpoint of the operator takes what is said of credit. Mails alone do where the operator names an amount. */
const CREDIT_TAKEN = sql`EXISTS (SELECT 1 FROM webhooks WHERE low_credit IS NOT NULL OR kinds <> ' credit.low ')`;

/** Somebody may take events about charges. */
export const CHARGES_TAKEN = sql`(${CREDIT_TAKEN} OR EXISTS (SELECT 1 FROM owner_webhooks)
  OR EXISTS (SELECT 1 FROM balances WHERE low_credit IS NOT NULL) OR ${EXPORTED})`;

/** Some endpoint takes what is said of a balance's limits. */
const LIMITS_TAKEN = sql`
  EXISTS (SELECT 1 FROM webhooks w WHERE w.kinds = '' OR w.kinds LIKE '% limit.reached %') OR
  EXISTS (SELECT 1 FROM owner_webhooks w WHERE w.balance_id = r.balance AND (w.kinds = '' OR w.kinds LIKE '% limit.reached %'))`;

function chargedRows(spent: ReadonlyMap<CounterId, number>, ends: readonly TerminalRecord[]) {
  const owners = new Map<CounterId, BalanceId>();
  for (const { balance, counters, parts = [] } of ends) {
    for (const counter of counters) owners.set(counter, balance);
    for (const [counter] of parts) owners.set(counter, balance);
  }
  return [...owners].flatMap(([id, balance]) => {
    const amount = spent.get(id) ?? 0;
    if (amount <= 0) return [];
    if (isBalanceCounter(id))
      return { id, amount, balance, kind: "balance", subject: balance, period: "", of_value: 0 };
    const limit = countedLimit(id);
    if (limit === null) return [];
    const { kind, subject, period, isValue } = limit;
    return { id, amount, balance, kind, subject, period, of_value: isValue ? 1 : 0 };
  });
}

export interface ChargedCounter extends CreditSums {
  readonly counter: CounterId;
  readonly amount: number;
  readonly balance: BalanceId;
  readonly low: NanoUsd | null;
  /** Null for a balance. */
  readonly cap: NanoUsd | null;
  readonly keyId: KeyId | null;
  readonly keyName: string | null;
  readonly budgetName: string | null;
  readonly perTag: string | null;
}

/** What follows from the charges. */
export const recordingCharges = (
  db: Pick<Database, "table">,
  charged: readonly ChargedCounter[],
  ends: readonly TerminalRecord[],
  at: EpochMs,
): Batch =>
  recording(
    db,
    charged.flatMap((one) => {
      const { counter, balance, amount, credited, spent, low, cap } = one;
      const before = { credited, spent: spent - amount };
      if (isBalanceCounter(counter)) return creditEvents(balance, before, { credited, spent }, { low, at });
      if (cap === null) return [];
      const limit = { counter, balance, cap, before: spent - amount, after: spent, at };
      return limitEvents({ ...limit, of: nameOf(one, ends) });
    }),
  );

/** The limit, as its owner knows it. A value of a tag is in the receipts of the ends that were counted under it. */
function nameOf(
  { counter, keyId, keyName, budgetName, perTag }: ChargedCounter,
  ends: readonly TerminalRecord[],
) {
  const { kind, subject } = countedLimit(counter)!;
  if (kind === "run") return { limit: "run", run: subject };
  if (kind !== "budget") return { limit: kind, key_id: keyId, name: keyName };
  if (perTag === null) return { limit: "budget", budget: budgetName };
  const end = ends.find(({ counters, parts = [] }) =>
    [...counters, ...parts.map(([id]) => id)].includes(counter),
  );
  const { tags = {} } = JSON.parse(end!.body) as { readonly tags?: Readonly<Record<string, string>> };
  return { limit: "budget", budget: budgetName, tag: perTag, value: tags[perTag] ?? null };
}

export class SqlEventReader implements EventReader {
  constructor(private readonly db: Database) {}

  async list(filter: EventFilter, limit: number, before: EventId | null): Promise<DeliveredEvent[]> {
    const events = await this.db.read<RecordedEvent>`
      SELECT id, kind, balance_id AS "balanceId", created_at AS at, data FROM events
      WHERE ${matching(filter)} AND (created_at, id) < (${behind("events", before)})
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
    if (events.length === 0) return [];
    const rows = await this.db.rows<DeliveryRow>(this.deliveriesOf(events, filter.reader === "owner"));
    const byEvent = Map.groupBy(rows, ({ eventId }) => eventId);
    return events.map((event) => ({
      ...event,
      deliveries: (byEvent.get(event.id) ?? []).map(({ webhookId, deliveredAt }) => ({
        webhookId,
        deliveredAt,
      })),
    }));
  }

  async has(filter: EventFilter, id: string): Promise<boolean> {
    const [row] = await this.db.read`SELECT 1 FROM events WHERE id = ${id} AND ${matching(filter)}`;
    return row !== undefined;
  }

  /** Waiting events are found by their endpoints, in the order of their table. */
  private deliveriesOf(events: readonly RecordedEvent[], isOwners: boolean): SqlPart {
    const found = this.db.table(
      events.map(({ id, at, balanceId }) => ({ id, at, balance: balanceId })),
      { id: "TEXT", at: "BIGINT", balance: "TEXT" },
    );
    const taken = isOwners
      ? sql`AND EXISTS (SELECT 1 FROM owner_webhooks w WHERE w.id = d.webhook_id AND w.balance_id = e.balance)`
      : sql``;
    const operators = isOwners
      ? sql``
      : sql`UNION ALL SELECT e.id, d.webhook_id, NULL FROM ${found} e CROSS JOIN webhooks w
          JOIN webhook_deliveries d ON d.webhook_id = w.id AND d.created_at = e.at AND d.event_id = e.id`;
    return sql`SELECT e.id AS "eventId", d.webhook_id AS "webhookId", d.delivered_at AS "deliveredAt"
      FROM ${found} e JOIN delivered_events d ON d.event_id = e.id ${taken}
      UNION ALL SELECT e.id, d.webhook_id, NULL FROM ${found} e JOIN owner_webhooks w ON w.balance_id = e.balance
        JOIN owner_deliveries d ON d.webhook_id = w.id AND d.created_at = e.at AND d.event_id = e.id
      ${operators}`;
  }
}

interface DeliveryRow {
  readonly eventId: EventId;
  readonly webhookId: string;
  readonly deliveredAt: EpochMs | null;
}

const matching = ({ balanceId, kind }: EventFilter): SqlPart =>
  sql`${balanceId === null ? sql`TRUE` : sql`balance_id = ${balanceId}`} AND ${kind === null ? sql`TRUE` : sql`kind = ${kind}`}`;
