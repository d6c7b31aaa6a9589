import type { Inquiry } from "../../ledger/authority.ts";
import { assert } from "../../units/assert.ts";
import type { Clock } from "../../units/clock.ts";
import { changeOfBalance, changeOfKey } from "../changes.ts";
import { endsIn } from "../journal/journal-part.ts";
import { SqlKeyStore } from "../sql/key-store.ts";
import { SqliteAuthority } from "../sqlite/authority.ts";
import { mendsWalReset, openDatabase, sqliteVersion } from "../sqlite/database.ts";
import { LedgerStore } from "../sqlite/ledger-store.ts";
import { LogSync } from "../sqlite/log-sync.ts";
import { NodeLedger } from "../sqlite/node-ledger.ts";
import { SqliteRegistry } from "../sqlite/registry.ts";
import { SqliteStatements } from "../sqlite/statements.ts";
import { Upkeep } from "../sqlite/upkeep.ts";
import type { KeeperAnnouncement, KeeperOperations } from "./operations.ts";
import { performing } from "./rehearsal.ts";
import { SettlementTurns } from "./settlement-turns.ts";

/**
 * The keeper of a SQLite database: the one process that writes it, for the nodes of this machine. Everything is
 * on one connection whose commits are not synced by themselves; what has to be durable is answered after a sync
 * of the database's log, which all that wait for one share.
 */
export function openKeeper({ database, clock, onFault, onLost, announce }: KeeperParts): Keeper {
  const db = openDatabase(database, "NORMAL");
  const log = new LogSync(database, onLost);
  const durable = () => log.durable();
  const registry = new SqliteRegistry(db, clock, () => announce({ kind: "changed" }));
  const recalled = (asker: string, inquiry: Inquiry) => announce({ kind: "recalled", asker, inquiry });
  const authority = new SqliteAuthority(db, clock, () => registry.alive(), recalled);
  const ledger = new LedgerStore(db);
  const upkeep = mendsWalReset(sqliteVersion(db)) ? new Upkeep(database, clock, onFault) : null;
  const turns = new SettlementTurns((batches) => authority.settle(batches), durable, setImmediate);
  const keys = new SqlKeyStore(new SqliteStatements(db, durable), clock);
  return {
    operations: {
      ...registryOperations(registry, durable),
      ...sharedLedgerOperations({ nodes: new NodeLedger(db, ledger), ledger, durable }),
      settle: (statements) => turns.settle(statements),
      async sendHeldQuestion(question) {
        announce({ kind: "held", message: question });
        return registry.others(question.asker);
      },
      sendHeldAnswer: async (message) => announce({ kind: "held", message }),
      retire: async (node, counters) => authority.retire(node, counters),
      inquiries: async (node) => authority.inquiries(node),
      perform: performing(db, registry, durable),
      removeUnused: removing(keys, registry),
      checkpoint: async () => (upkeep ?? ledger).checkpoint(),
      fold: async (before) => (upkeep ?? ledger).fold(before),
    },
    async stop() {
      await upkeep?.close();
      log.close();
      db.close();
    },
  };
}

export interface Keeper {
  readonly operations: KeeperOperations;
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
    lastEpoch: async (node) => registry.lastEpoch(node),
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

const removing =
  (keys: SqlKeyStore, registry: SqliteRegistry): KeeperOperations["removeUnused"] =>
  async (before, from) => {
    const removed = await keys.removeUnused(before, from, { isInUse: () => false, forget() {} });
    const changes = [...removed.keys.map(changeOfKey), ...removed.balances.map(changeOfBalance)];
    return { removed, version: changes.length === 0 ? null : registry.note(changes) };
  };

interface SharedLedgerParts {
  readonly nodes: NodeLedger;
  readonly ledger: LedgerStore;
  readonly durable: () => Promise<void>;
}

function sharedLedgerOperations({ nodes, ledger, durable }: SharedLedgerParts) {
  return {
    // Not synced: nodes keep what they have shipped until there was a checkpoint.
    ship: async (node, epoch, batch) => nodes.ship(node, epoch, batch),
    async shipFrom(folder, node, epoch, places) {
      const reached = nodes.reached(node);
      const ends = places.map(([file, to]) => endsIn(folder, { file, from: reached.get(file) ?? 0, to }));
      if (ends.some((part) => part === null)) return false;
      nodes.ship(
        node,
        epoch,
        ends.flatMap((part) => part ?? []),
      );
      return true;
    },
    reached: async (node) => [...nodes.reached(node)],
    forgetReachedBefore: async (node, file) => nodes.forgetReachedBefore(node, file),
    async credit(credit) {
      // A balance that nobody ever used may have been removed since it was looked up.
      assert(ledger.hasBalance(credit.balanceId), `credit for ${credit.balanceId}, which does not exist`);
      const done = ledger.credit(credit);
      await durable();
      return done;
    },
    async debit(debit) {
      const done = nodes.debit(debit);
      await durable();
      return done;
    },
    async decideClaim(claim, at) {
      const lost = nodes.decideClaim(claim, at);
      await durable();
      return lost;
    },
  } satisfies Partial<KeeperOperations>;
}
