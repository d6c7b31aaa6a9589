import type { Account, Claim, Holdings, Session } from "../../customers/accounts/account.ts";
import type {
  AccountChange,
  AccountQuery,
  AccountState,
  AccountStore,
  Belongings,
  Link,
  WrittenChange,
} from "../../customers/accounts/account-store.ts";
import type { Email } from "../../customers/accounts/email.ts";
import type { IssuedMessage } from "../../customers/accounts/wallet-message.ts";
import type { Key } from "../../customers/keys/key.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { changeOfBalance, changeOfKey } from "../changes.ts";
import { KEY, type KeyRow, keyFromRow } from "./key-rows.ts";
import { part, type SqlDatabase, type Steps, sql } from "./statement.ts";

/**
 * Accounts, sessions, sign-in links and claims. What a change was decided on is what it changes: in PostgreSQL it is
 * serializable, and decided again where something came between. What has expired is deleted whenever something of its
 * kind is added, so that nothing a stranger may cause stays for good.
 */
export class SqlAccountStore implements AccountStore {
  constructor(
    private readonly db: SqlDatabase,
    private readonly clock: Pick<Clock, "now">,
  ) {}

  async change<C extends AccountChange>(
    about: AccountQuery,
    decide: (state: AccountState) => C | Refusal,
  ): Promise<WrittenChange<C> | Refusal> {
    const now = this.clock.now();
    return this.db.change<WrittenChange<C> | Refusal>(function* () {
      const decided = decide(yield* stateOf(about, now));
      if (refused(decided)) return { result: decided, changes: [] };
      if (about.link !== undefined) yield* sql`DELETE FROM sign_in_links WHERE hash = ${about.link}`;
      if (about.message !== undefined) yield* sql`DELETE FROM wallet_messages WHERE hash = ${about.message}`;
      const { attach = [], reclaim = [], close = [], revokeKeys = false } = decided;
      const ended: Key[] = [];
      for (const one of reclaim) ended.push(...(yield* reclaimBalance(one, revokeKeys)));
      yield* write(decided, now);
      return {
        result: { ...decided, endedKeys: ended.map(({ hash }) => hash) },
        changes: [...ended.map(changeOfKey), ...[...attach, ...reclaim, ...close].map(changeOfBalance)],
      };
    }, "serializable");
  }

  async holdings(about: AccountQuery): Promise<Holdings | null> {
    return this.db.read(() => readHoldings(about, null));
  }

  async accounts(ids: readonly AccountId[]): Promise<readonly Account[]> {
    return this.db.query<Account>`SELECT ${ACCOUNT} FROM accounts a WHERE a.id IN ${this.db.among(ids)}`;
  }

  async message(hash: SecretHash): Promise<IssuedMessage | null> {
    return this.db.read(() => readMessage(hash));
  }

  async session(hash: SecretHash): Promise<(Holdings & { readonly expiresAt: EpochMs }) | null> {
    return this.db.read(function* () {
      const [row] = yield* sql<Account & Pick<Session, "expiresAt">>`
        SELECT ${ACCOUNT}, s.expires_at AS "expiresAt" FROM sessions s JOIN accounts a ON a.id = s.account_id
        WHERE s.hash = ${hash}`;
      if (row === undefined) return null;
      const { expiresAt, ...account } = row;
      return { ...(yield* holdingsOf(account)), expiresAt };
    });
  }

  async sessions(account: AccountId): Promise<readonly Session[]> {
    return this.db.query<Session>`
      SELECT hash, expires_at AS "expiresAt" FROM sessions
      WHERE account_id = ${account} AND expires_at > ${this.clock.now()} ORDER BY expires_at DESC`;
  }

  async endSession(hash: SecretHash): Promise<void> {
    await this.db.change(function* () {
      yield* sql`DELETE FROM sessions WHERE hash = ${hash}`;
      return { result: null, changes: [] };
    });
  }

  async endSessions(account: AccountId): Promise<number> {
    return this.db.change(function* () {
      const ended = yield* sql`DELETE FROM sessions WHERE account_id = ${account} RETURNING hash`;
      return { result: ended.length, changes: [] };
    });
  }

  async belonging(balance: BalanceId): Promise<Belongings | null> {
    return this.db.read(() => readBelongings({ balance }));
  }

  async link(hash: SecretHash): Promise<Link | null> {
    return this.db.read(() => readLink(hash));
  }
}

function* stateOf(about: AccountQuery, now: EpochMs): Steps<AccountState> {
  const link = about.link === undefined ? null : yield* readLink(about.link);
  const mailbox = about.mailbox ?? about.email;
  return {
    link,
    message: about.message === undefined ? null : yield* readMessage(about.message),
    liveLinks: mailbox === undefined ? { signIn: 0, claim: 0 } : yield* liveLinks(mailbox, now),
    holdings: yield* readHoldings(about, link),
    balance: yield* readBelongings(about),
  };
}

function* liveLinks(mailbox: Email, now: EpochMs): Steps<AccountState["liveLinks"]> {
  const [row] = yield* sql<AccountState["liveLinks"]>`
    SELECT count(*) - count(claimed) AS "signIn", count(claimed) AS claim
    FROM sign_in_links WHERE email = ${mailbox} AND expires_at > ${now}`;
  return row!;
}

function* readHoldings({ email, wallet, account }: AccountQuery, link: Link | null): Steps<Holdings | null> {
  const asked = email ?? link?.email;
  const where =
    asked !== undefined
      ? part`email = ${asked}`
      : wallet !== undefined
        ? part`wallet = ${wallet}`
        : account !== undefined
          ? part`id = ${account}`
          : null;
  if (where === null) return null;
  const [found] = yield* sql<Account>`SELECT ${ACCOUNT} FROM accounts a WHERE ${where}`;
  return found === undefined ? null : yield* holdingsOf(found);
}

function* holdingsOf(account: Account): Steps<Holdings> {
  const balances = yield* sql<{ id: BalanceId; at: EpochMs | null }>`
    SELECT id, ${CLAIMED_AT} AS at FROM balances WHERE account_id = ${account.id} ORDER BY attached_at, id`;
  const claims = yield* sql<Claim>`SELECT ${CLAIM} FROM claims WHERE account_id = ${account.id}
    ORDER BY at DESC, balance_id LIMIT ${MAX_CLAIMS}`;
  return {
    account,
    balances: balances.map(({ id }) => id),
    claimed: balances.flatMap(({ id, at }) => (at === null ? [] : [{ id, at }])),
    claims,
  };
}

function* readLink(hash: SecretHash): Steps<Link | null> {
  const [link = null] = yield* sql<Link>`
    SELECT hash, email, claimed, expires_at AS "expiresAt" FROM sign_in_links WHERE hash = ${hash}`;
  return link;
}

function* readMessage(hash: SecretHash): Steps<IssuedMessage | null> {
  const [message = null] = yield* sql<IssuedMessage>`
    SELECT hash, address, chain_id AS "chainId", expires_at AS "expiresAt" FROM wallet_messages WHERE hash = ${hash}`;
  return message;
}

function* readBelongings({ balance, recovery }: AccountQuery): Steps<Belongings | null> {
  const where =
    balance !== undefined
      ? part`id = ${balance}`
      : recovery !== undefined
        ? part`recovery_hash = ${recovery} OR undo_hash = ${recovery}`
        : null;
  if (where === null) return null;
  const [row] = yield* sql<BelongingRow>`
    SELECT id, account_id AS "accountId", suspended, ${CLAIMED_AT} AS "claimedAt", recovery_hash AS recovery,
      coalesce(undo_hash, recovery_hash) AS undo, reclaims FROM balances WHERE ${where}`;
  if (row === undefined) return null;
  const { accountId, ...belongings } = row;
  const [claim = null] = yield* sql<Claim>`SELECT ${CLAIM} FROM claims WHERE balance_id = ${row.id}`;
  return {
    ...belongings,
    owner: accountId === null ? null : yield* holdingsOf(yield* readAccount(accountId)),
    claim,
    claimant: claim === null ? null : yield* readAccount(claim.accountId),
  };
}

type BelongingRow = Omit<Belongings, "owner" | "claim" | "claimant"> & {
  readonly accountId: AccountId | null;
};

function* readAccount(id: AccountId): Steps<Account> {
  const [account] = yield* sql<Account>`SELECT ${ACCOUNT} FROM accounts a WHERE a.id = ${id}`;
  return account!;
}

function* write(change: AccountChange, now: EpochMs): Steps<void> {
  const { account, balance, attach = [], close = [], recovery, erase } = change;
  const { claim, decline, session, link, message } = change;
  if (account !== undefined) {
    const { id, email, wallet, createdAt, provedAt } = account;
    yield* sql`INSERT INTO accounts (id, email, wallet, created_at, proved_at)
      VALUES (${id}, ${email}, ${wallet}, ${createdAt}, ${provedAt})
      ON CONFLICT (id) DO UPDATE SET proved_at = excluded.proved_at`;
    if (balance !== undefined) {
      yield* sql`INSERT INTO balances (id, account_id, created_at, attached_at)
        VALUES (${balance.id}, ${id}, ${balance.createdAt}, ${balance.createdAt})`;
    }
    for (const one of attach) yield* attachTo(id, one, now);
    if (session !== undefined) yield* addSession(session, id, now);
  }
  if (claim !== undefined) {
    const { balanceId, accountId, at } = claim;
    yield* sql`INSERT INTO claims (balance_id, account_id, at) VALUES (${balanceId}, ${accountId}, ${at})
      ON CONFLICT (balance_id) DO UPDATE SET account_id = excluded.account_id, at = excluded.at`;
  }
  if (decline !== undefined) yield* sql`DELETE FROM claims WHERE balance_id = ${decline}`;
  for (const one of close) yield* closeBalance(one, now);
  if (recovery !== undefined) {
    yield* sql`UPDATE balances SET recovery_hash = ${recovery.hash}, undo_hash = ${recovery.undo}
      WHERE id = ${recovery.balance}`;
  }
  if (erase) yield* eraseAccount(account!, now);
  if (link !== undefined) yield* addLink(link, now);
  if (message !== undefined) yield* addMessage(message, now);
}

function* attachTo(account: AccountId, balance: BalanceId, now: EpochMs): Steps<void> {
  yield* sql`DELETE FROM claims WHERE balance_id = ${balance}`;
  // Later than all others of the account, whatever the clock says: the first must stay the first.
  const [last] = yield* sql<{ at: number | null }>`
    SELECT max(attached_at) AS at FROM balances WHERE account_id = ${account}`;
  const at = Math.max(now, (last!.at ?? -1) + 1);
  const attached =
    yield* sql`UPDATE balances SET account_id = ${account}, claimed_at = ${now}, attached_at = ${at}
    WHERE id = ${balance} AND account_id IS NULL RETURNING id`;
  assert(attached.length === 1, `${balance} belongs to an account already`);
}

/** Returns the keys that ended although they do not derive from a claim. */
function* reclaimBalance(balance: BalanceId, revokeKeys: boolean): Steps<Key[]> {
  yield* sql`DELETE FROM claims WHERE balance_id = ${balance}`;
  yield* sql`UPDATE keys SET state = 'revoked' WHERE balance_id = ${balance} AND root > 0 AND state <> 'revoked'`;
  yield* sql`UPDATE balances SET account_id = NULL, attached_at = NULL, claimed_at = NULL, reclaims = reclaims + 1,
    recovery_hash = coalesce(undo_hash, recovery_hash), undo_hash = NULL WHERE id = ${balance}`;
  if (!revokeKeys) return [];
  const ended = yield* sql<KeyRow>`UPDATE keys SET state = 'revoked'
    WHERE balance_id = ${balance} AND state <> 'revoked' RETURNING ${KEY}`;
  return ended.map(keyFromRow);
}

function* closeBalance(balance: BalanceId, now: EpochMs): Steps<void> {
  yield* sql`UPDATE keys SET state = 'revoked' WHERE balance_id = ${balance} AND state <> 'revoked'`;
  yield* sql`UPDATE balances SET closed_at = ${now}, recovery_hash = NULL, undo_hash = NULL
    WHERE id = ${balance}`;
}

function* eraseAccount({ id, email, wallet }: Account, now: EpochMs): Steps<void> {
  yield* sql`UPDATE accounts SET email = NULL, wallet = NULL, deleted_at = ${now} WHERE id = ${id}`;
  yield* sql`DELETE FROM sessions WHERE account_id = ${id}`;
  yield* sql`DELETE FROM claims WHERE account_id = ${id}`;
  yield* sql`DELETE FROM sign_in_links WHERE email = ${email}`;
  yield* sql`DELETE FROM wallet_messages WHERE address = ${wallet}`;
}

function* addSession({ hash, expiresAt }: Session, account: AccountId, now: EpochMs): Steps<void> {
  yield* sql`DELETE FROM sessions WHERE expires_at <= ${now}`;
  yield* sql`INSERT INTO sessions (hash, account_id, expires_at) VALUES (${hash}, ${account}, ${expiresAt})`;
  yield* sql`DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions
    WHERE account_id = ${account} ORDER BY expires_at DESC LIMIT ${MANY} OFFSET ${MAX_SESSIONS})`;
}

function* addLink({ hash, email, claimed, expiresAt }: Link, now: EpochMs): Steps<void> {
  yield* sql`DELETE FROM sign_in_links WHERE expires_at <= ${now}`;
  yield* sql`INSERT INTO sign_in_links (hash, email, claimed, expires_at)
    VALUES (${hash}, ${email}, ${claimed}, ${expiresAt})`;
}

function* addMessage({ hash, address, chainId, expiresAt }: IssuedMessage, now: EpochMs): Steps<void> {
  yield* sql`DELETE FROM wallet_messages WHERE expires_at <= ${now}`;
  yield* sql`INSERT INTO wallet_messages (hash, address, chain_id, expires_at)
    VALUES (${hash}, ${address}, ${chainId}, ${expiresAt})`;
}

const ACCOUNT = part`a.id, a.email, a.wallet, a.suspended, a.created_at AS "createdAt", a.proved_at AS "provedAt",
  a.deleted_at AS "deletedAt"`;
const CLAIM = part`balance_id AS "balanceId", account_id AS "accountId", at`;
/** A node of the version before knows no `claimed_at`. */
const CLAIMED_AT = part`CASE WHEN setup_key IS NOT NULL THEN coalesce(claimed_at, attached_at) END`;

/** Anybody may claim for an address; of more claims than these, the newest are read. */
const MAX_CLAIMS = 100;
/** Of one account; a further sign-in ends the oldest. */
const MAX_SESSIONS = 50;
/** SQLite knows no OFFSET without a LIMIT. */
const MANY = 1_000_000;
