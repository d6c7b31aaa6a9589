/** What happens to a balance: endpoints of its owner are sent it, too. */
export const BALANCE_EVENT_KINDS = [
  "credit.low",
  "credit.exhausted",
  "limit.reached",
  "payment.credited",
  "payment.refunded",
  "payment.disputed",
  "key.created",
  "key.rotated",
  "key.revoked",
  "claim.claimed",
  "claim.undone",
  "claim.detached",
] as const;

/** What endpoints are sent; docs/webhooks.md says when. */
export const EVENT_KINDS = [
  ...BALANCE_EVENT_KINDS,
  "price.changed",
  "margin.negative",
  "host.down",
  "host.up",
] as const;

export type WebhookEventKind = (typeof EVENT_KINDS)[number];

/** Charges cause these: finding them costs a little with every request, so it is done only where an endpoint takes them. */
export const isOfCharges = (kind: WebhookEventKind): boolean =>
  kind.startsWith("credit.") || kind === "limit.reached";
