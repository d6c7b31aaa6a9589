import {
  EventDelivery,
  OPERATORS_PACE,
  OWNERS_PACE,
  type WebhookLine,
  webhookLine,
} from "../customers/events/delivery.ts";
import type { OutgoingEvent } from "../customers/events/event.ts";
import { OperatorsWebhooks } from "../customers/events/operators-webhooks.ts";
import { OwnWebhooks } from "../customers/events/own-webhooks.ts";
import { SealedSecrets } from "../customers/events/sealed-secrets.ts";
import { type ConfiguredWebhook, type Webhook, webhookId } from "../customers/events/webhook.ts";
import { mailboxOf, mailLines, OWNERS_MAIL, ownersMail } from "../customers/mail/event-mail.ts";
import type { Mailer } from "../customers/mail/mailer.ts";
import { systemResolve, urlProblem } from "../hosts/owner-address.ts";
import { OwnerConnection } from "../hosts/owner-connection.ts";
import { WebhookConnection } from "../hosts/webhook-connection.ts";
import type { GatewayParts } from "./gateway-parts.ts";

/** Where events go: the operator's endpoints and owners' mailboxes; and, at a pace of its own, owners' endpoints. */
export function openEvents(parts: GatewayParts, mailer: Mailer) {
  const { config: active, clock, random, networkSecret, books, log } = parts;
  const sealed = new SealedSecrets(networkSecret, random);
  const toOperators = operatorsLine(parts);
  const mails = mailLines({
    accounts: books.accounts,
    hours: books.mailHours,
    clock,
    log,
    deliver: (mail) => mailer.deliver(mail),
    links: () => active.links,
  });
  const toOwners = ownersLine(parts, sealed, mails.others);
  return {
    deliveries: [
      new EventDelivery({
        queue: books.webhooks,
        operators: { store: books.webhooks, webhooks: () => configuredWebhooks(parts) },
        pace: OPERATORS_PACE,
        clock,
        log,
        open: (webhook) => (webhook.id === OWNERS_MAIL ? mails.lowCredit : toOperators(webhook)),
      }),
      new EventDelivery({
        queue: books.ownWebhooks,
        operators: null,
        pace: OWNERS_PACE,
        clock,
        log,
        open: toOwners,
      }),
    ],
    operatorsWebhooks: new OperatorsWebhooks({ store: books.webhooks, clock, send: sending(toOperators) }),
    ownWebhooks: new OwnWebhooks({
      store: books.ownWebhooks,
      clock,
      random,
      sealed,
      isFunded: async (balance) => (await books.balance(balance)).credited > 0,
      urlProblem: (url) => urlProblem(url, active.config.webhooks?.owners ?? "public"),
      hasMailbox: async (balance) => (await mailboxOf(balance, books.accounts))?.email != null,
      send: sending(toOwners),
    }),
  };
}

export type Events = ReturnType<typeof openEvents>;

function configuredWebhooks({ config: { config } }: GatewayParts): ConfiguredWebhook[] {
  const { lowCredit, webhooks } = config;
  const endpoints = (webhooks?.endpoints ?? []).map(({ url, format, secret, kinds }) => ({
    id: webhookId(url),
    url,
    format,
    kinds,
    secrets: secret,
    lowCredit,
  }));
  return [...endpoints, ownersMail(lowCredit)];
}

/** To an endpoint of the configuration, which may be in the operator's own network. */
function operatorsLine({ clock, log }: GatewayParts) {
  const onFault = (error: unknown) => log("webhooks", { problem: String(error) });
  return (webhook: Webhook): WebhookLine =>
    webhookLine(webhook, clock, new WebhookConnection(webhook.url, clock, onFault));
}

/** To owners' endpoints, whose secrets are sealed. */
function ownersLine({ config: active, clock, log }: GatewayParts, sealed: SealedSecrets, mails: WebhookLine) {
  const onFault = (error: unknown) => log("webhooks", { problem: String(error) });
  return (webhook: Webhook): WebhookLine => {
    if (webhook.format === "mail") return mails;
    const secrets = webhook.secrets.map((one) => sealed.open(one));
    const connection = new OwnerConnection(webhook.url, {
      allowed: () => active.config.webhooks?.owners ?? "public",
      resolve: systemResolve,
      clock,
      onFault,
    });
    return webhookLine({ ...webhook, secrets }, clock, connection);
  };
}

/** One event. */
const sending = (open: (webhook: Webhook) => WebhookLine) => (webhook: Webhook, event: OutgoingEvent) => {
  const line = open(webhook);
  return line.send(event).finally(() => line.close());
};
