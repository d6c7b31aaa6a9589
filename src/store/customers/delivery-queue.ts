import type { EventId, RecordedEvent } from "../../customers/events/event.ts";
import type { DeliveryState, Webhook } from "../../customers/events/webhook.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { Database } from "../database/database.ts";
import { type Batch, type SqlPart, sql, verbatim } from "../database/statement.ts";

/** Events that wait for the endpoints of one table. */
export class WaitingEvents {
  private readonly webhooks: SqlPart;
  private readonly deliveries: SqlPart;

  constructor(
    private readonly db: Database,
    { webhooks, deliveries }: Readonly<Record<"webhooks" | "deliveries", string>>,
  ) {
    this.webhooks = verbatim(webhooks);
    this.deliveries = verbatim(deliveries);
  }

  /** Puts off those that nobody else has since they were read; true for each of them. */
  async putOff(due: readonly Pick<Webhook, "id" | "dueAt">[], until: EpochMs): Promise<readonly boolean[]> {
    const taken = await this.db.commit(
      due.map(
        ({ id, dueAt }) => sql`UPDATE ${this.webhooks} SET due_at = ${until}
          WHERE id = ${id} AND due_at = ${dueAt} AND paused_at IS NULL`,
      ),
    );
    return due.map((_, at) => taken?.[at] === 1);
  }

  first(id: string, limit: number): Promise<readonly RecordedEvent[]> {
    return this.db.read<RecordedEvent>`
      SELECT e.id, e.kind, e.balance_id AS "balanceId", e.created_at AS at, e.data
      FROM ${this.deliveries} d JOIN events e ON e.id = d.event_id
      WHERE d.webhook_id = ${id} ORDER BY d.created_at, d.event_id LIMIT ${limit}`;
  }

  noting(
    { id, dueAt: claimed }: Webhook,
    delivered: readonly EventId[],
    { failures, problem, pausedAt, dueAt }: DeliveryState,
    now: EpochMs,
  ): Batch {
    const ids = this.db.among(delivered);
    return [
      sql`INSERT INTO delivered_events (event_id, webhook_id, delivered_at)
        SELECT id, ${id}, ${now} FROM events WHERE id IN ${ids} ON CONFLICT DO NOTHING`,
      sql`DELETE FROM ${this.deliveries} WHERE webhook_id = ${id} AND event_id IN ${ids}`,
      sql`UPDATE ${this.webhooks} SET failures = ${failures}, problem = ${problem}, paused_at = ${pausedAt}, due_at = ${dueAt}
        WHERE id = ${id} AND due_at = ${claimed}`,
    ];
  }
}
