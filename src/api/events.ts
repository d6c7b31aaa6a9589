import { type Static, Type } from "@sinclair/typebox";
import { BALANCE_EVENT_KINDS, EVENT_KINDS } from "../units/event-kinds.ts";
import type { About } from "./about.ts";
import * as t from "./schema.ts";

const members = {
  id: t.string("the `webhook-id` of its deliveries"),
  type: t.oneOf(EVENT_KINDS),
  created_at: t.time,
  data: Type.Unsafe<Readonly<Record<string, unknown>>>(
    Type.Object({}, { description: "as endpoints are sent it" }),
  ),
  deliveries: t.several(
    t.object({
      webhook_id: t.string("an endpoint that takes it"),
      delivered_at: t.orNone({ ...t.time, description: "null while it waits" }),
    }),
  ),
};

const EventAnswer = t.namedAnswer("Event", members);
export type EventAnswer = Static<typeof EventAnswer>;
const OperatorsEvent = t.namedAnswer("OwnedEvent", {
  ...members,
  balance_id: t.orNone(t.string("null for what is nobody's, such as a host")),
});
export type OperatorsEvent = Static<typeof OperatorsEvent>;

const ONE_TYPE = "only events of this type";

export const EVENTS = {
  list: {
    summary: "Lists the balance's events of the last 30 days, newest first",
    details:
      "What endpoints are sent. Events of credit and limits are recorded only while an endpoint of the operator or of the balance takes them.",
    who: ["owner"],
    act: "see events",
    query: { ...t.pageQuery(), type: t.oneOf(BALANCE_EVENT_KINDS, ONE_TYPE) },
    answers: { 200: t.pageOf(EventAnswer) },
  },
  listForOperator: {
    summary: "Lists everybody's events of the last 30 days, newest first",
    who: ["admin"],
    query: {
      ...t.pageQuery(),
      type: t.oneOf(EVENT_KINDS, ONE_TYPE),
      balance_id: t.string("only events of this balance"),
    },
    answers: { 200: t.pageOf(OperatorsEvent) },
  },
} as const satisfies Record<string, About>;
