import type { AccountChange, AccountQuery, AccountState } from "../../customers/accounts/account-store.ts";
import { sessionId } from "../../customers/accounts/session.ts";
import type { ChangeAuthor, ChangedFields, ChangeEntry } from "../../customers/changes/change.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { Batch } from "../database/statement.ts";
import { logging } from "./change-log.ts";

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
