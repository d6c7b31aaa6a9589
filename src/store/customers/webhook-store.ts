import type { EventId, RecordedEvent } from "../../customers/events/event.ts";
import {
  MAX_OWN_WEBHOOKS,
  type OwnWebhook,
  type OwnWebhookChange,
  type OwnWebhookStore,
} from "../../customers/events/own-webhook.ts";
import { signing } from "../../customers/events/own-webhooks.ts";
import type {
  ConfiguredWebhook,
  DeliveryQueue,
  DeliveryState,
  OperatorsWebhook,
  Webhook,
  WebhookStore,
} from "../../customers/events/webhook.ts";
import type { Actor } from "../../customers/keys/root.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import type { BalanceId } from "../../units/id.ts";
import {
  assigned,
  type Batch,
  changesOne,
  type Database,
  inserted,
  type SqlPart,
  sql,
  verbatim,
} from "../database/database.ts";
import { AS_WORDS, TableColumns } from "../schema/columns.ts";
import { loggingWebhook } from "./logged-fields.ts";

/** Events that wait for the endpoints of one table. With several processes, the one that puts an endpoint off sends to it. */
abstract class SqlDeliveryQueue implements DeliveryQueue {
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
        ({ id, url, kinds, secrets, lowCredit }) => sql`INSERT INTO webhooks
          ${inserted({ ...CONFIGURED.row({ id, url, kinds, secrets }), low_credit: lowCredit })} ON CONFLICT (id) DO UPDATE SET kinds = excluded.kinds, secrets = excluded.secrets,
            low_credit = excluded.low_credit, paused_at = NULL,
            due_at = CASE WHEN webhooks.paused_at IS NULL THEN webhooks.due_at ELSE 0 END,
            failures = CASE WHEN webhooks.paused_at IS NULL THEN webhooks.failures ELSE 0 END`,
      ),
    ]);
  }

  protected async due(now: EpochMs, limit: number): Promise<readonly Webhook[]> {
    const rows = await this.db.read<object>`SELECT ${CONFIGURED} FROM webhooks w
      WHERE paused_at IS NULL AND due_at <= ${now}
        AND EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_id = w.id) LIMIT ${limit}`;
    return rows.map(configuredFromRow);
  }

  async list(): Promise<readonly OperatorsWebhook[]> {
    const rows = await this.db.read<Pick<OperatorsWebhook, "waiting">>`
      SELECT ${CONFIGURED}, (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = w.id) AS waiting
      FROM webhooks w WHERE low_credit IS NOT NULL OR kinds <> ' credit.low '
        OR EXISTS (SELECT 1 FROM balances WHERE low_credit IS NOT NULL) ORDER BY url, id`;
    return rows.map((row) => ({ ...row, ...configuredFromRow(row) }));
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

const FORGOTTEN_AT_ONCE = 500;

type Kinds = readonly WebhookEventKind[] | null;
/** Each between two spaces; empty for all. */
const AS_KINDS = {
  write: (kinds: Kinds): string => (kinds === null ? "" : ` ${kinds.join(" ")} `),
  read: (column: string): Kinds => (column === "" ? null : (column.trim().split(" ") as WebhookEventKind[])),
};

type Configured = Omit<OperatorsWebhook, "format" | "waiting">;
const CONFIGURED = new TableColumns<Configured>(
  "id url kinds secrets failures problem pausedAt dueAt",
  { kinds: AS_KINDS, secrets: AS_WORDS },
  "w.",
);

/** Slack's has no secret. */
function configuredFromRow(row: object): Omit<OperatorsWebhook, "waiting"> {
  const webhook = CONFIGURED.read(row);
  const { url, secrets } = webhook;
  return { ...webhook, format: url === "" ? "mail" : secrets.length === 0 ? "slack" : "signed" };
}

export class SqlOwnWebhookStore extends SqlDeliveryQueue implements OwnWebhookStore {
  constructor(db: Database) {
    super(db, { webhooks: "owner_webhooks", deliveries: "owner_deliveries" });
  }

  async list(balance: BalanceId): Promise<readonly OwnWebhook[]> {
    const rows = await this.db.read<object>`
      SELECT ${WEBHOOK} FROM owner_webhooks w WHERE balance_id = ${balance} ORDER BY created_at, id`;
    return rows.map(WEBHOOK.read);
  }

  async find(balance: BalanceId, id: string): Promise<OwnWebhook | null> {
    const [row] = await this.db.read<object>`
      SELECT ${WEBHOOK} FROM owner_webhooks w WHERE balance_id = ${balance} AND id = ${id}`;
    return row === undefined ? null : WEBHOOK.read(row);
  }

  add(webhook: OwnWebhook, by: Actor): ReturnType<OwnWebhookStore["add"]> {
    const { balanceId } = webhook;
    return this.db.change<"added" | "full" | "changed hands">(balanceId, async () => {
      if (!(await this.isOwner(balanceId, by))) return { result: "changed hands" };
      if ((await this.list(balanceId)).length >= MAX_OWN_WEBHOOKS) return { result: "full" };
      const { id } = webhook;
      return {
        result: "added",
        statements: [
          holding(balanceId, by),
          loggingWebhook(null, webhook),
          changesOne(sql`INSERT INTO owner_webhooks ${inserted(WEBHOOK.row(webhook))}`),
          // Others may have added one meanwhile; they wait for the balance now.
          changesOne(sql`UPDATE owner_webhooks SET due_at = due_at WHERE id = ${id}
            AND (SELECT count(*) FROM owner_webhooks WHERE balance_id = ${balanceId}) <= ${MAX_OWN_WEBHOOKS}`),
        ],
      };
    });
  }

  change(
    balance: BalanceId,
    id: string,
    change: OwnWebhookChange,
    by: Actor,
  ): Promise<OwnWebhook | null | "changed hands"> {
    return this.db.change<OwnWebhook | null | "changed hands">(balance, async () => {
      if (!(await this.isOwner(balance, by))) return { result: "changed hands" };
      const present = await this.find(balance, id);
      const columns = WEBHOOK.row(change);
      if (present === null || Object.keys(columns).length === 0) return { result: present };
      return {
        result: { ...present, ...change },
        statements: [
          holding(balance, by),
          loggingWebhook(present, { ...present, ...change }),
          changesOne(sql`UPDATE owner_webhooks SET ${assigned(columns)} WHERE id = ${id}`),
          typeof change.pausedAt === "number" ? this.pausing(id) : null,
        ],
      };
    });
  }

  remove(balance: BalanceId, id: string, by: Actor): Promise<boolean | "changed hands"> {
    return this.db.change<boolean | "changed hands">(balance, async () => {
      if (!(await this.isOwner(balance, by))) return { result: "changed hands" };
      const present = await this.find(balance, id);
      if (present === null) return { result: false };
      return {
        result: true,
        statements: [
          holding(balance, by),
          loggingWebhook(present, null),
          this.pausing(id),
          changesOne(sql`DELETE FROM owner_webhooks WHERE id = ${id}`),
        ],
      };
    });
  }

  /** From one endpoint for which events wait to the next one, by their index: there may be many for which none does. */
  protected async due(now: EpochMs, limit: number): Promise<readonly Webhook[]> {
    const due = await this.db.read<object>`
      WITH RECURSIVE waiting (id) AS (
        SELECT min(webhook_id) FROM owner_deliveries
        UNION ALL
        SELECT (SELECT min(webhook_id) FROM owner_deliveries WHERE webhook_id > waiting.id)
        FROM waiting WHERE waiting.id IS NOT NULL)
      SELECT ${WEBHOOK} FROM waiting JOIN owner_webhooks w ON w.id = waiting.id
      WHERE w.paused_at IS NULL AND w.due_at <= ${now} ORDER BY w.due_at, w.id LIMIT ${limit}`;
    return due.map((row) => signing(WEBHOOK.read(row), now));
  }

  protected override pausing(id: string): Batch {
    return [sql`DELETE FROM owner_deliveries WHERE webhook_id = ${id}`];
  }

  private async isOwner(balance: BalanceId, by: Actor): Promise<boolean> {
    const [row] = await this.db.read`SELECT 1 FROM balances WHERE ${owned(balance, by)}`;
    return row !== undefined;
  }
}

/** Ends with the owner who made them. */
export const removingWebhooks = (balance: BalanceId): Batch => [
  sql`DELETE FROM owner_deliveries WHERE webhook_id IN (SELECT id FROM owner_webhooks WHERE balance_id = ${balance})`,
  sql`DELETE FROM owner_webhooks WHERE balance_id = ${balance}`,
];

/** Nobody else changes the balance before the transaction ends, nor takes it from its owner. */
const holding = (balance: BalanceId, by: Actor) =>
  changesOne(sql`UPDATE balances SET version = version + 1 WHERE ${owned(balance, by)}`);

function owned(balance: BalanceId, by: Actor): SqlPart {
  const isOpen = sql`id = ${balance} AND closed_at IS NULL`;
  switch (by.by) {
    case "session":
      return sql`${isOpen} AND account_id = ${by.account}`;
    case "recovery":
      return sql`${isOpen} AND recovery_hash = ${by.secret}`;
    case "operator":
    case "key":
      return isOpen;
  }
}

const WEBHOOK = new TableColumns<OwnWebhook>(
  "id balanceId url kinds format secrets overlapUntil createdAt failures problem pausedAt dueAt",
  { kinds: AS_KINDS, secrets: AS_WORDS },
  "w.",
);
