import type { Database } from "bun:sqlite";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { Balance, Key } from "../../keys/key.ts";
import type {
  BalanceCursor,
  BudgetChange,
  BudgetDecision,
  ChangedKey,
  InUseHere,
  KeyDecision,
  NewKeyDecision,
  Suspended,
  SuspensionRecord,
} from "../../keys/key-store.ts";
import { NO_OTHERS, type RunChange, type RunDecision } from "../../keys/run.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { type RemovedWithKeys, SqliteKeyStore } from "../sqlite/key-store.ts";
import type { KeeperOperations, Noted } from "./operations.ts";
import { decideWith } from "./proposal.ts";

/** Keys, balances and budgets for a node: read in the database, and changed by its keeper. */
export class KeeperKeyStore extends SqliteKeyStore {
  constructor(
    db: Database,
    clock: Pick<Clock, "now">,
    private readonly keeper: KeeperOperations,
    private readonly acknowledged: (version: number) => Promise<void>,
  ) {
    super(db, clock);
  }

  override addBalance(balance: Balance, recovery: SecretHash, key: Key): Promise<void> {
    return this.keeper.addBalance(balance, recovery, key);
  }

  override async addKey(balance: BalanceId, decide: NewKeyDecision): Promise<Key | Refusal> {
    const done = await decideWith((proposal) => this.keeper.addKey(balance, proposal), decide);
    return refused(done) ? done : this.noticed(done);
  }

  override async changeKey(id: KeyId, decide: KeyDecision): Promise<ChangedKey | Refusal> {
    const done = await decideWith((proposal) => this.keeper.changeKey(id, proposal), decide);
    return refused(done) ? done : this.noticed(done);
  }

  override async changeBudgets(balance: BalanceId, decide: BudgetDecision): Promise<BudgetChange | Refusal> {
    const done = await decideWith<BudgetChange>(
      (proposal) => this.keeper.changeBudgets(balance, proposal),
      (withBudgets, uses) => decide(withBudgets, new Map(uses)),
    );
    return refused(done) ? done : this.noticed(done);
  }

  override async changeRun(
    balance: BalanceId,
    name: string,
    decide: RunDecision,
  ): Promise<RunChange | Refusal> {
    // One that is used as it is, as nearly always, is no change.
    const seen = await this.run(balance, name);
    const decided = seen === null ? null : decide(seen, NO_OTHERS);
    if (decided !== null && (refused(decided) || !decided.isWritten)) return decided;
    const done = await decideWith((proposal) => this.keeper.changeRun(balance, name, proposal), decide);
    return refused(done) ? done : this.noticed(done);
  }

  override async secretsSaved(balance: BalanceId, at: EpochMs): Promise<EpochMs> {
    return this.noticed(await this.keeper.secretsSaved(balance, at));
  }

  override async suspend(suspension: SuspensionRecord): Promise<Suspended | null> {
    return this.noticed(await this.keeper.suspend(suspension));
  }

  override async removeUnused(
    before: EpochMs,
    from: BalanceCursor,
    here: InUseHere,
  ): Promise<RemovedWithKeys> {
    const removed = await this.keeper.removeUnused(before, from);
    here.forget(removed.result.keys, removed.result.balances);
    return this.noticed(removed);
  }

  /** Resolves when no node acts on what was before. */
  private async noticed<Result>({ result, version }: Noted<Result>): Promise<Result> {
    if (version !== null) await this.acknowledged(version);
    return result;
  }
}
