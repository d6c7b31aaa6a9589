import type { EpochMs } from "../../units/clock.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import type { BalanceId } from "../../units/id.ts";
import type { Actor } from "../keys/root.ts";
import type { DeliveryQueue, DeliveryState, Webhook } from "./webhook.ts";

/** Where an owner has the events of a balance sent. */
export interface OwnWebhook extends Webhook, DeliveryState {
  readonly balanceId: BalanceId;
  /** Null for all. */
  readonly kinds: readonly WebhookEventKind[] | null;
  /** Sealed, the newest first; none for Slack. */
  readonly secrets: readonly string[];
  /** The older secret signs until then. */
  readonly overlapUntil: EpochMs | null;
  readonly createdAt: EpochMs;
  /** Null while events are sent. One that is paused misses what happens. */
  readonly pausedAt: EpochMs | null;
}

export interface OwnWebhookStore extends DeliveryQueue {
  /** The oldest first. */
  list(balance: BalanceId): Promise<readonly OwnWebhook[]>;
  find(balance: BalanceId, id: string): Promise<OwnWebhook | null>;
  /** Refused where the balance has as many already, or is no longer the owner's. */
  add(webhook: OwnWebhook, by: Actor): Promise<"added" | "full" | "changed hands">;
  /** Null where there is none of that id; what `change` leaves out stays. */
  change(
    balance: BalanceId,
    id: string,
    change: OwnWebhookChange,
    by: Actor,
  ): Promise<OwnWebhook | null | "changed hands">;
  /** False where there is none of that id. */
  remove(balance: BalanceId, id: string, by: Actor): Promise<boolean | "changed hands">;
}

export type OwnWebhookChange = Partial<
  Pick<
    OwnWebhook,
    "url" | "kinds" | "secrets" | "overlapUntil" | "failures" | "problem" | "pausedAt" | "dueAt"
  >
>;

/** A balance has at most so many. */
export const MAX_OWN_WEBHOOKS = 5;
