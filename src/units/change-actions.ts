/** What is in the log of changes; what stands before the dot is changed. docs/security.md lists them. */
export const CHANGE_ACTIONS = [
  "account.deleted",
  "account.session_created",
  "account.session_ended",
  "account.suspended",
  "account.unsuspended",
  "balance.attached",
  "balance.changed",
  "balance.closed",
  "balance.created",
  "balance.credited",
  "balance.debited",
  "balance.declined",
  "balance.offered",
  "balance.priced",
  "balance.reclaimed",
  "balance.recovery_replaced",
  "balance.saved",
  "balance.suspended",
  "balance.unsuspended",
  "budget.changed",
  "budget.created",
  "budget.deleted",
  "configuration.reloaded",
  "key.changed",
  "key.created",
  "key.revoked",
  "key.rotated",
  "models.applied",
  "node.closed",
  "operator.added",
  "operator.removed",
  "operator.rotated",
  "payment.changed",
  "payment.created",
  "run.changed",
  "run.ended",
  "signing_key.created",
  "webhook.changed",
  "webhook.created",
  "webhook.deleted",
] as const;

export type ChangeAction = (typeof CHANGE_ACTIONS)[number];

/** Whose changes are in the log. */
export const AUTHOR_KINDS = ["operator", "owner", "key", "system"] as const;
export type AuthorKind = (typeof AUTHOR_KINDS)[number];
