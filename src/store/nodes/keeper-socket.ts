import { createServer, type Server, type Socket } from "node:net";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import { listenPrivately } from "../data-folder.ts";
import { diskRefused } from "../database/sqlite.ts";
import {
  FrameReader,
  frameOf,
  KEEPER_PROTOCOL,
  type KeeperAnnouncement,
  type KeeperAnswer,
  type KeeperCall,
  type KeeperHello,
  type KeeperOperations,
} from "./keeper-operations.ts";

/** Where nodes reach their keeper: a socket that only the owner of the data folder can open. */
export class KeeperSocket {
  private readonly nodes = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly onFault: (error: unknown) => void,
  ) {}

  /** The path must be free, or left over from a life before. */
  static async listen(
    path: string,
    keeper: KeeperOperations,
    onFault: (error: unknown) => void,
  ): Promise<KeeperSocket> {
    const server = createServer((node) => socket.serve(node, keeper));
    const socket = new KeeperSocket(server, onFault);
    await listenPrivately(server, path);
    server.on("error", onFault);
    return socket;
  }

  announce(announcement: KeeperAnnouncement): void {
    const frame = frameOf(announcement);
    for (const node of this.nodes) write(node, frame);
  }

  stop(): void {
    this.server.close();
    for (const node of this.nodes) node.destroy();
  }

  private serve(node: Socket, keeper: KeeperOperations): void {
    const frames = new FrameReader();
    this.nodes.add(node);
    write(node, frameOf({ protocol: KEEPER_PROTOCOL } satisfies KeeperHello));
    node.on("close", () => this.nodes.delete(node));
    // Its end says what there is to say.
    node.on("error", () => {});
    node.on("data", (piece: Buffer) => {
      try {
        for (const call of frames.read(piece)) void this.answer(node, keeper, call as KeeperCall);
      } catch (error) {
        this.onFault(error);
        node.destroy();
      }
    });
  }

  private async answer(node: Socket, keeper: KeeperOperations, call: KeeperCall): Promise<void> {
    write(node, frameOf(await answerTo(keeper, call)));
  }
}

async function answerTo(keeper: KeeperOperations, { id, call, args }: KeeperCall): Promise<KeeperAnswer> {
  try {
    if (!Object.hasOwn(keeper, call)) throw new Error(`a keeper cannot ${call}`);
    const run = keeper[call] as (...args: readonly unknown[]) => Promise<unknown>;
    return { id, result: (await run(...args)) ?? null };
  } catch (error) {
    const { name, message } = diskRefused(error)
      ? new StoreUnreachable(`the database cannot be written: ${(error as Error).message}`)
      : (error as Error);
    return { id, failed: { name, message } };
  }
}

/** A node that takes nothing any more is left: it finds the keeper again when it goes on. */
function write(node: Socket, frame: Buffer): void {
  if (node.destroyed) return;
  node.write(frame);
  if (node.writableLength > MAX_UNREAD_BYTES) node.destroy();
}

const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
