import { Database } from "bun:sqlite";
import type { Statement } from "../../ledger/authority.ts";
import { balanceCounter } from "../../ledger/counter.ts";
import { BatchQueue } from "../batch-queue.ts";
import type { BookkeepingParts } from "../books/bookkeeping.ts";
import { journalBooks, journalFolder } from "../books/bookkeeping-node.ts";
import type { NodeStore, SharedLedgerStore } from "../books/node-store.ts";
import { places } from "../journal/journal.ts";
import type { ShippedEnds } from "../journal/node-books.ts";
import { SqlAccountStore } from "../sql/account-store.ts";
import { sqlStores } from "../sql/stores.ts";
import { LedgerStore } from "../sqlite/ledger-store.ts";
import { NodeLedger } from "../sqlite/node-ledger.ts";
import { KeeperDatabase } from "./database.ts";
import { KeeperKeyStore } from "./key-store.ts";
import type { KeeperLink } from "./link.ts";
import type { KeeperOperations } from "./operations.ts";

/** The store of a node whose database is kept by another process. */
export function keeperNodeStore({ folder, clock }: NodeStoreParts, link: KeeperLink): NodeStore {
  const { keeper } = link;
  const db = new Database(folder.databasePath, { readonly: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
  const statements = new BatchQueue((some: readonly Statement[]) => keeper.settle(some), setImmediate);
  return {
    registry: keeper,
    authority: {
      settle: (statement) => statements.request(statement),
      retire: keeper.retire,
      inquiries: keeper.inquiries,
    },
    ledger: sharedLedger(db, keeper),
    held: { sendQuestion: keeper.sendHeldQuestion, sendAnswer: keeper.sendHeldAnswer },
    ...sqlStores(new KeeperDatabase(db, keeper), clock),
    usagePath: folder.databasePath,
    keys: (acknowledged) => new KeeperKeyStore(new KeeperDatabase(db, keeper, acknowledged), clock, keeper),
    accounts: (acknowledged) => new SqlAccountStore(new KeeperDatabase(db, keeper, acknowledged), clock),
    openBooks: async (parts, node) =>
      journalBooks(parts, shippedTo(keeper, journalFolder(parts.folder)), node, await keeper.lastEpoch(node)),
    join: keeper.join,
    listen: ({ changed, recalled, held }) =>
      link.listen((announcement) => {
        if (announcement.kind === "changed") changed();
        else if (announcement.kind === "held") held(announcement.message);
        else recalled(announcement.asker, announcement.inquiry);
      }),
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
    claims: async (after, limit) => store.claims(after, limit),
    decideClaim: keeper.decideClaim,
    entry: async (idempotencyKey) => store.entry(idempotencyKey),
    credits: async (balance, limit) => store.credits(balance, limit),
    receipt: async (id) => store.receipt(id),
    receipts: async (balance, filter, limit, before) => store.receipts(balance, filter, limit, before),
    fold: keeper.fold,
    audit: async () => store.audit(),
    shipped: async (node) => nodes.shipped(node),
  };
}

/** Readers wait for nobody but a database that is being recovered. */
const WAIT_MS = 5_000;
