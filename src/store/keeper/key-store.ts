import type { BalanceCursor, InUseHere, RemovedUnused } from "../../customers/keys/key-store.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import { SqlKeyStore } from "../sql/key-store.ts";
import type { KeeperDatabase } from "./database.ts";
import type { KeeperOperations } from "./operations.ts";

/** Keys, balances and budgets for a node, of which its keeper removes the unused: it knows what all nodes use. */
export class KeeperKeyStore extends SqlKeyStore {
  constructor(
    private readonly database: KeeperDatabase,
    clock: Pick<Clock, "now">,
    private readonly keeper: Pick<KeeperOperations, "removeUnused">,
  ) {
    super(database, clock);
  }

  override async removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedUnused> {
    const { removed, version } = await this.keeper.removeUnused(before, from);
    here.forget(removed.keys, removed.balances);
    if (version !== null) await this.database.acknowledged(version);
    return removed;
  }
}
