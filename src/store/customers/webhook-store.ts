import type { EventId, RecordedEvent } from "../../customers/events/event.ts";
import type {
  ConfiguredWebhook,
  DeliveryState,
  OperatorsWebhook,
  Webhook,
  WebhookStore,
} from "../../customers/events/webhook.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../database/statement.ts";
import { WaitingEvents } from "./delivery-queue.ts";
import { kindsColumn, kindsFrom } from "./own-webhook-store.ts";

/** Endpoints, and the events that wait for them. Of several processes, the one that puts an endpoint off sends to it. */
export class SqlWebhookStore implements WebhookStore {
  private readonly waitingEvents: WaitingEvents;

  constructor(private readonly db: Database) {
    this.waitingEvents = new WaitingEvents(db, { webhooks: "webhooks", deliveries: "webhook_deliveries" });
  }

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
          VALUES (${id}, ${url}, ${kindsColumn(kinds)}, ${secrets.join(" ")}, ${lowCredit})
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
    const taken = await this.waitingEvents.putOff(due, until);
    return due.flatMap((row, at) => (taken[at] ? [{ ...fromRow(row), dueAt: until }] : []));
  }

  waiting(id: string, limit: number): Promise<readonly RecordedEvent[]> {
    return this.waitingEvents.first(id, limit);
  }

  async note(
    webhook: Webhook,
    delivered: readonly EventId[],
    state: DeliveryState,
    now: EpochMs,
  ): Promise<void> {
    await this.db.commit(this.waitingEvents.noting(webhook, delivered, state, now));
  }

  async list(): Promise<readonly OperatorsWebhook[]> {
    const rows = await this.db.read<ListedRow>`
      SELECT id, url, kinds, secrets, failures, problem, paused_at AS "pausedAt", due_at AS "dueAt",
        (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = webhooks.id) AS waiting
      FROM webhooks ORDER BY url, id`;
    return rows.map(({ kinds, problem, pausedAt, waiting, ...row }) => ({
      ...fromRow(row),
      kinds: kindsFrom(kinds),
      problem,
      pausedAt,
      waiting,
    }));
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

type WebhookRow = Omit<Webhook, "secrets" | "format"> & { readonly secrets: string };

type ListedRow = WebhookRow &
  Pick<OperatorsWebhook, "problem" | "pausedAt" | "waiting"> & { readonly kinds: string };

/** Slack's has no secret. */
const fromRow = ({ id, url, secrets, failures, dueAt }: WebhookRow): Webhook => ({
  id,
  url,
  format: secrets === "" ? "slack" : "signed",
  secrets: secrets === "" ? [] : secrets.split(" "),
  failures,
  dueAt,
});

const FORGOTTEN_AT_ONCE = 500;
