import { ConnectionSlots, type FullSlots, type SocketOwner } from "../../hosts/slots/connection-slots.ts";
import { ConversationMemory } from "../../surfaces/responses/conversation-memory.ts";
import { boundedCache } from "../../units/bounded-cache.ts";
import type { ByteBudget } from "../../units/byte-budget.ts";
import type { Clock, Timer } from "../../units/clock.ts";
import type { KeyId } from "../../units/id.ts";

/**
 * All WebSockets of a process: what they share, and what is done to all of them. The server shows a message once it is
 * complete, however long that takes. So each connection takes memory when it opens: for the largest message in the
 * making, and as much for the turns that it waits for.
 */
export class OpenSockets {
  /** `memory` is for senders who pay, `unpaidMemory` for everybody else. */
  readonly memory = new ConversationMemory(MEMORY_BYTES);
  readonly unpaidMemory = new ConversationMemory(UNPAID_MEMORY_BYTES);
  private readonly connections = new Set<OpenConnection>();
  private timer: Timer | null = null;
  private isLeaving = false;
  private readonly slots: ConnectionSlots;
  /** When clients last sent a larger message than a WebSocket takes, by their session and key. */
  private readonly tooLarge = boundedCache<string, number>(MAX_SESSIONS);

  constructor(
    private readonly clock: Pick<Clock, "after" | "elapsedMs">,
    private readonly room: SocketRoom,
  ) {
    this.slots = new ConnectionSlots(() => Math.floor(memoryBytes(room.settings()) / this.bytesEach));
  }

  /** The largest message. */
  get messageBytes(): number {
    return this.room.messageBytes;
  }

  get count(): number {
    return this.connections.size;
  }

  /** Bytes of the conversations that they may continue. */
  get bytes(): number {
    return this.memory.bytes + this.unpaidMemory.bytes;
  }

  /** Limits of which an open connection has taken something. */
  get slotsInUse(): number {
    return this.slots.inUse;
  }

  /** Some have a turn under way. */
  get areBusy(): boolean {
    for (const connection of this.connections) if (connection.isBusy) return true;
    return false;
  }

  /** Memory for one more, to be released when it closes; or what there is no more of. */
  admit(owner: SocketOwner): (() => void) | FullSlots | null {
    const slot = this.slots.take(owner);
    if (typeof slot !== "function") return slot;
    const memory = this.room.bodies.takeNow(this.bytesEach);
    if (memory === null) {
      slot();
      return null;
    }
    return () => {
      slot();
      memory();
    };
  }

  /** A session's message was too large: it will send that again over its next connection. */
  sentTooMuch(session: string, key: KeyId): void {
    this.tooLarge.set(nameOf(session, key), this.clock.elapsedMs());
  }

  hasSentTooMuch(session: string, key: KeyId): boolean {
    const atMs = this.tooLarge.get(nameOf(session, key));
    return atMs !== undefined && this.clock.elapsedMs() - atMs < TOO_LARGE_MS;
  }

  opened(connection: OpenConnection): void {
    this.connections.add(connection);
    if (this.isLeaving) connection.leave();
    else this.timer ??= this.clock.after(KEEP_ALIVE_MS, () => this.keepAlive());
  }

  closed(connection: OpenConnection): void {
    this.connections.delete(connection);
    if (this.connections.size > 0) return;
    this.timer?.cancel();
    this.timer = null;
  }

  /** The gateway stops: each is closed once its turns are over. */
  leave(): void {
    this.isLeaving = true;
    for (const connection of [...this.connections]) connection.leave();
  }

  private get bytesEach(): number {
    return 2 * this.messageBytes;
  }

  private keepAlive(): void {
    this.timer = this.clock.after(KEEP_ALIVE_MS, () => this.keepAlive());
    for (const connection of [...this.connections]) connection.keepAlive();
  }
}

export interface OpenConnection {
  /** A turn is under way. */
  readonly isBusy: boolean;
  /** Closes it once its turns are over. */
  leave(): void;
  /** Shows proxies on the way that the connection is used, and ends what is over. */
  keepAlive(): void;
}

export interface SocketRoom {
  /** The largest message. */
  readonly messageBytes: number;
  /** Memory for large bodies, from which each connection takes its own. */
  readonly bodies: Pick<ByteBudget, "takeNow">;
  settings(): BodySettings;
}

interface BodySettings {
  readonly bodyBytes: number;
  /** For all large bodies. */
  readonly bodyMemoryBytes: number;
}

/** Half of what there is for large bodies, of which the largest still finds room, packed and unpacked. */
const memoryBytes = ({ bodyBytes, bodyMemoryBytes }: BodySettings): number =>
  Math.max(0, Math.min(bodyMemoryBytes / 2, bodyMemoryBytes - 2 * bodyBytes));

/** Clients choose how long a session's name is. */
const nameOf = (session: string, key: KeyId): string => `${key} ${session.slice(0, MAX_NAME)}`;

const MAX_NAME = 128;
const MAX_SESSIONS = 10_000;
const TOO_LARGE_MS = 600_000;
/** Shorter than proxies wait for a sign of life. */
const KEEP_ALIVE_MS = 20_000;
const MEMORY_BYTES = 268_435_456;
const UNPAID_MEMORY_BYTES = 33_554_432;
