import {
  MAX_OWN_WEBHOOKS,
  type OwnWebhook,
  type OwnWebhookChange,
  type OwnWebhookStore,
} from "../../customers/events/own-webhook.ts";
import { signing } from "../../customers/events/own-webhooks.ts";
import type { Webhook } from "../../customers/events/webhook.ts";
import type { Actor } from "../../customers/keys/root.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { Database } from "../database/database.ts";
import { assigned, type Batch, changesOne, inserted, type SqlPart, sql } from "../database/statement.ts";
import { loggingWebhook } from "./logged-fields.ts";
import { kindsColumn, kindsFrom, SqlDeliveryQueue } from "./webhook-store.ts";

export class SqlOwnWebhookStore extends SqlDeliveryQueue implements OwnWebhookStore {
  constructor(db: Database) {
    super(db, { webhooks: "owner_webhooks", deliveries: "owner_deliveries" });
  }

  async list(balance: BalanceId): Promise<readonly OwnWebhook[]> {
    const rows = await this.db.read<OwnWebhookRow>`
      SELECT ${WEBHOOK} FROM owner_webhooks w WHERE balance_id = ${balance} ORDER BY created_at, id`;
    return rows.map(fromRow);
  }

  async find(balance: BalanceId, id: string): Promise<OwnWebhook | null> {
    const [row] = await this.db.read<OwnWebhookRow>`
      SELECT ${WEBHOOK} FROM owner_webhooks w WHERE balance_id = ${balance} AND id = ${id}`;
    return row === undefined ? null : fromRow(row);
  }

  add(webhook: OwnWebhook, by: Actor): ReturnType<OwnWebhookStore["add"]> {
    const { balanceId } = webhook;
    return this.db.change<"added" | "full" | "changed hands">(balanceId, async () => {
      if (!(await this.isOwner(balanceId, by))) return { result: "changed hands" };
      if ((await this.list(balanceId)).length >= MAX_OWN_WEBHOOKS) return { result: "full" };
      const { id, url, format, createdAt } = webhook;
      const row = { id, balance_id: balanceId, url, format, created_at: createdAt, ...columnsOf(webhook) };
      return {
        result: "added",
        statements: [
          holding(balanceId, by),
          loggingWebhook(null, webhook),
          changesOne(sql`INSERT INTO owner_webhooks ${inserted(row)}`),
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
      const columns = columnsOf(change);
      if (present === null || Object.keys(columns).length === 0) return { result: present };
      return {
        result: { ...present, ...change },
        statements: [
          holding(balance, by),
          loggingWebhook(present, { ...present, ...change }),
          changesOne(sql`UPDATE owner_webhooks SET ${assigned(columns)} WHERE id = ${id}`),
          typeof change.pausedAt === "number" && this.pausing(id),
        ].filter((one) => one !== false),
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
    const due = await this.db.read<OwnWebhookRow>`
      WITH RECURSIVE waiting (id) AS (
        SELECT min(webhook_id) FROM owner_deliveries
        UNION ALL
        SELECT (SELECT min(webhook_id) FROM owner_deliveries WHERE webhook_id > waiting.id)
        FROM waiting WHERE waiting.id IS NOT NULL)
      SELECT ${WEBHOOK} FROM waiting JOIN owner_webhooks w ON w.id = waiting.id
      WHERE w.paused_at IS NULL AND w.due_at <= ${now} ORDER BY w.due_at, w.id LIMIT ${limit}`;
    return due.map((row) => signing(fromRow(row), now));
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

type OwnWebhookRow = Omit<OwnWebhook, "kinds" | "secrets"> & {
  readonly kinds: string;
  readonly secrets: string;
};

const WEBHOOK = sql`w.id, w.balance_id AS "balanceId", w.url, w.kinds, w.format, w.secrets,
  w.overlap_until AS "overlapUntil", w.created_at AS "createdAt", w.failures, w.problem, w.paused_at AS "pausedAt",
  w.due_at AS "dueAt"`;

const fromRow = ({ kinds, secrets, ...row }: OwnWebhookRow): OwnWebhook => ({
  ...row,
  kinds: kindsFrom(kinds),
  secrets: secrets === "" ? [] : secrets.split(" "),
});

/** Those that are given. */
function columnsOf(change: OwnWebhookChange): Readonly<Record<string, string | number | null>> {
  const { url, kinds, secrets, overlapUntil, failures, problem, pausedAt, dueAt } = change;
  const columns = {
    url,
    kinds: kinds === undefined ? undefined : kindsColumn(kinds),
    secrets: secrets?.join(" "),
    overlap_until: overlapUntil,
    failures,
    problem,
    paused_at: pausedAt,
    due_at: dueAt,
  };
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined)) as Record<
    string,
    string | number | null
  >;
}
