import type { EpochMs } from "../../units/clock.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import { hashSecret } from "../../units/secret-hash.ts";

/** An event as it is recorded and sent. It has no prompt and no secret. */
export interface RecordedEvent {
  /** The same wherever and however often the event is found, so that it is recorded once. */
  readonly id: EventId;
  readonly kind: WebhookEventKind;
  readonly at: EpochMs;
  readonly balanceId: string;
  /** JSON: amounts in USD, times in ISO 8601. */
  readonly data: string;
}

export type EventId = `evt_${string}`;

/**
 * `what` tells the event from all others of its kind, of all balances. A process that finds it again, after a crash or in
 * another life, makes the same id.
 */
export function eventOf(
  kind: WebhookEventKind,
  what: string,
  { at, balance, ...data }: EventFacts,
): RecordedEvent {
  const id: EventId = `evt_${hashSecret(`${kind} ${what}`).slice(0, ID_DIGITS)}`;
  return { id, kind, at, balanceId: balance, data: JSON.stringify({ balance_id: balance, ...data }) };
}

interface EventFacts extends Readonly<Record<string, unknown>> {
  readonly at: EpochMs;
  readonly balance: string;
}

/** 128 bits. */
const ID_DIGITS = 32;

/** How long an event is kept, for an endpoint that does not answer. */
export const EVENT_DAYS = 30;
