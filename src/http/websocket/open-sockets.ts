import { ConnectionSlots } from "../../limits/connection-slots.ts";
import { ConversationMemory } from "../../surfaces/responses/conversation-memory.ts";
import type { Clock, Timer } from "../../units/clock.ts";
import type { ResponsesConnection } from "./responses-connection.ts";

/** All WebSockets of a process: what they share, and what is done to all of them. */
export class OpenSockets {
  readonly slots = new ConnectionSlots();
  /** Of who pays, and of everybody else. */
  readonly memory = new ConversationMemory(MEMORY_BYTES);
  readonly unpaidMemory = new ConversationMemory(UNPAID_MEMORY_BYTES);
  private readonly connections = new Set<ResponsesConnection>();
  private timer: Timer | null = null;
  private isLeaving = false;

  constructor(private readonly clock: Pick<Clock, "after">) {}

  get count(): number {
    return this.connections.size;
  }

  /** Of the conversations that they may continue. */
  get bytes(): number {
    return this.memory.bytes + this.unpaidMemory.bytes;
  }

  /** Some have a turn under way. */
  get areBusy(): boolean {
    for (const connection of this.connections) if (connection.isBusy) return true;
    return false;
  }

  opened(connection: ResponsesConnection): void {
    this.connections.add(connection);
    if (this.isLeaving) connection.leave();
    else this.timer ??= this.clock.after(LOOK_MS, () => this.look());
  }

  closed(connection: ResponsesConnection): void {
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

  private look(): void {
    this.timer = this.clock.after(LOOK_MS, () => this.look());
    for (const connection of [...this.connections]) connection.look();
  }
}

/** Shorter than proxies wait for a sign of life. */
const LOOK_MS = 20_000;
const MEMORY_BYTES = 268_435_456;
const UNPAID_MEMORY_BYTES = 33_554_432;
