import { Database } from "bun:sqlite";
import type { MarkChange } from "../../accounts/low-credit.ts";
import { balanceCounter } from "../../ledger/counter.ts";
import type { BookkeepingParts } from "../books/bookkeeping.ts";
import { journalBooks, journalFolder } from "../books/bookkeeping-node.ts";
import type { NodeStore, SharedLedgerStore } from "../books/node-store.ts";
import { places } from "../journal/journal.ts";
import type { ShippedEnds } from "../journal/node-books.ts";
import { SqlLowCreditStore } from "../sql/low-credit-store.ts";
import { SqlSigningKeyStore } from "../sql/signing-key-store.ts";
import type { SqlDatabase } from "../sql/statement.ts";
import { LedgerStore } from "../sqlite/ledger-store.ts";
import { NodeLedger } from "../sqlite/node-ledger.ts";
import { SqliteStatements } from "../sqlite/statements.ts";
import { StatementQueue } from "../statement-queue.ts";
import { KeeperAccountStore } from "./account-store.ts";
import { KeeperKeyStore } from "./key-store.ts";
import type { KeeperLink } from "./link.ts";
import type { KeeperOperations } from "./operations.ts";
import { KeeperPaymentStore } from "./payment-store.ts";

/** The store of a node whose database is kept by another process. */
export function keeperNodeStore({ folder, clock }: NodeStoreParts, link: KeeperLink): NodeStore {
  const { keeper } = link;
  const db = new Database(folder.databasePath, { readonly: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
  const read = new SqliteStatements(db);
  const { lowCredit, signingKeys } = markedStores(read, keeper);
  const statements = new StatementQueue((some) => keeper.settle(some), setImmediate);
  return {
    registry: keeper,
    authority: {
      settle: (statement) => statements.settle(statement),
      retire: keeper.retire,
      inquiries: keeper.inquiries,
    },
    ledger: sharedLedger(db, keeper),
    lowCredit,
    payments: new KeeperPaymentStore(read, clock, keeper),
    signingKeys,
    usagePath: folder.databasePath,
    keys: (acknowledged) => new KeeperKeyStore(db, clock, keeper, acknowledged),
    accounts: (acknowledged) => new KeeperAccountStore(read, clock, keeper, acknowledged),
    openBooks: async (parts, node) =>
      journalBooks(parts, shippedTo(keeper, journalFolder(parts.folder)), node, await keeper.lastEpoch(node)),
    join: keeper.join,
    listen: ({ changed, recalled }) =>
      link.listen((announcement) =>
        announcement.said === "changed" ? changed() : recalled(announcement.asker, announcement.inquiry),
      ),
    lookAfterOthers: () => () => {},
    async close() {
      link.close();
      db.close();
    },
  };
}

export interface NodeStoreParts extends Pick<BookkeepingParts, "clock"> {
  readonly folder: Pick<BookkeepingParts["folder"], "databasePath">;
}

/**
 * The journal in this folder is told by its places: the keeper reads it itself, which costs the node less than sending what
 * is in it. What was damaged there since is still in the node's memory, and is sent.
 */
export const shippedTo = (keeper: KeeperOperations, journal: string): ShippedEnds => ({
  async ship(node, epoch, batch) {
    const isRead = await keeper.shipFrom(journal, node, epoch, [...places(batch)]);
    if (!isRead) await keeper.ship(node, epoch, batch);
  },
  reached: async (node: string) => new Map(await keeper.reached(node)),
  mayForget: keeper.checkpoint,
  forgetReachedBefore: keeper.forgetReachedBefore,
});

function sharedLedger(db: Database, keeper: KeeperOperations): SharedLedgerStore {
  const store = new LedgerStore(db);
  const nodes = new NodeLedger(db, store);
  return {
    spent: async (id) => store.spent(id),
    balance: async (id) => ({ credited: store.credited(id), spent: store.spent(balanceCounter(id)) }),
    credit: keeper.credit,
    debit: keeper.debit,
    entry: async (idempotencyKey) => store.entry(idempotencyKey),
    credits: async (balance, limit) => store.credits(balance, limit),
    receipt: async (id) => store.receipt(id),
    receipts: async (balance, filter, limit, before) => store.receipts(balance, filter, limit, before),
    fold: keeper.fold,
    audit: async () => store.audit(),
    shipped: async (node) => nodes.shipped(node),
  };
}

function markedStores(
  db: SqlDatabase,
  keeper: KeeperOperations,
): Pick<NodeStore, "lowCredit" | "signingKeys"> {
  const lowCredit = new SqlLowCreditStore(db);
  const signingKeys = new SqlSigningKeyStore(db);
  return {
    lowCredit: {
      watched: (after) => lowCredit.watched(after),
      async mark<C extends MarkChange>(changes: readonly C[]) {
        return (await keeper.mark(changes)).map((place) => changes[place]!);
      },
    },
    signingKeys: { list: () => signingKeys.list(), add: keeper.addSigningKey },
  };
}

/** Readers wait for nobody but a database that is being recovered. */
const WAIT_MS = 5_000;
