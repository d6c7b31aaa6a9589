import { connect, createServer, type Server, type Socket } from "node:net";
import { EpochFenced } from "../../ledger/node-lease.ts";
import type { Clock, Timer } from "../../units/clock.ts";
import { StoreUnreachable, StoreUnusable } from "../../units/errors/bookkeeping.ts";
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

/**
 * A node's line to its keeper. What is asked while nobody listens waits for a while, because a keeper that died
 * is soon back; what was under way when the line broke may have happened, and is reported as such.
 */
export class KeeperLink {
  private socket: Socket | null = null;
  /** The keeper has named its version. */
  private ready = false;
  private closed = false;
  private calls = 0;
  private readonly open = new Map<number, OpenCall>();
  private again: Timer | null = null;
  private pauseMs = FIRST_PAUSE_MS;
  private answerMs = START_ANSWER_MS;
  private onAnnouncement: ((announcement: KeeperAnnouncement) => void) | null = null;

  constructor(
    private readonly path: string,
    private readonly clock: Pick<Clock, "after">,
    /** The keeper is of another version. */
    private readonly onUnusable: (error: Error) => void,
  ) {
    this.connect();
  }

  /** Each operation as a function that asks the keeper. */
  readonly keeper: KeeperOperations = new Proxy({} as KeeperOperations, {
    get:
      (_, call) =>
      (...args: unknown[]) =>
        this.request(call as keyof KeeperOperations, args),
  });

  listen(onAnnouncement: (announcement: KeeperAnnouncement) => void): void {
    this.onAnnouncement = onAnnouncement;
  }

  /** The node has started: from here on there are requests that wait for answers. */
  started(): void {
    this.answerMs = ANSWER_MS;
  }

  close(): void {
    this.closed = true;
    this.again?.cancel();
    this.socket?.destroy();
    this.fail(() => true, "the line to the keeper is closed");
  }

  private request(call: keyof KeeperOperations, args: readonly unknown[]): Promise<unknown> {
    if (this.closed || this.open.size >= MAX_CALLS)
      return Promise.reject(new StoreUnreachable("the keeper of the database takes no more calls"));
    const id = ++this.calls;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const { answerMs } = this;
    const late = this.clock.after(answerMs, () => {
      this.open.delete(id);
      reject(new StoreUnreachable(`the keeper of the database did not answer within ${answerMs} ms`));
    });
    const openCall: OpenCall = {
      frame: frameOf({ id, call, args } satisfies KeeperCall),
      late,
      resolve,
      reject,
    };
    this.open.set(id, openCall);
    if (this.ready) this.send(openCall);
    return promise;
  }

  private send(openCall: OpenCall): void {
    this.socket!.write(openCall.frame!);
    openCall.frame = null;
  }

  private connect(): void {
    this.again = null;
    const socket = connect(this.path);
    const frames = new FrameReader();
    this.socket = socket;
    // Its end follows.
    socket.on("error", () => {});
    socket.on("close", () => this.lost(socket));
    socket.on("data", (piece: Buffer) => {
      try {
        for (const message of frames.read(piece)) this.handleMessage(message as KeeperMessage);
      } catch {
        socket.destroy();
      }
    });
  }

  private handleMessage(message: KeeperMessage): void {
    if ("protocol" in message) return this.greeted(message);
    if ("kind" in message) return this.onAnnouncement?.(message);
    const openCall = this.open.get(message.id);
    if (openCall === undefined) return;
    this.open.delete(message.id);
    openCall.late.cancel();
    if ("failed" in message) openCall.reject(errorOf(message.failed));
    else openCall.resolve(message.result);
  }

  private greeted({ protocol }: KeeperHello): void {
    if (protocol !== KEEPER_PROTOCOL) {
      const versions = `${protocol}, and this process ${KEEPER_PROTOCOL}`;
      return this.onUnusable(
        new StoreUnusable(`the keeper of the database speaks version ${versions}: restart the gateway.`),
      );
    }
    this.ready = true;
    this.pauseMs = FIRST_PAUSE_MS;
    for (const openCall of this.open.values()) if (openCall.frame !== null) this.send(openCall);
    // Whatever was announced meanwhile was missed.
    this.onAnnouncement?.({ kind: "changed" });
  }

  private lost(socket: Socket): void {
    if (this.socket !== socket) return;
    this.ready = false;
    this.fail(({ frame }) => frame === null, "the keeper of the database has gone away");
    if (this.closed) return;
    this.again = this.clock.after(this.pauseMs, () => this.connect());
    this.pauseMs = Math.min(this.pauseMs * 2, LAST_PAUSE_MS);
  }

  private fail(which: (openCall: OpenCall) => boolean, why: string): void {
    for (const [id, openCall] of this.open) {
      if (!which(openCall)) continue;
      this.open.delete(id);
      openCall.late.cancel();
      openCall.reject(new StoreUnreachable(why));
    }
  }
}

type KeeperMessage = KeeperHello | KeeperAnnouncement | KeeperAnswer;

interface OpenCall {
  /** Null once it is sent. */
  frame: Buffer | null;
  readonly late: Timer;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

function errorOf({ name, message }: { readonly name: string; readonly message: string }): Error {
  if (name === "EpochFenced") return new EpochFenced(message);
  return name === "StoreUnreachable" ? new StoreUnreachable(message) : new Error(message);
}

const ANSWER_MS = 5_000;
/** It may have the ends of a former life to book first, on a busy machine. */
const START_ANSWER_MS = 60_000;
const MAX_CALLS = 10_000;
const FIRST_PAUSE_MS = 20;
const LAST_PAUSE_MS = 500;

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
