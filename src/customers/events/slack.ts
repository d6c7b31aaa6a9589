import type { OutgoingEvent, WebhookMessage } from "./event.ts";

/** An event as Slack's incoming webhooks take it: https://api.slack.com/messaging/webhooks. */
export const slackMessage = ({ kind, data }: OutgoingEvent): WebhookMessage => ({
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify({ text: escaped(eventSentence({ kind, data })) })),
});

/** One sentence, for people. */
export function eventSentence({ kind, data: text }: Pick<OutgoingEvent, "kind" | "data">): string {
  const data = JSON.parse(text) as EventData;
  return `${SENTENCES[kind](data)}${typeof data.balance_id === "string" && data.balance_id !== "" ? ` (${data.balance_id})` : ""}`;
}

type EventData = Readonly<Record<string, unknown>>;

const usd = (amount: unknown): string => `$${Number(amount).toFixed(2)}`;
const limitNamed = (data: EventData): string => {
  switch (data.limit) {
    case "run":
      return `run ${data.run}`;
    case "budget":
      return `budget ${data.budget}${data.value === undefined ? "" : ` for ${data.tag} ${data.value}`}`;
    default:
      return `the ${data.limit === "day" ? "daily" : "monthly"} limit of key ${named(data)}`;
  }
};
const named = ({ key_id, name }: EventData): string => (name === null ? `${key_id}` : `${name} (${key_id})`);

const SENTENCES: Readonly<Record<OutgoingEvent["kind"], (data: EventData) => string>> = {
  "credit.low": ({ left_usd, below_usd }) =>
    `Credit is low: ${usd(left_usd)} is left, below ${usd(below_usd)}`,
  "credit.exhausted": () => "Credit is used up",
  "limit.reached": (data) =>
    `${data.threshold_percent}% of ${limitNamed(data)} is used: ${usd(data.used_usd)} of ${usd(data.cap_usd)}`,
  "payment.credited": ({ credited_usd }) => `A payment became ${usd(credited_usd)} of credit`,
  "payment.refunded": ({ amount_usd }) => `A payment of ${usd(amount_usd)} was paid back`,
  "payment.disputed": ({ amount_usd }) => `A payment of ${usd(amount_usd)} is disputed`,
  "key.created": (data) => `Key ${named(data)} was created`,
  "key.rotated": (data) => `Key ${named(data)} was replaced by ${data.new_key_id}`,
  "key.revoked": (data) => `Key ${named(data)} was revoked`,
  "claim.claimed": ({ account_id }) => `The balance was claimed by account ${account_id}`,
  "claim.undone": () => "The claim of the balance was undone: it belongs to nobody's account",
  "claim.detached": () => "The operator took the balance out of its account",
  "price.changed": ({ changed, price_lists }) =>
    `Prices have changed: ${changed} of models at hosts${Array.isArray(price_lists) && price_lists.length > 0 ? `, and price lists ${price_lists.join(", ")}` : ""}`,
  "margin.negative": ({ model, host, day, host_cost_usd, charged_usd }) =>
    `${model ?? host} cost ${usd(host_cost_usd)} on ${day}, more than the ${usd(charged_usd)} that were charged for it`,
  "host.down": ({ host, failing_since }) => `Host ${host} is down: it has failed since ${failing_since}`,
  "host.up": ({ host, down_since }) => `Host ${host} serves again: it was down since ${down_since}`,
  "webhook.test": () => "This is a test of the webhook",
};

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
