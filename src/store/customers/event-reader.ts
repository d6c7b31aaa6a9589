import type { EventId, RecordedEvent } from "../../customers/events/event.ts";
import type { DeliveredEvent, EventFilter, EventReader } from "../../customers/events/event-reader.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { Database } from "../database/database.ts";
import { behind, type SqlPart, sql } from "../database/statement.ts";

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

  /** Those that wait are found by their endpoints, in the order of their table. */
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
