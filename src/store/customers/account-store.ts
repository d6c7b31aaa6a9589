import type { Account, AccountBalances, Claim, Session } from "../../customers/accounts/account.ts";
import type {
  AccountChange,
  AccountQuery,
  AccountState,
  AccountStore,
  BalanceRecord,
  Link,
  WrittenChange,
} from "../../customers/accounts/account-store.ts";
import type { Email } from "../../customers/accounts/email.ts";
import type { IssuedMessage } from "../../customers/accounts/wallet-message.ts";
import { eventOf, type RecordedEvent } from "../../customers/events/event.ts";
import type { Key } from "../../customers/keys/key.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import {
  type Batch,
  type CommitStatement,
  changes,
  changesOne,
  type Database,
  finds,
  inserted,
  type SqlPart,
  sql,
  touch,
  verbatim,
} from "../database/database.ts";
import { changeOfBalance, changeOfKey } from "../nodes/changes.ts";
import { TableColumns } from "../schema/columns.ts";
import { recording } from "./events.ts";
import { KEY, revokedFromRow } from "./key-rows.ts";
import { loggingAccountChange, loggingEndedSession, loggingEndedSessions } from "./logged-fields.ts";
import { removingWebhooks } from "./webhook-store.ts";

/**
 * Accounts, sessions, sign-in links and claims. What a change was decided on is what it changes: where one of the accounts
 * and balances that it read is another by then, or a link is used, it is decided again. What has expired is deleted whenever
 * something of its kind is added, so that nothing a stranger may cause stays for good.
 */
export class SqlAccountStore implements AccountStore {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, "now">,
  ) {}

  change<C extends AccountChange>(
    about: AccountQuery,
    decide: (state: AccountState) => C | Refusal,
  ): Promise<WrittenChange<C> | Refusal> {
    const now = this.clock.now();
    return this.db.change<WrittenChange<C> | Refusal>(subjectOf(about), async () => {
      const read: ReadRows = { accounts: new Map(), balances: new Map() };
      const state = await this.stateOf(about, now, read);
      const decided = decide(state);
      if (refused(decided)) return { result: decided, statements: unchanged(read) };
      const { attach = [], reclaim = [], close = [], revokeKeys = false } = decided;
      await this.readVersions([...attach, ...reclaim, ...close], read);
      const ended = revokeKeys ? await this.liveKeysOf(reclaim) : [];
      return {
        result: { ...decided, endedKeys: ended.map(({ hash }) => hash) },
        statements: [
          touching(read),
          this.using(about, state, decided, now),
          reclaim.map((balance) => reclaiming(balance, revokeKeys)),
          await this.writing(decided, now),
          recording(this.db, claimEvents(about, state, decided, now)),
          loggingAccountChange(about, state, decided),
        ],
        changes: [...ended.map(changeOfKey), ...[...attach, ...reclaim, ...close].map(changeOfBalance)],
      };
    });
  }

  accountBalances(about: AccountQuery): Promise<AccountBalances | null> {
    return this.readAccountBalances(about, null);
  }

  accounts(ids: readonly AccountId[]): Promise<readonly Account[]> {
    return this.db.read<Account>`SELECT ${ACCOUNT} FROM accounts a WHERE a.id IN ${this.db.among(ids)}`;
  }

  async message(hash: SecretHash): Promise<IssuedMessage | null> {
    const [message = null] = await this.db.read<IssuedMessage>`
      SELECT ${MESSAGE} FROM wallet_messages WHERE hash = ${hash}`;
    return message;
  }

  async session(hash: SecretHash): Promise<(AccountBalances & { readonly expiresAt: EpochMs }) | null> {
    const [row] = await this.db.read<Account & Pick<Session, "expiresAt">>`
      SELECT ${ACCOUNT}, s.expires_at AS "expiresAt" FROM sessions s JOIN accounts a ON a.id = s.account_id
      WHERE s.hash = ${hash}`;
    if (row === undefined) return null;
    const { expiresAt, ...account } = row;
    return { ...(await this.balancesOf(account)), expiresAt };
  }

  sessions(account: AccountId): Promise<readonly Session[]> {
    return this.db.read<Session>`
      SELECT hash, expires_at AS "expiresAt" FROM sessions
      WHERE account_id = ${account} AND expires_at > ${this.clock.now()} ORDER BY expires_at DESC`;
  }

  endSession(hash: SecretHash): Promise<void> {
    return this.db.change<void>(`session ${hash}`, async () => {
      const [row] = await this.db.read<{ account: AccountId }>`
        SELECT account_id AS account FROM sessions WHERE hash = ${hash}`;
      if (row === undefined) return { result: undefined };
      const ending = changesOne(sql`DELETE FROM sessions WHERE hash = ${hash}`);
      return { result: undefined, statements: [ending, loggingEndedSession(row.account, hash)] };
    });
  }

  endSessions(account: AccountId): Promise<number> {
    return this.db.change<number>(`sessions ${account}`, async () => {
      const [row] = await this.db.read<{ count: number }>`
        SELECT count(*) AS count FROM sessions WHERE account_id = ${account}`;
      const { count } = row!;
      if (count === 0) return { result: 0 };
      const ending = changes(count, sql`DELETE FROM sessions WHERE account_id = ${account}`);
      return { result: count, statements: [ending, loggingEndedSessions(account, count)] };
    });
  }

  balanceRecord(balance: BalanceId): Promise<BalanceRecord | null> {
    return this.readBalanceRecord({ balance });
  }

  async link(hash: SecretHash): Promise<Link | null> {
    const [link = null] = await this.db.read<Link>`SELECT ${LINK} FROM sign_in_links WHERE hash = ${hash}`;
    return link;
  }

  private async stateOf(about: AccountQuery, now: EpochMs, read: ReadRows): Promise<AccountState> {
    const link = about.link === undefined ? null : await this.link(about.link);
    const mailbox = mailboxOf(about);
    return {
      link,
      message: about.message === undefined ? null : await this.message(about.message),
      liveLinks: mailbox === undefined ? { signIn: 0, claim: 0 } : await this.liveLinks(mailbox, now),
      accountBalances: await this.readAccountBalances(about, link, read),
      balance: await this.readBalanceRecord(about, read),
    };
  }

  private async liveLinks(mailbox: Email, now: EpochMs): Promise<AccountState["liveLinks"]> {
    const [row] = await this.db.read<AccountState["liveLinks"]>`
      SELECT count(*) - count(claimed) AS "signIn", count(claimed) AS claim FROM (${linksTo(mailbox, now)}) AS live`;
    return row!;
  }

  private async readAccountBalances(
    { email, wallet, account }: AccountQuery,
    link: Link | null,
    read?: ReadRows,
  ): Promise<AccountBalances | null> {
    const address = email ?? link?.email;
    const where =
      address !== undefined
        ? sql`email = ${address}`
        : wallet !== undefined
          ? sql`wallet = ${wallet}`
          : account !== undefined
            ? sql`id = ${account}`
            : null;
    const found = where === null ? null : await this.readAccount(where, read);
    return found === null ? null : this.balancesOf(found);
  }

  private async balancesOf(account: Account): Promise<AccountBalances> {
    const balances = await this.db.read<{ id: BalanceId; at: EpochMs | null }>`
      SELECT id, ${CLAIMED_AT} AS at FROM balances WHERE account_id = ${account.id} ORDER BY attached_at, id`;
    const claims = await this.db.read<Claim>`SELECT ${CLAIM} FROM claims WHERE account_id = ${account.id}
      ORDER BY at DESC, balance_id LIMIT ${MAX_CLAIMS}`;
    return {
      account,
      balances: balances.map(({ id }) => id),
      claimed: balances.flatMap(({ id, at }) => (at === null ? [] : [{ id, at }])),
      claims,
    };
  }

  private async readBalanceRecord(
    { balance, recovery }: AccountQuery,
    read?: ReadRows,
  ): Promise<BalanceRecord | null> {
    const where =
      balance !== undefined
        ? sql`id = ${balance}`
        : recovery !== undefined
          ? sql`recovery_hash = ${recovery} OR undo_hash = ${recovery}`
          : null;
    if (where === null) return null;
    const [row] = await this.db.read<BalanceRecordRow>`
      SELECT id, account_id AS "accountId", suspended, ${CLAIMED_AT} AS "claimedAt", recovery_hash AS recovery,
        coalesce(undo_hash, recovery_hash) AS undo, reclaims, version FROM balances WHERE ${where}`;
    if (row === undefined) return null;
    const { accountId, version, ...record } = row;
    read?.balances.set(row.id, version);
    const [claim = null] = await this.db
      .read<Claim>`SELECT ${CLAIM} FROM claims WHERE balance_id = ${row.id}`;
    const owner = accountId === null ? null : await this.readAccount(sql`id = ${accountId}`, read);
    return {
      ...record,
      owner: owner === null ? null : await this.balancesOf(owner),
      claim,
      claimant: claim === null ? null : await this.readAccount(sql`id = ${claim.accountId}`, read),
    };
  }

  private async readAccount(where: SqlPart, read?: ReadRows): Promise<Account | null> {
    const [row] = await this.db.read<Account & { readonly version: number }>`
      SELECT ${ACCOUNT}, a.version FROM accounts a WHERE ${where}`;
    if (row === undefined) return null;
    const { version, ...account } = row;
    read?.accounts.set(account.id, version);
    return account;
  }

  /** Reads the versions of balances that nothing else of the change has read. */
  private async readVersions(balances: readonly BalanceId[], { balances: read }: ReadRows): Promise<void> {
    const rows = await this.db.read<{ id: BalanceId; version: number }>`
      SELECT id, version FROM balances WHERE id IN ${this.db.among(balances)}`;
    for (const { id, version } of rows) if (!read.has(id)) read.set(id, version);
  }

  private async liveKeysOf(balances: readonly BalanceId[]): Promise<Key[]> {
    const rows = await this.db.read<object>`SELECT ${KEY} FROM keys
      WHERE balance_id IN ${this.db.among(balances)} AND root = 0 AND state <> 'revoked'`;
    return rows.map(revokedFromRow);
  }

  /** What a change uses up of what it was decided on. */
  private using(
    about: AccountQuery,
    { link, message, liveLinks }: AccountState,
    decided: AccountChange,
    now: EpochMs,
  ): Batch {
    const mailbox = mailboxOf(about);
    const isCounted = mailbox !== undefined && decided.link !== undefined;
    return [
      isCounted ? this.db.lock(`links ${mailbox}`) : null,
      isCounted ? finds(liveLinks.signIn + liveLinks.claim, linksTo(mailbox, now)) : null,
      link && changesOne(sql`DELETE FROM sign_in_links WHERE hash = ${link.hash}`),
      message && changesOne(sql`DELETE FROM wallet_messages WHERE hash = ${message.hash}`),
    ];
  }

  private async writing(change: AccountChange, now: EpochMs): Promise<Batch> {
    const { account, balance, attach = [], close = [], recovery, erase } = change;
    const { claim, decline, session, link, message } = change;
    return [
      account && addingAccount(account, balance),
      account && (await this.attaching(account.id, attach, now, balance?.createdAt)),
      account && session && addingSession(session, account.id, now),
      claim && claiming(claim),
      decline && sql`DELETE FROM claims WHERE balance_id = ${decline}`,
      close.map((one) => closing(one, now)),
      recovery &&
        sql`UPDATE balances SET recovery_hash = ${recovery.hash}, undo_hash = ${recovery.undo}
          WHERE id = ${recovery.balance}`,
      erase ? erasing(account!, now) : null,
      link && addingLink(link, now),
      message && addingMessage(message, now),
    ];
  }

  /** Later than all others of the account, whatever the clock shows: the first must stay the first. */
  private async attaching(
    account: AccountId,
    balances: readonly BalanceId[],
    now: EpochMs,
    /** When a balance of its own becomes the account's in the same change. */
    ownAt = -1,
  ): Promise<Batch> {
    if (balances.length === 0) return [];
    const [last] = await this.db.read<{ at: number | null }>`
      SELECT max(attached_at) AS at FROM balances WHERE account_id = ${account}`;
    const first = Math.max(now, ownAt + 1, (last!.at ?? -1) + 1);
    return balances.flatMap((balance, index) => [
      sql`DELETE FROM claims WHERE balance_id = ${balance}`,
      changesOne(sql`UPDATE balances SET account_id = ${account}, claimed_at = ${now}, attached_at = ${first + index}
        WHERE id = ${balance} AND account_id IS NULL`),
    ]);
  }
}

/** The versions of what a change has read. */
interface ReadRows {
  readonly accounts: Map<AccountId, number>;
  readonly balances: Map<BalanceId, number>;
}

/** In one order, so that two changes never wait for each other. */
const touching = (read: ReadRows): Batch =>
  TABLES.map((table) => [...read[table]].sort(byId).map(([id, version]) => touch(table, { id, version })));

/** What is refused was read in several statements, too, and somebody may have come between them. */
const unchanged = (read: ReadRows): Batch =>
  TABLES.map((table) =>
    [...read[table]].map(([id, version]) =>
      finds(1, sql`SELECT 1 FROM ${verbatim(table)} WHERE id = ${id} AND version = ${version}`),
    ),
  );

const TABLES = ["accounts", "balances"] as const;

const byId = ([a]: readonly [string, number], [b]: readonly [string, number]): number => (a < b ? -1 : 1);

/** What changes of one process compete for most. */
const subjectOf = ({ email, mailbox, wallet, account, balance, recovery, link, message }: AccountQuery) =>
  `account ${email ?? mailbox ?? wallet ?? account ?? balance ?? recovery ?? link ?? message ?? ""}`;

const mailboxOf = ({ mailbox, email }: AccountQuery): Email | undefined => mailbox ?? email;

const linksTo = (mailbox: Email, now: EpochMs): SqlPart =>
  sql`SELECT claimed FROM sign_in_links WHERE email = ${mailbox} AND expires_at > ${now}`;

type BalanceRecordRow = Omit<BalanceRecord, "owner" | "claim" | "claimant"> & {
  readonly accountId: AccountId | null;
  readonly version: number;
};

const addingAccount = (account: Account, balance: AccountChange["balance"]): Batch => [
  sql`INSERT INTO accounts ${inserted(ACCOUNT.row(account))}
    ON CONFLICT (id) DO UPDATE SET proved_at = excluded.proved_at`,
  balance &&
    sql`INSERT INTO balances (id, account_id, created_at, attached_at)
      VALUES (${balance.id}, ${account.id}, ${balance.createdAt}, ${balance.createdAt})`,
];

const claiming = (claim: Claim): CommitStatement =>
  sql`INSERT INTO claims ${inserted(CLAIM.row(claim))}
    ON CONFLICT (balance_id) DO UPDATE SET account_id = excluded.account_id, at = excluded.at`;

/** A balance becomes an account's, or leaves it by its first owner's word or the operator's. */
function claimEvents(
  { recovery }: AccountQuery,
  { balance: present }: AccountState,
  { account, attach = [], reclaim = [] }: AccountChange,
  at: EpochMs,
): RecordedEvent[] {
  const ended = recovery === undefined ? "claim.detached" : "claim.undone";
  const holder = present?.owner?.account.id ?? present?.claim?.accountId ?? null;
  const event = (kind: "claim.claimed" | typeof ended, balance: BalanceId, account_id: AccountId | null) =>
    eventOf(kind, `${balance} ${at}`, { at, balance, account_id });
  return [
    ...attach.map((id) => event("claim.claimed", id, account?.id ?? null)),
    ...reclaim.map((id) => event(ended, id, holder)),
  ];
}

/** Ends the keys that derive from a claim; where `revokeKeys`, the others as well. */
const reclaiming = (balance: BalanceId, revokeKeys: boolean): Batch => [
  sql`DELETE FROM claims WHERE balance_id = ${balance}`,
  sql`UPDATE keys SET state = 'revoked' WHERE balance_id = ${balance} AND state <> 'revoked'
    AND root > ${revokeKeys ? -1 : 0}`,
  sql`UPDATE balances SET account_id = NULL, attached_at = NULL, claimed_at = NULL, reclaims = reclaims + 1,
    recovery_hash = coalesce(undo_hash, recovery_hash), undo_hash = NULL WHERE id = ${balance}`,
  removingWebhooks(balance),
];

const closing = (balance: BalanceId, now: EpochMs): Batch => [
  sql`UPDATE keys SET state = 'revoked' WHERE balance_id = ${balance} AND state <> 'revoked'`,
  sql`UPDATE balances SET closed_at = ${now}, recovery_hash = NULL, undo_hash = NULL WHERE id = ${balance}`,
  removingWebhooks(balance),
];

const erasing = ({ id, email, wallet }: Account, now: EpochMs): Batch => [
  sql`UPDATE accounts SET email = NULL, wallet = NULL, deleted_at = ${now} WHERE id = ${id}`,
  sql`DELETE FROM sessions WHERE account_id = ${id}`,
  sql`DELETE FROM claims WHERE account_id = ${id}`,
  sql`DELETE FROM sign_in_links WHERE email = ${email}`,
  sql`DELETE FROM wallet_messages WHERE address = ${wallet}`,
];

const addingSession = ({ hash, expiresAt }: Session, account: AccountId, now: EpochMs): Batch => [
  sql`DELETE FROM sessions WHERE expires_at <= ${now}`,
  sql`INSERT INTO sessions (hash, account_id, expires_at) VALUES (${hash}, ${account}, ${expiresAt})`,
  sql`DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions
    WHERE account_id = ${account} ORDER BY expires_at DESC LIMIT ${MANY} OFFSET ${MAX_SESSIONS})`,
];

const addingLink = (link: Link, now: EpochMs): Batch => [
  sql`DELETE FROM sign_in_links WHERE expires_at <= ${now}`,
  sql`INSERT INTO sign_in_links ${inserted(LINK.row(link))}`,
];

const addingMessage = (message: IssuedMessage, now: EpochMs): Batch => [
  sql`DELETE FROM wallet_messages WHERE expires_at <= ${now}`,
  sql`INSERT INTO wallet_messages ${inserted(MESSAGE.row(message))}`,
];

const ACCOUNT = new TableColumns<Account>("id email wallet suspended createdAt provedAt deletedAt", {}, "a.");
const CLAIM = new TableColumns<Claim>("balanceId accountId at");
const LINK = new TableColumns<Link>("hash email claimed expiresAt");
const MESSAGE = new TableColumns<IssuedMessage>("hash address chainId expiresAt");
/** A node of the version before knows no `claimed_at`. */
const CLAIMED_AT = sql`CASE WHEN setup_key IS NOT NULL THEN coalesce(claimed_at, attached_at) END`;

/** Anybody may claim for an address; of more claims than these, the newest are read. */
const MAX_CLAIMS = 100;
/** Sessions of one account; a further sign-in ends the oldest. */
const MAX_SESSIONS = 50;
/** SQLite knows no OFFSET without a LIMIT. */
const MANY = 1_000_000;
