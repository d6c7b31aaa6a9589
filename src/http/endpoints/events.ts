import { EVENTS, type EventAnswer, type OperatorsEvent } from "../../api/events.ts";
import type { EventId } from "../../customers/events/event.ts";
import type { DeliveredEvent, EventFilter } from "../../customers/events/event-reader.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import type { HttpDeps } from "../deps.ts";
import { operation, type QueryOf } from "../operation.ts";
import { page } from "../reply.ts";

/** What happened to balances: what endpoints are sent, for programs that read it instead. */
export const eventEndpoints = () => [
  operation("GET /v1/events", EVENTS.list, ({ who, query }, deps) =>
    listed({ balanceId: who.balance.id, kind: query.type, reader: "owner" }, query, deps, eventView),
  ),
  operation("GET /admin/events", EVENTS.listForOperator, ({ query }, deps) =>
    listed(
      { balanceId: query.balance_id as BalanceId | null, kind: query.type, reader: "operator" },
      query,
      deps,
      operatorsView,
    ),
  ),
];

async function listed<View>(
  filter: EventFilter,
  { limit, before }: Pick<QueryOf<typeof EVENTS.list>, "limit" | "before">,
  { books: { events } }: HttpDeps,
  view: (event: DeliveredEvent) => View,
) {
  if (before !== null && !(await events.has(filter, before)))
    return invalidField("before", "`before` must be the id of an event in this list, of the last 30 days.");
  return page(await events.list(filter, limit + 1, before as EventId | null), limit, view);
}

const eventView = ({ id, kind, at, data, deliveries }: DeliveredEvent): EventAnswer => ({
  id,
  type: kind,
  created_at: isoTime(at),
  data: JSON.parse(data),
  deliveries: deliveries.map(({ webhookId, deliveredAt }) => ({
    webhook_id: webhookId,
    delivered_at: deliveredAt === null ? null : isoTime(deliveredAt),
  })),
});

const operatorsView = (event: DeliveredEvent): OperatorsEvent => ({
  ...eventView(event),
  balance_id: event.balanceId === "" ? null : event.balanceId,
});
