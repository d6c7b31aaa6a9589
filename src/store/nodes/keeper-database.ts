import type { Database as Connection } from "bun:sqlite";
import type { CommitOptions, Committed } from "../database/database.ts";
import { SqliteDatabase, writtenFor } from "../database/sqlite-database.ts";
import type { CommitStatement } from "../database/statement.ts";
import type { KeeperOperations } from "./keeper-operations.ts";

/** SQLite for a node: read in place, and written by its keeper. */
export class KeeperDatabase extends SqliteDatabase {
  constructor(
    db: Connection,
    private readonly keeper: Pick<KeeperOperations, "commit">,
    /** Resolves when no node acts on what was before this change. */
    readonly acknowledged: (version: number) => Promise<void> = async () => {},
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
}

/** A turn takes a sync of the disk, so whoever comes later would wait for seconds. */
const MAX_WAITING = 500;
