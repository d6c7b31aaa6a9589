import type { AccountChange, AccountQuery, AccountState } from "../../customers/accounts/account-store.ts";
import { sessionId } from "../../customers/accounts/session.ts";
import type { ChangeAuthor, ChangedFields, ChangeEntry } from "../../customers/changes/change.ts";
import type { OwnWebhook } from "../../customers/events/own-webhook.ts";
import { originOf } from "../../customers/events/webhook.ts";
import type { Balance, Budget, Key } from "../../customers/keys/key.ts";
import type { ChangedKey, SuspensionRecord } from "../../customers/keys/key-store.ts";
import type { StoredRun } from "../../customers/keys/run.ts";
import { isoTime } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { Batch } from "../database/database.ts";
import { logging, loggingDifference } from "./change-log.ts";

/** What the log of changes says of keys, budgets, runs and balances: what their owner sees of them. */
export const loggingNewKey = (key: Key): Batch =>
  loggingDifference(about(key, "key.created", {}, fieldsOf(key)));

/** A key changes, ends, or gets a successor: one row, with what ended next to it. */
export function loggingKey(before: Key, { key, successor, ended }: ChangedKey): Batch {
  const action = successor ? "key.rotated" : key.state === before.state ? "key.changed" : "key.revoked";
  const more = {
    ...(successor ? { new_key_id: successor.id } : {}),
    ...(ended.length === 0 ? {} : { revoked_key_ids: ended.map(({ id }) => id) }),
  };
  return loggingDifference(about(key, action, fieldsOf(before), { ...fieldsOf(key), ...more }));
}

/** Two rows where both were changed: who may set them differs. */
export function loggingBalance({ id, ...before }: Balance, after: Balance): Batch {
  const row = (action: ChangeEntry["action"], fields: (balance: Omit<Balance, "id">) => ChangedFields) =>
    loggingDifference({ action, subject: id, balance: id, before: fields(before), after: fields(after) });
  return [
    row("balance.priced", ({ priceList }) => ({ price_list: priceList })),
    row("balance.changed", ({ lowCredit }) => ({ low_credit_usd: amount(lowCredit) })),
  ];
}

export function loggingBudget(before: Budget | null, after: Budget | null): Batch {
  const { balanceId: balance, name } = (after ?? before)!;
  return loggingLife({ of: "budget", subject: name, balance, before, after }, ({ cap, window, perTag }) => ({
    name,
    cap_usd: usdFromNano(cap),
    window,
    ...(perTag ? { per: `tag:${perTag}` } : {}),
  }));
}

/** Where an owner has events sent: without path and query, which may be secrets. */
export function loggingWebhook(before: OwnWebhook | null, after: OwnWebhook | null): Batch {
  const { id, balanceId: balance } = (after ?? before)!;
  const isChanged = before !== null && after !== null;
  return loggingLife({ of: "webhook", subject: id, balance, before, after }, (webhook) => ({
    origin: originOf(webhook.url),
    ...(isChanged ? { url_replaced: webhook.url !== before.url } : {}),
    events: webhook.kinds,
    format: webhook.format,
    paused: webhook.pausedAt !== null,
    secret_expires_at: webhook.overlapUntil === null ? null : isoTime(webhook.overlapUntil),
  }));
}

/** Something is made where it was null before, deleted where it is null after, or else changed. */
function loggingLife<Thing>(
  { of, before, after, ...about }: ThingLife<Thing>,
  fields: (thing: Thing) => ChangedFields,
): Batch {
  const action = `${of}.${before === null ? "created" : after === null ? "deleted" : "changed"}` as const;
  const fieldsOf = (thing: Thing | null) => (thing === null ? {} : fields(thing));
  return loggingDifference({ ...about, action, before: fieldsOf(before), after: fieldsOf(after) });
}

interface ThingLife<Thing> extends Pick<ChangeEntry, "subject" | "balance"> {
  readonly of: "budget" | "webhook";
  readonly before: Thing | null;
  readonly after: Thing | null;
}

/** A run that its owner changes or ends. */
export function loggingRun(balance: Balance, before: StoredRun, after: StoredRun): Batch {
  const fields = ({ cap, calls, usedAt }: StoredRun): ChangedFields => ({
    cap_usd: amount(cap),
    calls,
    ended: usedAt === 0,
  });
  return loggingDifference({
    action: after.usedAt === 0 ? "run.ended" : "run.changed",
    subject: after.name,
    balance: balance.id,
    before: fields(before),
    after: fields(after),
  });
}

/** Without the operator's name and note for it, which are not the owner's to see. */
export const loggingSuspension = (
  { subject, reason, lifted }: SuspensionRecord,
  isBalance: boolean,
  suspended: { readonly before: string | null; readonly after: string | null },
): Batch =>
  logging({
    action: `${isBalance ? "balance" : "account"}.${reason === null ? "unsuspended" : "suspended"}`,
    subject,
    balance: isBalance ? (subject as Balance["id"]) : null,
    before: { suspended: suspended.before },
    after: { suspended: suspended.after, ...(lifted === null ? {} : { lifted }) },
  });

const about = (
  { id, balanceId }: Key,
  action: ChangeEntry["action"],
  before: ChangedFields,
  after: ChangedFields,
): ChangeEntry => ({ action, subject: id, balance: balanceId, before, after });

const fieldsOf = (key: Key): ChangedFields => ({
  name: key.name,
  state: key.state,
  expires_at: key.expiresAt === null ? null : isoTime(key.expiresAt),
  rpm_limit: key.rpmLimit,
  tpm_limit: key.tpmLimit,
  daily_limit_usd: amount(key.dailyLimit),
  monthly_limit_usd: amount(key.monthlyLimit),
  allowed_models: key.allowedModels,
  budget: key.budgets,
  policy: key.policy ?? null,
  price_list: key.priceList,
});

const amount = (limit: NanoUsd | null): number | null => (limit === null ? null : usdFromNano(limit));

/** What the log of changes says of accounts: a row for each balance and account, without their addresses. */
export function loggingAccountChange(
  about: AccountQuery,
  { accountBalances, balance: present }: AccountState,
  change: AccountChange,
): Batch {
  const {
    account,
    balance,
    attach = [],
    reclaim = [],
    close = [],
    claim,
    decline,
    recovery,
    session,
  } = change;
  const own = account?.id ?? null;
  const holder =
    present?.owner?.account.id ?? present?.claim?.accountId ?? accountBalances?.account.id ?? own;
  const by = signsIn(about, change, present?.id ?? null);
  const row = (
    action: ChangeEntry["action"],
    subject: string,
    before: ChangedFields,
    after: ChangedFields,
  ): Batch =>
    logging({
      action,
      subject,
      balance: action.startsWith("balance.") ? (subject as BalanceId) : null,
      before,
      after,
      ...(by === null ? {} : { by }),
    });
  return [
    session && row("account.session_created", own!, {}, { session_id: sessionId(session) }),
    balance && row("balance.created", balance.id, {}, { account_id: own }),
    attach.map((id) => row("balance.attached", id, { account_id: null }, { account_id: own })),
    claim && row("balance.offered", claim.balanceId, {}, { claimed_for: claim.accountId }),
    decline && row("balance.declined", decline, { claimed_for: present?.claim?.accountId ?? own }, {}),
    reclaim.map((id) =>
      row(
        "balance.reclaimed",
        id,
        { account_id: holder },
        { account_id: null, revoke_keys: change.revokeKeys === true },
      ),
    ),
    close.map((id) => row("balance.closed", id, { closed: false }, { closed: true })),
    recovery && row("balance.recovery_replaced", recovery.balance, {}, {}),
    change.erase === true ? row("account.deleted", own!, {}, {}) : null,
  ];
}

/** Who shows no other credential than what the change uses up: a link, a signature, or a recovery secret. */
function signsIn(
  { recovery }: AccountQuery,
  { account, session }: AccountChange,
  balance: BalanceId | null,
): ChangeAuthor | null {
  if (account !== undefined && session !== undefined)
    return { kind: "owner", id: account.id, name: "session" };
  return recovery === undefined || balance === null
    ? null
    : { kind: "owner", id: balance, name: "recovery secret" };
}

export const loggingEndedSession = (account: AccountId, session: SecretHash): Batch =>
  loggingEnd(account, { session_id: sessionId({ hash: session }) });

export const loggingEndedSessions = (account: AccountId, ended: number): Batch =>
  loggingEnd(account, { ended });

const loggingEnd = (account: AccountId, before: ChangedFields): Batch =>
  logging({ action: "account.session_ended", subject: account, balance: null, before, after: {} });
