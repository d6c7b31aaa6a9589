import type { EventAnswer } from "../../api/events.ts";
import { second } from "../format.ts";
import type { Column } from "./list.tsx";

/** What happened, and where it was sent. */
export const eventColumns = <Row extends EventAnswer>(
  ...more: readonly Column<Row>[]
): readonly Column<Row>[] => [
  ["Time", "when", ({ created_at }) => second(created_at)],
  ["Event", "", ({ type }) => <span class="mono">{type}</span>],
  ...more,
  ["About", "small changed", ({ data }) => factsOf(data)],
  ["Delivered", "", ({ deliveries }) => deliveriesText(deliveries)],
];

/** Without what the row shows by itself. */
const factsOf = (data: EventAnswer["data"]): string =>
  Object.entries(data)
    .filter(([name, value]) => name !== "balance_id" && value !== null && !isLong(value))
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");

/** What programs read, such as all prices that changed. */
const isLong = (value: unknown): boolean => Array.isArray(value) && typeof value[0] !== "string";

function deliveriesText(deliveries: EventAnswer["deliveries"]): string {
  if (deliveries.length === 0) return "—";
  const waiting = deliveries.filter(({ delivered_at }) => delivered_at === null).length;
  return waiting === 0 ? "yes" : `${waiting} of ${deliveries.length} wait`;
}
