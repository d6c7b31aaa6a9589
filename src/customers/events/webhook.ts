import type { EpochMs } from "../../units/clock.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import type { RandomBytes } from "../../units/random.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { EventId, OutgoingEvent, RecordedEvent, WebhookMessage } from "./event.ts";
import { slackMessage } from "./slack.ts";

/** Where events are sent. */
export interface Webhook {
  readonly id: string;
  readonly url: string;
  readonly format: WebhookFormat;
  /** Each delivery is signed with every one of them: two, while one replaces the other. */
  readonly secrets: readonly string[];
  /** Deliveries that failed since one succeeded. */
  readonly failures: number;
  /** Nobody sends before. A process that sends puts it off, and so does a failure. */
  readonly dueAt: EpochMs;
}

/** Signed as Standard Webhooks has it, a message for Slack's incoming webhooks, or a mail to the address of the balance's account. */
export type WebhookFormat = "signed" | "slack" | "mail";

/** In place of an endpoint's address, where events are mailed: whose mailbox that is, the account says. */
export const MAILBOX = "mailto:";

/** Without path and query, which may be secrets. */
export const originOf = (url: string): string =>
  url === "" || url === MAILBOX ? "mail" : new URL(url).origin;

/** As the configuration has it. Mails to owners are one, too. */
export interface ConfiguredWebhook extends Pick<Webhook, "id" | "url" | "format" | "secrets"> {
  /** Null for all. */
  readonly kinds: readonly WebhookEventKind[] | null;
  /** Below so much credit, a balance has an event `credit.low`; null for none. */
  readonly lowCredit: NanoUsd | null;
}

/** Events that wait for endpoints. */
export interface DeliveryQueue {
  /**
   * Endpoints for which events wait and which nobody sends to; nobody else does before `until`. Null where there is no
   * endpoint at all.
   */
  claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Webhook[] | null>;
  /** Events that wait for the endpoint, the oldest first. */
  waiting(id: string, limit: number): Promise<readonly RecordedEvent[]>;
  /** Notes what was delivered; and how the endpoint is, unless somebody else has claimed it since. */
  note(webhook: Webhook, delivered: readonly EventId[], state: DeliveryState, now: EpochMs): Promise<void>;
}

export interface WebhookStore extends DeliveryQueue {
  /** Makes the endpoints these, and no others. What waits for those that stay is kept; those that were paused go on. */
  configure(webhooks: readonly ConfiguredWebhook[]): Promise<void>;
  /** The endpoints as they are now, by their addresses; owners' mails where some owner or the operator wants them. */
  list(): Promise<readonly OperatorsWebhook[]>;
  /** Deletes some of the events from before then; returns how many. */
  forget(before: EpochMs): Promise<number>;
}

/** An endpoint of the configuration, and how deliveries go. */
export interface OperatorsWebhook extends Webhook, DeliveryState {
  readonly kinds: readonly WebhookEventKind[] | null;
  /** Events that wait for it. */
  readonly waiting: number;
}

export interface DeliveryState extends Pick<Webhook, "failures" | "dueAt"> {
  /** Why the latest delivery failed; null if it did not. */
  readonly problem: string | null;
  /** Null while events are sent. */
  readonly pausedAt: EpochMs | null;
}

/** The endpoint's id stays as long as its address does. */
export const webhookId = (url: string): string => `wh_${hashSecret(url).slice(0, 22)}`;

const SECRET_PREFIX = "whsec_";
const SECRET_BYTES = 32;

export const newWebhookSecret = (random: RandomBytes): string =>
  `${SECRET_PREFIX}${Buffer.from(random(new Uint8Array(SECRET_BYTES))).toString("base64")}`;

/** What an endpoint is sent. */
export const messageTo = (
  { format, secrets }: Pick<Webhook, "format" | "secrets">,
  event: OutgoingEvent,
  now: EpochMs,
): WebhookMessage => (format === "slack" ? slackMessage(event) : signedEvent(secrets, event, now));

/** Signed as Standard Webhooks has it: https://www.standardwebhooks.com. */
function signedEvent(
  secrets: readonly string[],
  { id, kind, at, data }: OutgoingEvent,
  now: EpochMs,
): WebhookMessage {
  const timestamp = String(Math.floor(now / 1_000));
  const body = `{"type":"${kind}","timestamp":"${new Date(at).toISOString()}","data":${data}}`;
  return {
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": secrets
        .map((one) => `v1,${signature(one, `${id}.${timestamp}.${body}`)}`)
        .join(" "),
    },
    body: Buffer.from(body),
  };
}

function signature(secret: string, content: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
  return new Bun.CryptoHasher("sha256", key).update(content).digest("base64");
}
