import { changedLists, type PriceSnapshot, priceChanges } from "../catalog/price-snapshot.ts";
import { eventOf, type RecordedEvent } from "../customers/events/event.ts";
import type { EpochMs } from "../units/clock.ts";

/** The prices that a process puts in force. */
export interface NotedPrices extends PriceSnapshot {
  /** That of applied model lists: see store/nodes/fleet. */
  readonly modelVersion: number;
}

/** `number` counts the changes of a store, so that prices which return to what they were are another event. */
export function priceEvents(
  before: PriceSnapshot,
  after: PriceSnapshot,
  { number, at }: { readonly number: number; readonly at: EpochMs },
): RecordedEvent[] {
  const changes = priceChanges(before, after);
  const lists = changedLists(before, after);
  if (changes.length === 0 && lists.length === 0) return [];
  return [
    eventOf("price.changed", String(number), {
      at,
      balance: null,
      price_version: after.priceVersion,
      previous_price_version: before.priceVersion,
      changed: changes.length,
      prices: changes.slice(0, MAX_SHOWN),
      price_lists: lists,
    }),
  ];
}

/** `GET /v1/catalog` has all prices. */
const MAX_SHOWN = 50;
