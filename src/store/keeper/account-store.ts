import type { AccountChange, AccountQuery, AccountState } from "../../accounts/account-store.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { Clock } from "../../units/clock.ts";
import type { AccountId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { SqlAccountStore } from "../sql/account-store.ts";
import type { SqlDatabase } from "../sql/statement.ts";
import type { KeeperOperations } from "./operations.ts";
import { decideWith } from "./proposal.ts";

/** Accounts for a node: read in the database, and changed by its keeper. */
export class KeeperAccountStore extends SqlAccountStore {
  constructor(
    db: SqlDatabase,
    clock: Pick<Clock, "now">,
    private readonly keeper: KeeperOperations,
    private readonly acknowledged: (version: number) => Promise<void>,
  ) {
    super(db, clock);
  }

  override async change<C extends AccountChange>(
    about: AccountQuery,
    decide: (state: AccountState) => C | Refusal,
  ): Promise<C | Refusal> {
    const done = await decideWith((proposal) => this.keeper.changeAccount(about, proposal), decide);
    if (refused(done)) return done;
    if (done.version !== null) await this.acknowledged(done.version);
    return done.result as C;
  }

  override endSession(hash: SecretHash): Promise<void> {
    return this.keeper.endSession(hash);
  }

  override endSessions(account: AccountId): Promise<number> {
    return this.keeper.endSessions(account);
  }
}
