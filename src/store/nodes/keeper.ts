import type { Inquiry } from "../../ledger/authority.ts";
import type { Clock } from "../../units/clock.ts";
import { LogSync } from "../database/log-sync.ts";
import { openDatabase } from "../database/sqlite.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { maintenanceOf } from "../database/sqlite-maintenance.ts";
import { endsIn } from "../journal/journal-part.ts";
import { SqliteAuthority } from "../ledger/grants.ts";
import { SqliteLedgerStore } from "../ledger/sqlite-ledger-store.ts";
import type { KeeperAnnouncement, KeeperOperations } from "./keeper-operations.ts";
import { SqliteRegistry } from "./sqlite-registry.ts";

/**
 * The keeper of a SQLite database: the one process that writes it, for the nodes of this machine. Everything is
 * on one connection whose commits are not synced by themselves; what has to be durable is answered after a sync
 * of the database's log, which all that wait for one share.
 */
export function openKeeper({ database: path, clock, onFault, onLost, announce }: KeeperParts): Keeper {
  const db = openDatabase(path, "NORMAL");
  const log = new LogSync(path, onLost);
  const durable = () => log.durable();
  const registry = new SqliteRegistry(db, clock, () => announce({ kind: "changed" }));
  const recalled = (asker: string, inquiry: Inquiry) => announce({ kind: "recalled", asker, inquiry });
  const authority = new SqliteAuthority(db, clock, () => registry.alive(), recalled);
  const database = new SqliteDatabase(db, durable);
  const maintenance = maintenanceOf(db, path, clock, onFault);
  const ledger = new SqliteLedgerStore(database, { slowWork: maintenance });
  return {
    operations: {
      ...registryOperations(registry, durable),
      ...shippingOperations(ledger),
      async settle(statements) {
        const grants = authority.settle(statements);
        // A grant that a power cut made undone would be given to another, and spent twice.
        await durable();
        return grants;
      },
      async sendHeldQuestion(question) {
        announce({ kind: "held", message: question });
        return registry.others(question.asker);
      },
      sendHeldAnswer: async (message) => announce({ kind: "held", message }),
      commit: committing(database, registry, durable),
      checkpoint: () => ledger.checkpoint(),
      fold: (before) => ledger.fold(before),
    },
    ledger,
    async stop() {
      await maintenance?.close();
      log.close();
      db.close();
    },
  };
}

export interface Keeper {
  readonly operations: KeeperOperations;
  readonly ledger: SqliteLedgerStore;
  stop(): Promise<void>;
}

export interface KeeperParts {
  /** The path of SQLite's file. */
  readonly database: string;
  readonly clock: Clock;
  readonly onFault: (error: unknown) => void;
  /** The log could not be synced: only another process may go on. */
  readonly onLost: (error: Error) => void;
  /** Tells every node. */
  readonly announce: (announcement: KeeperAnnouncement) => void;
}

function registryOperations(registry: SqliteRegistry, durable: () => Promise<void>) {
  return {
    async join(node) {
      const life = registry.join(node);
      await durable();
      return life;
    },
    renew: async (node, epoch, seen) => registry.renew(node, epoch, seen),
    unseen: async (version) => registry.unseen(version),
    leave: async (node, epoch) => registry.leave(node, epoch),
    recall: async (balance, counters) => registry.recall(balance, counters),
    list: async () => registry.list(),
    async close(node) {
      const closed = registry.close(node);
      await durable();
      return closed;
    },
  } satisfies Partial<KeeperOperations>;
}

export const committing =
  (
    database: SqliteDatabase,
    registry: Pick<SqliteRegistry, "note">,
    durable: () => Promise<void>,
  ): KeeperOperations["commit"] =>
  async (statements, changes) => {
    const rows = database.commitNow(statements);
    if (rows === null) return null;
    await durable();
    return { rows, version: changes.length === 0 ? null : registry.note(changes) };
  };

function shippingOperations(ledger: SqliteLedgerStore) {
  return {
    // Not synced: nodes keep what they have shipped until there was a checkpoint.
    ship: (node, epoch, batch) => ledger.ship(node, epoch, batch),
    async shipFrom(folder, node, epoch, offsets) {
      const reached = await ledger.reached(node);
      const ends = offsets.map(([file, to]) => endsIn(folder, { file, from: reached.get(file) ?? 0, to }));
      if (ends.some((part) => part === null)) return false;
      const batch = ends.flatMap((part) => part ?? []);
      await ledger.ship(node, epoch, batch);
      return true;
    },
  } satisfies Partial<KeeperOperations>;
}
