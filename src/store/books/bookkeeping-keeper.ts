import { dirname } from "node:path";
import { keeperSocketPath } from "../data-folder.ts";
import { KeeperLink } from "../keeper/link.ts";
import { keeperNodeStore } from "../keeper/node-store.ts";
import type { Bookkeeping, BookkeepingParts } from "./bookkeeping.ts";
import { openNodeBooks } from "./bookkeeping-node.ts";

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
