import type { EpochMs } from "../../units/clock.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import type { BalanceId } from "../../units/id.ts";
import type { EventId, RecordedEvent } from "./event.ts";

/** Recorded events, with what became of them at the endpoints that take them. */
export interface EventReader {
  /** Newest first, from behind `before`. */
  list(filter: EventFilter, limit: number, before: EventId | null): Promise<readonly DeliveredEvent[]>;
  /** Whether the filter's events include this one. */
  has(filter: EventFilter, id: string): Promise<boolean>;
}

export interface EventFilter {
  /** Null for all. */
  readonly balanceId: BalanceId | null;
  readonly kind: WebhookEventKind | null;
  /** Whose endpoints are shown: the owners' alone, or all. */
  readonly reader: "owner" | "operator";
}

export interface DeliveredEvent extends RecordedEvent {
  readonly deliveries: readonly EventDeliveryState[];
}

interface EventDeliveryState {
  readonly webhookId: string;
  /** Null while it waits. */
  readonly deliveredAt: EpochMs | null;
}
