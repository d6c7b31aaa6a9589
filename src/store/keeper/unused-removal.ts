import type { Database } from "bun:sqlite";
import type { Clock } from "../../units/clock.ts";
import { changeOfBalance, changeOfKey } from "../changes.ts";
import { SqlKeyStore } from "../sql/key-store.ts";
import type { SqliteRegistry } from "../sqlite/registry.ts";
import { SqliteStatements } from "../sqlite/statements.ts";
import type { KeeperOperations } from "./operations.ts";

/** Removes what was never used, for all nodes. */
export function unusedRemoval({
  db,
  durable,
  clock,
  registry,
}: RemovalParts): KeeperOperations["removeUnused"] {
  const keys = new SqlKeyStore(new SqliteStatements(db, durable), clock);
  return async (before, from) => {
    const removed = await keys.removeUnused(before, from, { isInUse: () => false, forget() {} });
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
