import type { Socket } from "node:net";
import type { SurfaceName } from "../../catalog/catalog.ts";
import type { Clock } from "../../units/clock.ts";
import type { Deadline, Deadlines } from "../../units/deadlines.ts";
import type { Refusal } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";

/**
 * What two workers say to each other of a request that one passes on to the other, each in a frame: the owner greets,
 * the request comes with its body behind it, then the answer, whole in one frame or as a stream that ends with an empty
 * one. A connection carries one request, so that a client that leaves closes it, and the kernel bounds what is under way.
 */
export interface RepeatGreeting {
  readonly protocol: number;
}

/** Both are of one build, but a worker that is started again may be of a newer one. */
export const REPEAT_PROTOCOL = 2;

export interface PassedRequest {
  readonly surface: SurfaceName;
  readonly secret: string;
  readonly balance: BalanceId;
  readonly headers: readonly [name: string, value: string][];
  /** What was learnt of the client's address where it is connected. */
  readonly blocks: readonly string[];
  /** Nothing is to be started for it: it is answered by what is kept, or absent. */
  readonly ifKept: boolean;
  /** Length of the body, which follows. */
  readonly bytes: number;
}

export type PassedReply =
  | { readonly kind: "absent" }
  | { readonly kind: "refused"; readonly refusal: Pick<Refusal, "code" | "message" | "details"> }
  | PassedHead;

interface PassedHead {
  readonly kind: "whole" | "stream";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** One end of such a connection. Little more is read of it than is wanted. */
export class RepeatConnection implements Deadline {
  dueMs = Number.POSITIVE_INFINITY;
  /** The other end said nothing for as long as was waited. */
  isSilent = false;
  private pieces: Buffer[] = [];
  private bytes = 0;
  private neededBytes = 0;
  private isPaused = false;
  private isClosed = false;
  private arrival: PromiseWithResolvers<void> | null = null;
  private drained: PromiseWithResolvers<boolean> | null = null;

  constructor(
    private readonly socket: Socket,
    private readonly deps: ConnectionDeps,
    private readonly onClosed: () => void,
  ) {
    // Its close follows.
    socket.on("error", () => {});
    socket.on("data", (piece: Buffer) => this.arrived(piece));
    socket.on("drain", () => this.hasDrained(true));
    socket.on("close", () => this.closed());
  }

  sendMessage(message: RepeatGreeting | PassedRequest | PassedReply): boolean | Promise<boolean> {
    return this.send(Buffer.from(JSON.stringify(message)));
  }

  /** False when the other end has gone; waits while it takes nothing. */
  send(bytes: Uint8Array): boolean | Promise<boolean> {
    const { socket } = this;
    if (this.isClosed || socket.destroyed) return false;
    const length = Buffer.allocUnsafe(LENGTH_BYTES);
    length.writeUInt32BE(bytes.length);
    if (bytes.length > JOINED_BYTES) socket.write(length);
    const rest = bytes.length > JOINED_BYTES ? bytes : Buffer.concat([length, bytes]);
    if (socket.write(rest)) return true;
    this.drained ??= Promise.withResolvers();
    return this.drained.promise;
  }

  /** The other end's next message; null where it went, or was silent for so long, before that. */
  async readMessage<Message>(withinMs: number): Promise<Message | null> {
    const frame = await this.frame(withinMs);
    return frame === null ? null : (JSON.parse(frame.toString()) as Message);
  }

  /** The same with any frame. */
  async frame(withinMs: number): Promise<Buffer | null> {
    const length = await this.take(LENGTH_BYTES, withinMs);
    return length === null ? null : this.take(length.readUInt32BE(), withinMs);
  }

  /** Once what was sent has left. */
  end(): void {
    this.socket.end();
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** @internal */
  timeIsUp(): void {
    this.isSilent = true;
    this.destroy();
  }

  private async take(length: number, withinMs: number): Promise<Buffer | null> {
    this.neededBytes = length;
    const { clock, deadlines } = this.deps;
    while (this.bytes < length) {
      if (this.isClosed) return null;
      this.dueMs = clock.elapsedMs() + withinMs;
      deadlines.add(this);
      this.arrival = Promise.withResolvers();
      this.goOn();
      await this.arrival.promise;
    }
    this.dueMs = Number.POSITIVE_INFINITY;
    const all = this.pieces.length === 1 ? this.pieces[0]! : Buffer.concat(this.pieces);
    this.pieces = all.length === length ? [] : [all.subarray(length)];
    this.bytes -= length;
    this.neededBytes = 0;
    // Also because only a reader learns of the end.
    this.goOn();
    return all.subarray(0, length);
  }

  private goOn(): void {
    if (!this.isPaused || this.bytes > this.neededBytes + AHEAD_BYTES) return;
    this.isPaused = false;
    this.socket.resume();
  }

  private arrived(piece: Buffer): void {
    this.pieces.push(piece);
    this.bytes += piece.length;
    if (this.bytes >= this.neededBytes) this.arrival?.resolve();
    if (this.isPaused || this.bytes <= this.neededBytes + AHEAD_BYTES) return;
    this.isPaused = true;
    this.socket.pause();
  }

  private hasDrained(isThere: boolean): void {
    this.drained?.resolve(isThere);
    this.drained = null;
  }

  private closed(): void {
    this.isClosed = true;
    this.deps.deadlines.drop(this);
    this.arrival?.resolve();
    this.hasDrained(false);
    this.onClosed();
  }
}

export interface ConnectionDeps {
  readonly clock: Pick<Clock, "elapsedMs" | "after">;
  readonly deadlines: Deadlines;
}

const LENGTH_BYTES = 4;
/** Up to here, a copy is cheaper than one more write. */
const JOINED_BYTES = 16 * 1024;
const AHEAD_BYTES = 16 * 1024;
