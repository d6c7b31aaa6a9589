import { type Static, Type } from "@sinclair/typebox";
import { BALANCE_EVENT_KINDS, EVENT_KINDS } from "../units/event-kinds.ts";
import type { About } from "./about.ts";
import { answerOf, namedAnswer, oneOf, orNone, pageOf, pageQuery, several, time } from "./answers.ts";

const members = {
  id: Type.String({ description: "the `webhook-id` of its deliveries" }),
  type: oneOf(EVENT_KINDS),
  created_at: time,
  data: Type.Unsafe<Readonly<Record<string, unknown>>>(
    Type.Object({}, { description: "as endpoints are sent it" }),
  ),
  deliveries: several(
    answerOf({
      webhook_id: Type.String({ description: "an endpoint that takes it" }),
      delivered_at: orNone({ ...time, description: "null while it waits" }),
    }),
  ),
};

const EventAnswer = namedAnswer("Event", members);
export type EventAnswer = Static<typeof EventAnswer>;
const OperatorsEvent = namedAnswer("OwnedEvent", {
  ...members,
  balance_id: orNone(Type.String({ description: "null for what is nobody's, such as a host" })),
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
    query: { ...pageQuery(50, 200), type: oneOf(BALANCE_EVENT_KINDS, ONE_TYPE) },
    answers: { 200: pageOf(EventAnswer) },
  },
  listForOperator: {
    summary: "Lists everybody's events of the last 30 days, newest first",
    who: ["admin"],
    query: {
      ...pageQuery(50, 200),
      type: oneOf(EVENT_KINDS, ONE_TYPE),
      balance_id: Type.String({ description: "only events of this balance" }),
    },
    answers: { 200: pageOf(OperatorsEvent) },
  },
} as const satisfies Record<string, About>;
