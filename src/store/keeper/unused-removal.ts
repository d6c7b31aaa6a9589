import type { Database } from "bun:sqlite";
import { servingCounters } from "../../ledger/counter.ts";
import type { Clock } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import { changeOfBalance, changeOfKey } from "../changes.ts";
import { SqliteKeyStore } from "../sqlite/key-store.ts";
import type { SqliteRegistry } from "../sqlite/registry.ts";
import type { KeeperOperations } from "./operations.ts";

/** Removes what was never used, for all nodes. */
export function unusedRemoval(parts: RemovalParts): KeeperOperations["removeUnused"] {
  const { db, durable, clock, registry } = parts;
  const keys = new SqliteKeyStore(db, clock, durable);
  const isInUse = usedBalances(parts);
  return async (before, from) => {
    const removed = await keys.removeUnused(before, from, { isInUse, forget() {} });
    const changes = [...removed.keys.map(changeOfKey), ...removed.balances.map(changeOfBalance)];
    return { removed, version: changes.length === 0 ? null : registry.note(changes) };
  };
}

interface RemovalParts {
  readonly db: Database;
  readonly durable: () => Promise<void>;
  readonly clock: Clock;
  readonly registry: SqliteRegistry;
}

/** Whether some node may be serving the balance. */
function usedBalances({ db, clock }: RemovalParts): (id: BalanceId) => boolean {
  const owner = db.query<{ account_id: AccountId | null }, [string]>(
    "SELECT account_id FROM balances WHERE id = ?",
  );
  const chains = db.query<{ lineage: KeyId }, [string]>(
    "SELECT DISTINCT lineage FROM keys WHERE balance_id = ?",
  );
  const granted = db.query<object, [string]>(
    "SELECT 1 FROM grants WHERE counter IN (SELECT value FROM json_each(?)) AND granted > shipped LIMIT 1",
  );
  return (id) => {
    const rotations = chains.all(id).map(({ lineage }) => lineage);
    const account = owner.get(id)?.account_id ?? null;
    return granted.get(JSON.stringify(servingCounters(id, account, rotations, clock.now()))) !== null;
  };
}
