import { type Database as Connection, Database } from "bun:sqlite";
import { dirname } from "node:path";
import { LATE_MS } from "../../ledger/authority.ts";
import { type Bookkeeping, type BookkeepingParts, sqlStores } from "../books/bookkeeping.ts";
import { journalBooks, journalFolder, openNodeBooks } from "../books/bookkeeping-node.ts";
import { SqlAccountStore } from "../customers/account-store.ts";
import { SqlKeyStore } from "../customers/key-store.ts";
import { keeperSocketPath } from "../data-folder.ts";
import { type CommitOptions, type CommitStatement, type Committed, sql } from "../database/database.ts";
import { SqliteDatabase, writtenFor } from "../database/sqlite-database.ts";
import type { EndStore } from "../journal/books.ts";
import { fileOffsets } from "../journal/journal.ts";
import { NodeAuthority } from "../ledger/grants.ts";
import { SqliteLedgerStore } from "../ledger/sqlite-ledger-store.ts";
import { KeeperLink } from "./keeper-link.ts";
import type { KeeperOperations } from "./keeper-operations.ts";
import type { NodeStore } from "./node-store.ts";

/** The store of a node whose database is kept by another process. */
export function keeperNodeStore({ folder, clock }: NodeStoreParts, link: KeeperLink): NodeStore {
  const { keeper } = link;
  const db = new Database(folder.databasePath, { readonly: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
  const database = new KeeperDatabase(db, keeper);
  const ledger = new KeeperLedgerStore(database, keeper);
  return {
    registry: keeper,
    authority: new NodeAuthority(database, keeper.settle, () => sql`${clock.now() - LATE_MS}`),
    ledger,
    held: { sendQuestion: keeper.sendHeldQuestion, sendAnswer: keeper.sendHeldAnswer },
    stores: sqlStores(database, clock),
    usagePath: folder.databasePath,
    keys: (acknowledged) => new SqlKeyStore(new KeeperDatabase(db, keeper, acknowledged), clock),
    accounts: (acknowledged) => new SqlAccountStore(new KeeperDatabase(db, keeper, acknowledged), clock),
    openBooks: (parts, node) => journalBooks(parts, ledger.shippedFrom(journalFolder(parts.folder), node)),
    join: keeper.join,
    listen: (onNotice) => link.listen(onNotice),
    serveOthers: () => () => {},
    async close() {
      link.close();
      db.close();
    },
  };
}

export interface NodeStoreParts extends Pick<BookkeepingParts, "clock"> {
  readonly folder: Pick<BookkeepingParts["folder"], "databasePath">;
}

/** The books of which a node reads everything itself, but its keeper writes what many lines do at once. */
export class KeeperLedgerStore extends SqliteLedgerStore {
  constructor(
    db: SqliteDatabase,
    private readonly keeper: Pick<KeeperOperations, "fold" | "ship" | "shipFrom" | "checkpoint">,
  ) {
    super(db, { slowWork: keeper });
  }

  /**
   * Where the ends of a node's journal in this folder are booked. The keeper gets offsets and reads the journal itself, which
   * costs the node less than sending what is in it. What was damaged there since is still in the node's memory, and is sent.
   */
  shippedFrom(folder: string, node: string): EndStore {
    const { keeper } = this;
    return {
      ...this.endsOf(node),
      async apply(batch, epoch) {
        const isRead = await keeper.shipFrom(folder, node, epoch, [...fileOffsets(batch)]);
        if (!isRead) await keeper.ship(node, epoch, batch);
      },
    };
  }
}

/** Readers wait for nobody but a database that is being recovered. */
const WAIT_MS = 5_000;

/**
 * One of the processes of a machine: its journal in a data folder of its own, everything else in the SQLite of
 * the folder around it, which it reads itself and has changed by the keeper.
 */
export async function openKeeperBooks(parts: BookkeepingParts): Promise<Bookkeeping> {
  const { folder, clock, onLost } = parts;
  const link = new KeeperLink(keeperSocketPath(dirname(folder.databasePath)), clock, onLost);
  try {
    const books = await openNodeBooks(parts, keeperNodeStore(parts, link));
    link.started();
    return books;
  } catch (error) {
    link.close();
    throw error;
  }
}

/** SQLite for a node: read in place, and written by its keeper. */
export class KeeperDatabase extends SqliteDatabase {
  constructor(
    db: Connection,
    private readonly keeper: Pick<KeeperOperations, "commit">,
    /** Resolves when no node acts on what was before this change. */
    private readonly acknowledged: (version: number) => Promise<void> = async () => {},
  ) {
    super(db, undefined, MAX_WAITING);
  }

  protected override async attempt(
    statements: readonly CommitStatement[],
    { changes = [], confirm, committed }: CommitOptions,
  ): Promise<Committed | null> {
    if (confirm?.() === false) return null;
    const done = await this.keeper.commit(statements.map(writtenFor), changes);
    if (done === null) return null;
    committed?.();
    const { rows, version } = done;
    return { rows, durable: async () => (version === null ? undefined : this.acknowledged(version)) };
  }

  /** The file has commits of other nodes before the keeper has synced them. */
  override async settled(): Promise<void> {
    await this.keeper.commit([], []);
  }
}

/** A turn takes a sync of the disk, so later callers would wait for seconds. */
const MAX_WAITING = 500;
