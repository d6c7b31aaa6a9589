import { type Static, Type } from "@sinclair/typebox";
import { BALANCE_EVENT_KINDS, EVENT_KINDS } from "../units/event-kinds.ts";
import type { About } from "./about.ts";
import { answerOf, count, listOf, namedAnswer, oneOf, orNone, several, time } from "./answers.ts";
import { choice, fieldsOf, orNull, text } from "./fields.ts";

const kind = choice(BALANCE_EVENT_KINDS);
const kinds = Type.Array(kind, {
  minItems: 1,
  maxItems: BALANCE_EVENT_KINDS.length,
  uniqueItems: true,
  description: `a list of ${BALANCE_EVENT_KINDS.join(", ")}`,
});
const url = text(500, "an https:// address");
const NewWebhook = fieldsOf({
  url: Type.Optional(url),
  events: Type.Optional(orNull(kinds, "all")),
  format: Type.Optional(choice(["signed", "slack", "mail"])),
});
const ChangedWebhook = fieldsOf({
  url: Type.Optional(url),
  events: Type.Optional(orNull(kinds, "all")),
  paused: Type.Optional(Type.Boolean({ description: "true or false" })),
});

const shared = {
  id: Type.String(),
  events: orNone(several(oneOf(EVENT_KINDS), { description: "the types that are sent; null for all" })),
  format: oneOf(["signed", "slack", "mail"]),
  state: oneOf(
    ["active", "failing", "paused"],
    "`failing`: the latest delivery failed and is sent again at `next_attempt_at`; `paused`: nothing is sent, because deliveries failed for three days, the endpoint answered 410, or its owner paused it",
  ),
  problem: orNone(Type.String({ description: "why the latest delivery failed" })),
  failures: { ...count, description: "deliveries that failed since one succeeded" },
  next_attempt_at: orNone(time),
  paused_at: orNone(time),
};
const members = {
  ...shared,
  url: orNone(
    Type.String({ description: "null for mails, which go to the address of the balance's account" }),
  ),
  created_at: time,
};

const OperatorsAnswer = namedAnswer("OperatorsWebhook", {
  ...shared,
  origin: Type.String({
    description: "of the address, whose path may be a secret; `mail` stands for mails to owners",
  }),
  waiting: orNone({ ...count, description: "events that it has not taken yet; null for an owner's" }),
});
export type OperatorsWebhookAnswer = Static<typeof OperatorsAnswer>;

const WebhookAnswer = namedAnswer("Webhook", members);
export type WebhookAnswer = Static<typeof WebhookAnswer>;

const secret = orNone(
  Type.String({ description: "signs deliveries, and is shown this once; null for Slack and mails" }),
);
const SecretAnswer = namedAnswer("WebhookWithSecret", { ...members, secret });

export type WebhookSecretAnswer = Static<typeof SecretAnswer>;

const TestAnswer = answerOf({
  id: Type.String(),
  delivered: Type.Boolean(),
  problem: orNone(Type.String({ description: "why it was not delivered" })),
});
export type WebhookTestAnswer = Static<typeof TestAnswer>;

const owned = { who: ["owner"], act: "see or change webhooks" } as const;

export const WEBHOOKS = {
  list: {
    summary: "Lists where the balance's events are sent",
    ...owned,
    answers: { 200: listOf(WebhookAnswer) },
  },
  create: {
    summary: "Has the balance's events sent to an address",
    details:
      "Signed as Standard Webhooks has it with the secret, which is shown this once; or as messages for one of Slack's incoming webhooks; or, with `format: \"mail\"` and without `url`, as mails to the address of the balance's account, at most ten an hour. For balances that credit was added to.",
    ...owned,
    body: NewWebhook,
    answers: { 201: SecretAnswer },
  },
  show: { summary: "Shows a webhook", ...owned, answers: { 200: WebhookAnswer } },
  change: {
    summary: "Changes a webhook's address or events, pauses it or starts it again",
    details: "What happens while it is paused is not sent later: GET /v1/events lists it.",
    ...owned,
    body: ChangedWebhook,
    answers: { 200: WebhookAnswer },
  },
  drop: {
    summary: "Deletes a webhook",
    ...owned,
    answers: { 200: answerOf({ id: Type.String(), deleted: Type.Literal(true) }) },
  },
  test: {
    summary: "Sends a webhook an event `webhook.test` at once",
    ...owned,
    answers: { 200: TestAnswer },
  },
  listForOperator: {
    summary: "Lists the endpoints of the configuration, or those of a balance's owner, and how deliveries go",
    who: ["admin"],
    query: { balance_id: Type.String({ description: "the owner's endpoints of this balance" }) },
    answers: { 200: listOf(OperatorsAnswer) },
  },
  testForOperator: {
    summary: "Sends an endpoint of the configuration an event `webhook.test` at once",
    who: ["admin"],
    answers: { 200: TestAnswer },
  },
  rotate: {
    summary: "Replaces a webhook's secret",
    details: "For 24 hours, deliveries are signed with both secrets.",
    ...owned,
    answers: { 200: SecretAnswer },
  },
} as const satisfies Record<string, About>;
