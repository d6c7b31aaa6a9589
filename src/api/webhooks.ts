import { type Static, Type } from "@sinclair/typebox";
import { BALANCE_EVENT_KINDS, EVENT_KINDS } from "../units/event-kinds.ts";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

const kind = t.choice(BALANCE_EVENT_KINDS);
const kinds = Type.Array(kind, {
  minItems: 1,
  maxItems: BALANCE_EVENT_KINDS.length,
  uniqueItems: true,
  description: `a list of ${BALANCE_EVENT_KINDS.join(", ")}`,
});
const url = t.text(500, "an https:// address");
const NewWebhook = t.object({
  url: Type.Optional(url),
  events: Type.Optional(t.orNull(kinds, "all")),
  format: Type.Optional(t.choice(["signed", "slack", "mail"])),
});
const ChangedWebhook = t.object({
  url: Type.Optional(url),
  events: Type.Optional(t.orNull(kinds, "all")),
  paused: Type.Optional(t.boolean("true or false")),
});

const shared = {
  id: Type.String(),
  events: t.orNone(t.several(t.oneOf(EVENT_KINDS), { description: "the types that are sent; null for all" })),
  format: t.oneOf(["signed", "slack", "mail"]),
  state: t.oneOf(
    ["active", "failing", "paused"],
    "`failing`: the latest delivery failed and is sent again at `next_attempt_at`; `paused`: nothing is sent, because deliveries failed for three days, the endpoint answered 410, or its owner paused it",
  ),
  problem: t.orNone(t.string("why the latest delivery failed")),
  failures: { ...t.count, description: "deliveries that failed since one succeeded" },
  next_attempt_at: t.orNone(t.time),
  paused_at: t.orNone(t.time),
};
const members = {
  ...shared,
  url: t.orNone(t.string("null for mails, which go to the address of the balance's account")),
  created_at: t.time,
};

const OperatorsAnswer = t.namedAnswer("OperatorsWebhook", {
  ...shared,
  origin: t.string("of the address, whose path may be a secret; `mail` stands for mails to owners"),
  waiting: t.orNone({ ...t.count, description: "events that it has not taken yet; null for an owner's" }),
});
export type OperatorsWebhookAnswer = Static<typeof OperatorsAnswer>;

const WebhookAnswer = t.namedAnswer("Webhook", members);
export type WebhookAnswer = Static<typeof WebhookAnswer>;

const secret = t.orNone(t.string("signs deliveries, and is shown this once; null for Slack and mails"));
const SecretAnswer = t.namedAnswer("WebhookWithSecret", { ...members, secret });

export type WebhookSecretAnswer = Static<typeof SecretAnswer>;

const TestAnswer = t.object({
  id: Type.String(),
  delivered: Type.Boolean(),
  problem: t.orNone(t.string("why it was not delivered")),
});
export type WebhookTestAnswer = Static<typeof TestAnswer>;

export const WEBHOOKS = endpointsWith(
  { who: ["owner"], act: "see or change webhooks" },
  {
    list: {
      summary: "Lists where the balance's events are sent",
      answers: { 200: t.listOf(WebhookAnswer) },
    },
    create: {
      summary: "Has the balance's events sent to an address",
      details:
        "Signed as Standard Webhooks has it with the secret, which is shown this once; or as messages for one of Slack's incoming webhooks; or, with `format: \"mail\"` and without `url`, as mails to the address of the balance's account, at most ten an hour. For balances that credit was added to.",
      body: NewWebhook,
      answers: { 201: SecretAnswer },
    },
    show: { summary: "Shows a webhook", answers: { 200: WebhookAnswer } },
    change: {
      summary: "Changes a webhook's address or events, pauses it or starts it again",
      details: "What happens while it is paused is not sent later: GET /v1/events lists it.",
      body: ChangedWebhook,
      answers: { 200: WebhookAnswer },
    },
    drop: {
      summary: "Deletes a webhook",
      answers: { 200: t.object({ id: Type.String(), deleted: Type.Literal(true) }) },
    },
    test: {
      summary: "Sends a webhook an event `webhook.test` at once",
      answers: { 200: TestAnswer },
    },
    listForOperator: {
      summary:
        "Lists the endpoints of the configuration, or those of a balance's owner, and how deliveries go",
      who: ["admin"],
      query: { balance_id: t.string("the owner's endpoints of this balance") },
      answers: { 200: t.listOf(OperatorsAnswer) },
    },
    testForOperator: {
      summary: "Sends an endpoint of the configuration an event `webhook.test` at once",
      who: ["admin"],
      answers: { 200: TestAnswer },
    },
    rotate: {
      summary: "Replaces a webhook's secret",
      details: "For 24 hours, deliveries are signed with both secrets.",
      answers: { 200: SecretAnswer },
    },
  },
) satisfies Record<string, About>;
