import type { EpochMs } from "../../units/clock.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import { hashSecret } from "../../units/secret-hash.ts";

/** An event as it is recorded and sent. It has no prompt and no secret. */
export type RecordedEvent = OutgoingEvent<WebhookEventKind>;

export interface OutgoingEvent<Kind = WebhookEventKind | typeof TEST_EVENT> {
  /** The same wherever and however often the event is found, so that it is recorded once. */
  readonly id: EventId;
  readonly kind: Kind;
  readonly at: EpochMs;
  /** Empty for what is no balance's. */
  readonly balanceId: string;
  /** JSON: amounts in USD, times in ISO 8601. */
  readonly data: string;
}

/** Sent when an owner or the operator asks for it, and not recorded. */
export const TEST_EVENT = "webhook.test";

export type EventId = `evt_${string}`;

/**
 * `what` tells the event from all others of its kind, of all balances. A process that finds it again, after a crash or in
 * another life, makes the same id.
 */
export function eventOf<Kind extends OutgoingEvent["kind"]>(
  kind: Kind,
  what: string,
  { at, balance, ...data }: EventFacts,
): OutgoingEvent<Kind> {
  const id: EventId = `evt_${hashSecret(`${kind} ${what}`).slice(0, ID_DIGITS)}`;
  const named = balance === null ? data : { balance_id: balance, ...data };
  return { id, kind, at, balanceId: balance ?? "", data: JSON.stringify(named) };
}

interface EventFacts extends Readonly<Record<string, unknown>> {
  readonly at: EpochMs;
  /** Null for what is no balance's. */
  readonly balance: string | null;
}

/** What an endpoint is posted. */
export interface WebhookMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** 128 bits. */
const ID_DIGITS = 32;

/** How long an event is kept, for an endpoint that does not answer. */
export const EVENT_DAYS = 30;
