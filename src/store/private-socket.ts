import { chmodSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { DataFolderError } from "./data-folder.ts";

/**
 * Listens on a socket that only the owner of its folder can open; it is bound once this returns. The path must be free,
 * or left over from a life before.
 */
export async function listenPrivately(server: Server, path: string): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_PATH_BYTES) {
    throw new DataFolderError(
      `the path of the data folder is too long for the workers' sockets in it (${bytes} bytes, at most ${MAX_PATH_BYTES}): ${path}. Set GATEWAY_DATA to a shorter one, or workers to 1.`,
    );
  }
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    // Else whoever is quick opens it before its mode is set.
    const mask = process.umask(0o077);
    server.once("error", reject).listen(path, resolve);
    process.umask(mask);
  });
  chmodSync(path, 0o600);
}

/** Of the address of a socket, on every system. */
const MAX_PATH_BYTES = 103;
