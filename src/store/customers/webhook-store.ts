import type { EventId, RecordedEvent } from "../../customers/events/event.ts";
import type {
  ConfiguredWebhook,
  DeliveryState,
  Webhook,
  WebhookStore,
} from "../../customers/events/webhook.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../database/statement.ts";

/** Endpoints, and the events that wait for them. Of several processes, the one that puts an endpoint off sends to it. */
export class SqlWebhookStore implements WebhookStore {
  constructor(private readonly db: Database) {}

  async configure(webhooks: readonly ConfiguredWebhook[]): Promise<void> {
    const [some] = await this.db.read`SELECT 1 FROM webhooks LIMIT 1`;
    if (webhooks.length === 0 && some === undefined) return;
    const ids = this.db.among(webhooks.map(({ id }) => id));
    await this.db.commit([
      this.db.lock("webhooks"),
      sql`DELETE FROM webhook_deliveries WHERE webhook_id NOT IN ${ids}`,
      sql`DELETE FROM webhooks WHERE id NOT IN ${ids}`,
      webhooks.map(
        ({
          id,
          url,
          kinds,
          secrets,
          lowCredit,
        }) => sql`INSERT INTO webhooks (id, url, kinds, secrets, low_credit)
          VALUES (${id}, ${url}, ${kinds === null ? "" : ` ${kinds.join(" ")} `}, ${secrets.join(" ")}, ${lowCredit})
          ON CONFLICT (id) DO UPDATE SET kinds = excluded.kinds, secrets = excluded.secrets,
            low_credit = excluded.low_credit, paused_at = NULL,
            due_at = CASE WHEN webhooks.paused_at IS NULL THEN webhooks.due_at ELSE 0 END,
            failures = CASE WHEN webhooks.paused_at IS NULL THEN webhooks.failures ELSE 0 END`,
      ),
    ]);
  }

  async claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Webhook[] | null> {
    const rows = await this.db.read<WebhookRow & { readonly isDue: number }>`
      SELECT id, url, secrets, failures, due_at AS "dueAt",
        CASE WHEN paused_at IS NULL AND due_at <= ${now}
          AND EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_id = webhooks.id) THEN 1 ELSE 0 END AS "isDue"
      FROM webhooks`;
    if (rows.length === 0) return null;
    const due = rows.filter(({ isDue }) => isDue === 1).slice(0, limit);
    if (due.length === 0) return [];
    const taken = await this.db.commit(
      due.map(
        ({ id, dueAt }) => sql`UPDATE webhooks SET due_at = ${until}
          WHERE id = ${id} AND due_at = ${dueAt} AND paused_at IS NULL`,
      ),
    );
    return due.flatMap(({ id, url, secrets, failures }, at) =>
      taken?.[at] === 1 ? [{ id, url, secrets: secrets.split(" "), failures, dueAt: until }] : [],
    );
  }

  waiting(id: string, limit: number): Promise<readonly RecordedEvent[]> {
    return this.db.read<RecordedEvent>`
      SELECT e.id, e.kind, e.balance_id AS "balanceId", e.created_at AS at, e.data
      FROM webhook_deliveries d JOIN events e ON e.id = d.event_id
      WHERE d.webhook_id = ${id} ORDER BY d.created_at, d.event_id LIMIT ${limit}`;
  }

  async note(
    { id, dueAt: claimed }: Webhook,
    delivered: readonly EventId[],
    { failures, problem, pausedAt, dueAt }: DeliveryState,
    now: EpochMs,
  ): Promise<void> {
    await this.db.commit([
      sql`INSERT INTO delivered_events (event_id, webhook_id, delivered_at)
        SELECT id, ${id}, ${now} FROM events WHERE id IN ${this.db.among(delivered)} ON CONFLICT DO NOTHING`,
      sql`DELETE FROM webhook_deliveries WHERE webhook_id = ${id} AND event_id IN ${this.db.among(delivered)}`,
      sql`UPDATE webhooks SET failures = ${failures}, problem = ${problem}, paused_at = ${pausedAt}, due_at = ${dueAt}
        WHERE id = ${id} AND due_at = ${claimed}`,
    ]);
  }

  async forget(before: EpochMs): Promise<number> {
    const old = await this.db.read<{ id: EventId }>`
      SELECT id FROM events WHERE created_at < ${before} ORDER BY created_at, id LIMIT ${FORGOTTEN_AT_ONCE}`;
    if (old.length === 0) return 0;
    const ids = this.db.among(old.map(({ id }) => id));
    await this.db.commit([
      sql`DELETE FROM webhook_deliveries WHERE event_id IN ${ids}`,
      sql`DELETE FROM owner_deliveries WHERE event_id IN ${ids}`,
      sql`DELETE FROM delivered_events WHERE event_id IN ${ids}`,
      sql`DELETE FROM events WHERE id IN ${ids}`,
    ]);
    return old.length;
  }
}

type WebhookRow = Omit<Webhook, "secrets"> & { readonly secrets: string };

const FORGOTTEN_AT_ONCE = 500;
