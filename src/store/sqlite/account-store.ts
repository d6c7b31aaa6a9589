import type { Database } from "bun:sqlite";
import type { Account, Holdings, Session } from "../../accounts/account.ts";
import type {
  AccountChange,
  AccountQuery,
  AccountState,
  AccountStore,
  Belongings,
  Link,
} from "../../accounts/account-store.ts";
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

/**
 * Accounts, sessions, sign-in links and claims in SQLite. A change is one immediate transaction, and
 * durable when its promise resolves. What has expired is deleted whenever something of its kind is added, so that nothing a stranger may
 * cause stays for good.
 */
export class SqliteAccountStore implements AccountStore {
  private readonly statements;

  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, "now">,
    /** Where the connection does not sync at commit: resolves once what was committed is durable. */
    private readonly durable: () => Promise<void> = async () => {},
  ) {
    this.statements = prepare(db);
  }

  async change<C extends AccountChange>(
    about: AccountQuery,
    decide: (state: AccountState) => C | Refusal,
  ): Promise<C | Refusal> {
    const changed = this.db
      .transaction(() => {
        const decided = decide(this.state(about));
        if (refused(decided)) return decided;
        if (about.link !== undefined) this.statements.dropLink.run(about.link);
        if (about.message !== undefined) this.statements.dropMessage.run(about.message);
        this.write(decided);
        return decided;
      })
      .immediate();
    if (!refused(changed)) await this.durable();
    return changed;
  }

  async holdings(about: AccountQuery): Promise<Holdings | null> {
    return this.readHoldings(about, null);
  }

  async accounts(ids: readonly AccountId[]): Promise<readonly Account[]> {
    return this.statements.byIds.all(JSON.stringify(ids)).map(accountFromRow);
  }

  async message(hash: SecretHash): Promise<IssuedMessage | null> {
    return this.readMessage(hash);
  }

  async session(hash: SecretHash): Promise<(Holdings & { readonly expiresAt: EpochMs }) | null> {
    const row = this.statements.session.get(hash);
    if (row === null) return null;
    const { expires_at, ...account } = row;
    return { ...this.holdingsOf(accountFromRow(account)), expiresAt: expires_at };
  }

  async sessions(account: AccountId): Promise<readonly Session[]> {
    return this.statements.sessionsOf.all(account, this.clock.now());
  }

  async endSession(hash: SecretHash): Promise<void> {
    this.statements.endSession.run(hash);
    await this.durable();
  }

  async endSessions(account: AccountId): Promise<number> {
    const { changes } = this.statements.endSessions.run(account);
    await this.durable();
    return changes;
  }

  async belonging(balance: BalanceId): Promise<Belongings | null> {
    return this.belongings(this.statements.balance.get(balance));
  }

  async link(hash: SecretHash): Promise<Link | null> {
    return this.readLink(hash);
  }

  private state(about: AccountQuery): AccountState {
    const link = about.link === undefined ? null : this.readLink(about.link);
    const mailbox = about.mailbox ?? about.email;
    return {
      link,
      message: about.message === undefined ? null : this.readMessage(about.message),
      liveLinks: this.statements.liveLinks.get(mailbox ?? "", this.clock.now())!,
      holdings: this.readHoldings(about, link),
      balance: this.belongings(this.balanceRow(about)),
    };
  }

  private readHoldings({ email, wallet, account }: AccountQuery, link: Link | null): Holdings | null {
    const asked = email ?? link?.email;
    const row =
      asked !== undefined
        ? this.statements.byEmail.get(asked)
        : wallet !== undefined
          ? this.statements.byWallet.get(wallet)
          : account !== undefined
            ? this.statements.byId.get(account)
            : null;
    return row === null ? null : this.holdingsOf(accountFromRow(row));
  }

  private holdingsOf(account: Account): Holdings {
    const { balancesOf, claimsOf } = this.statements;
    return holdingsFromRows(account, balancesOf.all(account.id), claimsOf.all(account.id, MOST_CLAIMS));
  }

  private readLink(hash: SecretHash): Link | null {
    const row = this.statements.link.get(hash);
    return row === null ? null : linkFromRow(hash, row);
  }

  private readMessage(hash: SecretHash): IssuedMessage | null {
    const row = this.statements.message.get(hash);
    return row === null ? null : messageFromRow(hash, row);
  }

  private balanceRow({ balance, recovery }: AccountQuery): BelongingRow<number> | null {
    const { statements } = this;
    if (balance !== undefined) return statements.balance.get(balance);
    return recovery === undefined ? null : statements.balanceByRecovery.get(recovery);
  }

  private belongings(row: BelongingRow<number> | null): Belongings | null {
    if (row === null) return null;
    const claim = this.statements.claim.get(row.id);
    const account = (id: AccountId) => accountFromRow(this.statements.byId.get(id)!);
    return belongingsFromRow(row, {
      owner: row.account_id === null ? null : this.holdingsOf(account(row.account_id)),
      claim: claim === null ? null : claimFromRow(claim),
      claimant: claim === null ? null : account(claim.account_id),
    });
  }

  private write({
    account,
    balance,
    attach = [],
    detach = [],
    close = [],
    recovery,
    erase,
    claim,
    decline,
    session,
    link,
    message,
  }: AccountChange): void {
    const { statements } = this;
    if (account !== undefined) {
      const { id, email, wallet, createdAt, provedAt } = account;
      statements.putAccount.run(id, email, wallet, createdAt, provedAt);
      if (balance !== undefined)
        statements.addBalance.run(balance.id, id, balance.createdAt, balance.createdAt);
      for (const one of attach) this.attach(one, id);
      for (const one of detach) {
        statements.revokeMadeBy.run(one, id);
        statements.detach.run(one, id);
      }
      if (session !== undefined) this.addSession(session, id);
    }
    if (claim !== undefined) statements.putClaim.run(claim.balanceId, claim.accountId, claim.at);
    if (decline !== undefined) statements.dropClaim.run(decline);
    for (const one of close) this.close(one);
    if (recovery !== undefined) statements.putRecovery.run(recovery.hash, recovery.undo, recovery.balance);
    if (erase) this.erase(account!);
    if (link !== undefined) this.addLink(link);
    if (message !== undefined) this.addMessage(message);
  }

  private close(balance: BalanceId): void {
    this.statements.revokeKeys.run(balance);
    this.statements.close.run(this.clock.now(), balance);
  }

  private erase({ id, email, wallet }: Account): void {
    const { erase, endSessions, dropClaimsFor, dropLinksTo, dropMessagesOf } = this.statements;
    erase.run(this.clock.now(), id);
    endSessions.run(id);
    dropClaimsFor.run(id);
    if (email !== null) dropLinksTo.run(email);
    if (wallet !== null) dropMessagesOf.run(wallet);
  }

  private attach(balance: BalanceId, account: AccountId): void {
    this.statements.dropClaim.run(balance);
    const { changes } = this.statements.attach.run(account, this.clock.now(), balance);
    assert(changes === 1, `${balance} belongs to an account already`);
  }

  private addSession({ hash, expiresAt }: Session, account: AccountId): void {
    this.statements.dropEndedSessions.run(this.clock.now());
    this.statements.addSession.run(hash, account, expiresAt);
    this.statements.dropOldestSessions.run(account, MOST_SESSIONS);
  }

  private addLink({ hash, email, claimed, expiresAt }: Link): void {
    this.statements.dropEndedLinks.run(this.clock.now());
    this.statements.addLink.run(hash, email, claimed, expiresAt);
  }

  private addMessage({ hash, address, chainId, expiresAt }: IssuedMessage): void {
    this.statements.dropEndedMessages.run(this.clock.now());
    this.statements.addMessage.run(hash, address, chainId, expiresAt);
  }
}

const ACCOUNT_COLUMNS = ["id", "email", "wallet", "suspended", "created_at", "proved_at", "deleted_at"]
  .map((column) => `a.${column}`)
  .join(", ");

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of statements.
function prepare(db: Database) {
  return {
    byId: db.query<AccountRow<number>, [string]>(`SELECT ${ACCOUNT_COLUMNS} FROM accounts a WHERE id = ?`),
    byIds: db.query<AccountRow<number>, [string]>(
      `SELECT ${ACCOUNT_COLUMNS} FROM accounts a WHERE id IN (SELECT value FROM json_each(?))`,
    ),
    byEmail: db.query<AccountRow<number>, [string]>(
      `SELECT ${ACCOUNT_COLUMNS} FROM accounts a WHERE email = ?`,
    ),
    byWallet: db.query<AccountRow<number>, [string]>(
      `SELECT ${ACCOUNT_COLUMNS} FROM accounts a WHERE wallet = ?`,
    ),
    putAccount: db.query<never, [string, string | null, string | null, number, number | null]>(
      `INSERT INTO accounts (id, email, wallet, created_at, proved_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET proved_at = excluded.proved_at`,
    ),
    balance: db.query<BelongingRow<number>, [string]>("SELECT * FROM balances WHERE id = ?"),
    balanceByRecovery: db.query<BelongingRow<number>, [string]>(
      "SELECT * FROM balances WHERE recovery_hash = ?1 OR undo_hash = ?1",
    ),
    balancesOf: db.query<BelongingRow<number>, [string]>(
      "SELECT * FROM balances WHERE account_id = ? ORDER BY attached_at, id",
    ),
    addBalance: db.query<never, [string, string, number, number]>(
      "INSERT INTO balances (id, account_id, created_at, attached_at) VALUES (?, ?, ?, ?)",
    ),
    // Later than all others of the account, whatever the clock says: the first must stay the first.
    attach: db.query<never, [string, number, string]>(
      `UPDATE balances SET account_id = ?1, claimed_at = ?2, attached_at =
         max(?2, coalesce((SELECT max(attached_at) + 1 FROM balances WHERE account_id = ?1), 0))
       WHERE id = ?3 AND account_id IS NULL`,
    ),
    detach: db.query<never, [string, string]>(
      `UPDATE balances SET account_id = NULL, attached_at = NULL, claimed_at = NULL,
         recovery_hash = coalesce(undo_hash, recovery_hash), undo_hash = NULL
       WHERE id = ? AND account_id = ?`,
    ),
    claim: db.query<ClaimRow<number>, [string]>("SELECT * FROM claims WHERE balance_id = ?"),
    claimsOf: db.query<ClaimRow<number>, [string, number]>(
      "SELECT * FROM claims WHERE account_id = ? ORDER BY at DESC, balance_id LIMIT ?",
    ),
    putClaim: db.query<never, [string, string, number]>(
      "INSERT OR REPLACE INTO claims (balance_id, account_id, at) VALUES (?, ?, ?)",
    ),
    dropClaim: db.query<never, [string]>("DELETE FROM claims WHERE balance_id = ?"),
    session: db.query<AccountRow<number> & { expires_at: EpochMs }, [string]>(
      `SELECT ${ACCOUNT_COLUMNS}, s.expires_at FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.hash = ?`,
    ),
    addSession: db.query<never, [string, string, number]>(
      "INSERT INTO sessions (hash, account_id, expires_at) VALUES (?, ?, ?)",
    ),
    sessionsOf: db.query<Session, [string, number]>(
      `SELECT hash, expires_at AS expiresAt FROM sessions
       WHERE account_id = ? AND expires_at > ? ORDER BY expires_at DESC`,
    ),
    endSessions: db.query<never, [string]>("DELETE FROM sessions WHERE account_id = ?"),
    revokeKeys: db.query<never, [string]>(
      "UPDATE keys SET state = 'revoked' WHERE balance_id = ? AND state <> 'revoked'",
    ),
    revokeMadeBy: db.query<never, [string, string]>(
      "UPDATE keys SET state = 'revoked' WHERE balance_id = ? AND made_by = ? AND state <> 'revoked'",
    ),
    close: db.query<never, [number, string]>(
      "UPDATE balances SET closed_at = ?, recovery_hash = NULL, undo_hash = NULL WHERE id = ?",
    ),
    putRecovery: db.query<never, [string, string | null, string]>(
      "UPDATE balances SET recovery_hash = ?, undo_hash = ? WHERE id = ?",
    ),
    erase: db.query<never, [number, string]>(
      "UPDATE accounts SET email = NULL, wallet = NULL, deleted_at = ? WHERE id = ?",
    ),
    dropClaimsFor: db.query<never, [string]>("DELETE FROM claims WHERE account_id = ?"),
    dropLinksTo: db.query<never, [string]>("DELETE FROM sign_in_links WHERE email = ?"),
    dropMessagesOf: db.query<never, [string]>("DELETE FROM wallet_messages WHERE address = ?"),
    endSession: db.query<never, [string]>("DELETE FROM sessions WHERE hash = ?"),
    dropEndedSessions: db.query<never, [number]>("DELETE FROM sessions WHERE expires_at <= ?"),
    dropOldestSessions: db.query<never, [string, number]>(
      `DELETE FROM sessions WHERE hash IN
         (SELECT hash FROM sessions WHERE account_id = ? ORDER BY expires_at DESC LIMIT -1 OFFSET ?)`,
    ),
    link: db.query<LinkRow<number>, [string]>(
      "SELECT email, claimed, expires_at FROM sign_in_links WHERE hash = ?",
    ),
    liveLinks: db.query<{ signIn: number; claim: number }, [string, number]>(
      `SELECT count(*) - count(claimed) AS signIn, count(claimed) AS claim
       FROM sign_in_links WHERE email = ? AND expires_at > ?`,
    ),
    addLink: db.query<never, [string, string, string | null, number]>(
      "INSERT INTO sign_in_links (hash, email, claimed, expires_at) VALUES (?, ?, ?, ?)",
    ),
    dropLink: db.query<never, [string]>("DELETE FROM sign_in_links WHERE hash = ?"),
    dropEndedLinks: db.query<never, [number]>("DELETE FROM sign_in_links WHERE expires_at <= ?"),
    message: db.query<MessageRow<number>, [string]>(
      "SELECT address, chain_id, expires_at FROM wallet_messages WHERE hash = ?",
    ),
    addMessage: db.query<never, [string, string, number, number]>(
      "INSERT INTO wallet_messages (hash, address, chain_id, expires_at) VALUES (?, ?, ?, ?)",
    ),
    dropMessage: db.query<never, [string]>("DELETE FROM wallet_messages WHERE hash = ?"),
    dropEndedMessages: db.query<never, [number]>("DELETE FROM wallet_messages WHERE expires_at <= ?"),
  };
}
