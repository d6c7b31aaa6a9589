import type { OutgoingEvent, WebhookMessage } from "./event.ts";

/** An event as Slack's incoming webhooks take it: https://api.slack.com/messaging/webhooks. */
export const slackMessage = ({ kind, data }: OutgoingEvent): WebhookMessage => ({
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify({ text: escaped(sentenceOf(kind, JSON.parse(data))) })),
});

/** One sentence, for people. */
const sentenceOf = (kind: OutgoingEvent["kind"], data: EventData): string =>
  `${SENTENCES[kind](data)}${typeof data.balance_id === "string" && data.balance_id !== "" ? ` (${data.balance_id})` : ""}`;

type EventData = Readonly<Record<string, unknown>>;

const usd = (amount: unknown): string => `$${Number(amount).toFixed(2)}`;
const named = ({ key_id, name }: EventData): string => (name === null ? `${key_id}` : `${name} (${key_id})`);

const SENTENCES: Readonly<Record<OutgoingEvent["kind"], (data: EventData) => string>> = {
  "credit.low": ({ left_usd, below_usd }) =>
    `Credit is low: ${usd(left_usd)} is left, below ${usd(below_usd)}`,
  "credit.exhausted": () => "Credit is used up",
  "payment.credited": ({ credited_usd }) => `A payment became ${usd(credited_usd)} of credit`,
  "payment.refunded": ({ amount_usd }) => `A payment of ${usd(amount_usd)} was paid back`,
  "payment.disputed": ({ amount_usd }) => `A payment of ${usd(amount_usd)} is disputed`,
  "key.created": (data) => `Key ${named(data)} was created`,
  "key.rotated": (data) => `Key ${named(data)} was replaced by ${data.new_key_id}`,
  "key.revoked": (data) => `Key ${named(data)} was revoked`,
  "webhook.test": () => "This is a test of the webhook",
};

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
