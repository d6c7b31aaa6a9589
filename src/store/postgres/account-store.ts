import type { SQL, TransactionSQL } from "bun";
import type { Account, Claim, Holdings, Session } from "../../accounts/account.ts";
import type {
  AccountChange,
  AccountQuery,
  AccountState,
  AccountStore,
  Belongings,
  Link,
} from "../../accounts/account-store.ts";
import type { Email } from "../../accounts/email.ts";
import type { IssuedMessage } from "../../accounts/wallet.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import {
  type AccountRow,
  accountFromRow,
  type BelongingRow,
  belongingsFromRow,
  type ClaimRow,
  claimFromRow,
  holdingsFromRows,
  type LinkRow,
  linkFromRow,
  type MessageRow,
  MOST_CLAIMS,
  MOST_SESSIONS,
  messageFromRow,
} from "../account-rows.ts";
import { changeOfBalance } from "../changes.ts";
import type { Postgres } from "./postgres.ts";
import { noteChanges } from "./registry.ts";

/**
 * Accounts, sessions, sign-in links and claims in PostgreSQL. A change is one serializable transaction: what
 * it was decided on is what it changes, or it is decided again. A balance that changes hands resolves once
 * every node has taken notice.
 */
export class PostgresAccountStore implements AccountStore {
  constructor(
    private readonly postgres: Postgres,
    private readonly clock: Pick<Clock, "now">,
    private readonly acknowledged: (version: number) => Promise<void>,
  ) {}

  async change<C extends AccountChange>(
    about: AccountQuery,
    decide: (state: AccountState) => C | Refusal,
  ): Promise<C | Refusal> {
    const { result, version } = await this.postgres.transaction(
      async (sql) => {
        const decided = decide(await this.state(sql, about));
        if (refused(decided)) return { result: decided, version: null };
        if (about.link !== undefined) await sql`DELETE FROM sign_in_links WHERE hash = ${about.link}`;
        if (about.message !== undefined) await sql`DELETE FROM wallet_messages WHERE hash = ${about.message}`;
        await this.write(sql, decided);
        const { attach = [], detach = [], close = [] } = decided;
        const changes = [...attach, ...detach, ...close].map(changeOfBalance);
        return {
          result: decided,
          version: changes.length === 0 ? null : await noteChanges(this.postgres, sql, changes),
        };
      },
      { isolation: "serializable" },
    );
    if (version !== null) await this.acknowledged(version);
    return result;
  }

  async holdings(about: AccountQuery): Promise<Holdings | null> {
    return this.postgres.transaction((sql) => readHoldings(sql, about, null));
  }

  async accounts(ids: readonly AccountId[]): Promise<readonly Account[]> {
    const rows = await this.postgres.query<AccountRow<string>>(
      (sql) => sql`SELECT * FROM accounts
        WHERE id IN (SELECT value FROM json_array_elements_text(${JSON.stringify(ids)}::text::json))`,
    );
    return rows.map(accountFromRow);
  }

  async message(hash: SecretHash): Promise<IssuedMessage | null> {
    return this.postgres.transaction((sql) => readMessage(sql, hash));
  }

  async session(hash: SecretHash): Promise<(Holdings & { readonly expiresAt: EpochMs }) | null> {
    return this.postgres.transaction(async (sql) => {
      const [row] = await sql<(AccountRow<string> & { expires_at: string })[]>`
        SELECT a.*, s.expires_at FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.hash = ${hash}`;
      if (row === undefined) return null;
      return {
        ...(await holdingsOf(sql, accountFromRow(row))),
        expiresAt: Number(row.expires_at) as EpochMs,
      };
    });
  }

  async sessions(account: AccountId): Promise<readonly Session[]> {
    const rows = await this.postgres.query<{ hash: SecretHash; expires_at: string }>(
      (sql) => sql`SELECT hash, expires_at FROM sessions
        WHERE account_id = ${account} AND expires_at > ${this.clock.now()} ORDER BY expires_at DESC`,
    );
    return rows.map(({ hash, expires_at }) => ({ hash, expiresAt: Number(expires_at) as EpochMs }));
  }

  async endSessions(account: AccountId): Promise<number> {
    const ended = await this.postgres.query<{ hash: SecretHash }>(
      (sql) => sql`DELETE FROM sessions WHERE account_id = ${account} RETURNING hash`,
    );
    return ended.length;
  }

  async endSession(hash: SecretHash): Promise<void> {
    await this.postgres.query((sql) => sql`DELETE FROM sessions WHERE hash = ${hash}`);
  }

  async belonging(balance: BalanceId): Promise<Belongings | null> {
    return this.postgres.transaction((sql) => readBelongings(sql, { balance }));
  }

  async link(hash: SecretHash): Promise<Link | null> {
    return this.postgres.transaction((sql) => readLink(sql, hash));
  }

  private async state(sql: TransactionSQL, about: AccountQuery): Promise<AccountState> {
    const link = about.link === undefined ? null : await readLink(sql, about.link);
    const mailbox = about.mailbox ?? about.email;
    return {
      link,
      message: about.message === undefined ? null : await readMessage(sql, about.message),
      liveLinks: mailbox === undefined ? { signIn: 0, claim: 0 } : await this.liveLinks(sql, mailbox),
      holdings: await readHoldings(sql, about, link),
      balance: await readBelongings(sql, about),
    };
  }

  private async liveLinks(sql: TransactionSQL, mailbox: Email): Promise<AccountState["liveLinks"]> {
    const [row] = await sql<{ sign_in: string; claim: string }[]>`
      SELECT count(*) - count(claimed) AS sign_in, count(claimed) AS claim
      FROM sign_in_links WHERE email = ${mailbox} AND expires_at > ${this.clock.now()}`;
    return { signIn: Number(row!.sign_in), claim: Number(row!.claim) };
  }

  private async write(sql: TransactionSQL, change: AccountChange): Promise<void> {
    const { account, balance, attach = [], detach = [], close = [], recovery, erase } = change;
    const { claim, decline, session, link, message } = change;
    if (account !== undefined) {
      const { id, email, wallet, createdAt, provedAt } = account;
      await sql`INSERT INTO accounts (id, email, wallet, created_at, proved_at)
        VALUES (${id}, ${email}, ${wallet}, ${createdAt}, ${provedAt})
        ON CONFLICT (id) DO UPDATE SET proved_at = excluded.proved_at`;
      if (balance !== undefined) {
        await sql`INSERT INTO balances (id, account_id, created_at, attached_at)
          VALUES (${balance.id}, ${id}, ${balance.createdAt}, ${balance.createdAt})`;
      }
      for (const one of attach) await this.attach(sql, one, id);
      for (const one of detach) {
        await sql`UPDATE keys SET state = 'revoked'
          WHERE balance_id = ${one} AND made_by = ${id} AND state <> 'revoked'`;
        await sql`UPDATE balances SET account_id = NULL, attached_at = NULL, claimed_at = NULL,
            recovery_hash = coalesce(undo_hash, recovery_hash), undo_hash = NULL
          WHERE id = ${one} AND account_id = ${id}`;
      }
      if (session !== undefined) await this.addSession(sql, session, id);
    }
    if (claim !== undefined) {
      const { balanceId, accountId, at } = claim;
      await sql`INSERT INTO claims (balance_id, account_id, at) VALUES (${balanceId}, ${accountId}, ${at})
        ON CONFLICT (balance_id) DO UPDATE SET account_id = excluded.account_id, at = excluded.at`;
    }
    if (decline !== undefined) await sql`DELETE FROM claims WHERE balance_id = ${decline}`;
    for (const one of close) await this.close(sql, one);
    if (recovery !== undefined) {
      await sql`UPDATE balances SET recovery_hash = ${recovery.hash}, undo_hash = ${recovery.undo}
        WHERE id = ${recovery.balance}`;
    }
    if (erase) await this.erase(sql, account!);
    if (link !== undefined) await this.addLink(sql, link);
    if (message !== undefined) await this.addMessage(sql, message);
  }

  private async close(sql: TransactionSQL, balance: BalanceId): Promise<void> {
    await sql`UPDATE keys SET state = 'revoked' WHERE balance_id = ${balance} AND state <> 'revoked'`;
    await sql`UPDATE balances SET closed_at = ${this.clock.now()}, recovery_hash = NULL, undo_hash = NULL
      WHERE id = ${balance}`;
  }

  private async erase(sql: TransactionSQL, { id, email, wallet }: Account): Promise<void> {
    await sql`UPDATE accounts SET email = NULL, wallet = NULL, deleted_at = ${this.clock.now()} WHERE id = ${id}`;
    await sql`DELETE FROM sessions WHERE account_id = ${id}`;
    await sql`DELETE FROM claims WHERE account_id = ${id}`;
    await sql`DELETE FROM sign_in_links WHERE email = ${email}`;
    await sql`DELETE FROM wallet_messages WHERE address = ${wallet}`;
  }

  private async attach(sql: TransactionSQL, balance: BalanceId, account: AccountId): Promise<void> {
    await sql`DELETE FROM claims WHERE balance_id = ${balance}`;
    const now = this.clock.now();
    // Later than all others of the account, whatever the clock says: the first must stay the first.
    const attached = await sql`UPDATE balances SET account_id = ${account},
        claimed_at = ${now}, attached_at = greatest(${now}::bigint, (SELECT max(attached_at) + 1 FROM balances WHERE account_id = ${account}))
      WHERE id = ${balance} AND account_id IS NULL RETURNING id`;
    assert(attached.length === 1, `${balance} belongs to an account already`);
  }

  private async addSession(
    sql: TransactionSQL,
    { hash, expiresAt }: Session,
    account: AccountId,
  ): Promise<void> {
    await sql`DELETE FROM sessions WHERE expires_at <= ${this.clock.now()}`;
    await sql`INSERT INTO sessions (hash, account_id, expires_at) VALUES (${hash}, ${account}, ${expiresAt})`;
    await sql`DELETE FROM sessions WHERE hash IN
      (SELECT hash FROM sessions WHERE account_id = ${account} ORDER BY expires_at DESC OFFSET ${MOST_SESSIONS})`;
  }

  private async addLink(sql: TransactionSQL, { hash, email, claimed, expiresAt }: Link): Promise<void> {
    await sql`DELETE FROM sign_in_links WHERE expires_at <= ${this.clock.now()}`;
    await sql`INSERT INTO sign_in_links (hash, email, claimed, expires_at)
      VALUES (${hash}, ${email}, ${claimed}, ${expiresAt})`;
  }

  private async addMessage(sql: TransactionSQL, message: IssuedMessage): Promise<void> {
    const { hash, address, chainId, expiresAt } = message;
    await sql`DELETE FROM wallet_messages WHERE expires_at <= ${this.clock.now()}`;
    await sql`INSERT INTO wallet_messages (hash, address, chain_id, expires_at)
      VALUES (${hash}, ${address}, ${chainId}, ${expiresAt})`;
  }
}

async function readHoldings(
  sql: TransactionSQL,
  { email, wallet, account }: AccountQuery,
  link: Link | null,
): Promise<Holdings | null> {
  const asked = email ?? link?.email;
  const where =
    asked !== undefined
      ? sql`email = ${asked}`
      : wallet !== undefined
        ? sql`wallet = ${wallet}`
        : account !== undefined
          ? sql`id = ${account}`
          : null;
  if (where === null) return null;
  const [row] = await sql<AccountRow<string>[]>`SELECT * FROM accounts WHERE ${where}`;
  return row === undefined ? null : holdingsOf(sql, accountFromRow(row));
}

async function holdingsOf(sql: SQL, account: Account): Promise<Holdings> {
  const balances = await sql<BelongingRow<string>[]>`
    SELECT * FROM balances WHERE account_id = ${account.id} ORDER BY attached_at, id`;
  const claims = await sql<ClaimRow<string>[]>`
    SELECT * FROM claims WHERE account_id = ${account.id} ORDER BY at DESC, balance_id LIMIT ${MOST_CLAIMS}`;
  return holdingsFromRows(account, balances, claims);
}

async function readLink(sql: SQL, hash: SecretHash): Promise<Link | null> {
  const [row] = await sql<LinkRow<string>[]>`
    SELECT email, claimed, expires_at FROM sign_in_links WHERE hash = ${hash}`;
  return row === undefined ? null : linkFromRow(hash, row);
}

async function readMessage(sql: SQL, hash: SecretHash): Promise<IssuedMessage | null> {
  const [row] = await sql<MessageRow<string>[]>`
    SELECT address, chain_id, expires_at FROM wallet_messages WHERE hash = ${hash}`;
  return row === undefined ? null : messageFromRow(hash, row);
}

async function readClaim(sql: SQL, balance: BalanceId): Promise<Claim | null> {
  const [row] = await sql<ClaimRow<string>[]>`SELECT * FROM claims WHERE balance_id = ${balance}`;
  return row === undefined ? null : claimFromRow(row);
}

async function readBelongings(sql: SQL, { balance, recovery }: AccountQuery): Promise<Belongings | null> {
  const where =
    balance !== undefined
      ? sql`id = ${balance}`
      : recovery !== undefined
        ? sql`recovery_hash = ${recovery} OR undo_hash = ${recovery}`
        : null;
  if (where === null) return null;
  const [row] = await sql<BelongingRow<string>[]>`SELECT * FROM balances WHERE ${where}`;
  if (row === undefined) return null;
  const claim = await readClaim(sql, row.id);
  const account = async (id: AccountId) => {
    const [found] = await sql<AccountRow<string>[]>`SELECT * FROM accounts WHERE id = ${id}`;
    return accountFromRow(found!);
  };
  return belongingsFromRow(row, {
    owner: row.account_id === null ? null : await holdingsOf(sql, await account(row.account_id)),
    claim,
    claimant: claim === null ? null : await account(claim.accountId),
  });
}
