import type { EventId, RecordedEvent } from "../../customers/events/event.ts";
import type {
  ConfiguredWebhook,
  DeliveryQueue,
  DeliveryState,
  OperatorsWebhook,
  Webhook,
  WebhookStore,
} from "../../customers/events/webhook.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import type { Database } from "../database/database.ts";
import { type Batch, type SqlPart, sql, verbatim } from "../database/statement.ts";

/** Events that wait for the endpoints of one table. Of several processes, the one that puts an endpoint off sends to it. */
export abstract class SqlDeliveryQueue implements DeliveryQueue {
  private readonly webhooks: SqlPart;
  private readonly deliveries: SqlPart;

  protected constructor(
    protected readonly db: Database,
    { webhooks, deliveries }: Readonly<Record<"webhooks" | "deliveries", string>>,
  ) {
    this.webhooks = verbatim(webhooks);
    this.deliveries = verbatim(deliveries);
  }

  /** Endpoints that are not paused, for which events wait and which are due. */
  protected abstract due(now: EpochMs, limit: number): Promise<readonly Webhook[]>;

  async claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Webhook[] | null> {
    const [some] = await this.db.read`SELECT 1 FROM ${this.webhooks} LIMIT 1`;
    if (some === undefined) return null;
    const due = await this.due(now, limit);
    if (due.length === 0) return [];
    const taken = await this.db.commit(
      due.map(
        ({ id, dueAt }) => sql`UPDATE ${this.webhooks} SET due_at = ${until}
          WHERE id = ${id} AND due_at = ${dueAt} AND paused_at IS NULL`,
      ),
    );
    return due.flatMap((webhook, at) => (taken?.[at] === 1 ? [{ ...webhook, dueAt: until }] : []));
  }

  waiting(id: string, limit: number): Promise<readonly RecordedEvent[]> {
    return this.db.read<RecordedEvent>`
      SELECT e.id, e.kind, e.balance_id AS "balanceId", e.created_at AS at, e.data
      FROM ${this.deliveries} d JOIN events e ON e.id = d.event_id
      WHERE d.webhook_id = ${id} ORDER BY d.created_at, d.event_id LIMIT ${limit}`;
  }

  async note(
    { id, dueAt: claimed }: Webhook,
    delivered: readonly EventId[],
    { failures, problem, pausedAt, dueAt }: DeliveryState,
    now: EpochMs,
  ): Promise<void> {
    const ids = this.db.among(delivered);
    await this.db.commit([
      sql`INSERT INTO delivered_events (event_id, webhook_id, delivered_at)
        SELECT id, ${id}, ${now} FROM events WHERE id IN ${ids} ON CONFLICT DO NOTHING`,
      sql`DELETE FROM ${this.deliveries} WHERE webhook_id = ${id} AND event_id IN ${ids}`,
      sql`UPDATE ${this.webhooks} SET failures = ${failures}, problem = ${problem}, paused_at = ${pausedAt}, due_at = ${dueAt}
        WHERE id = ${id} AND due_at = ${claimed}`,
      pausedAt === null ? [] : this.pausing(id),
    ]);
  }

  /** What becomes of the events that wait for an endpoint that is paused; they stay unless it says otherwise. */
  protected pausing(_id: string): Batch {
    return [];
  }
}

/** The endpoints of the configuration. */
export class SqlWebhookStore extends SqlDeliveryQueue implements WebhookStore {
  constructor(db: Database) {
    super(db, { webhooks: "webhooks", deliveries: "webhook_deliveries" });
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

  protected async due(now: EpochMs, limit: number): Promise<readonly Webhook[]> {
    const rows = await this.db.read<WebhookRow>`
      SELECT id, url, secrets, failures, due_at AS "dueAt" FROM webhooks
      WHERE paused_at IS NULL AND due_at <= ${now}
        AND EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_id = webhooks.id) LIMIT ${limit}`;
    return rows.map(fromRow);
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

/** Each between two spaces; empty for all. */
export const kindsColumn = (kinds: readonly WebhookEventKind[] | null): string =>
  kinds === null ? "" : ` ${kinds.join(" ")} `;

export const kindsFrom = (column: string): readonly WebhookEventKind[] | null =>
  column === "" ? null : (column.trim().split(" ") as WebhookEventKind[]);
