import type { Sink } from "../../generation/answer.ts";
import { CurrentEvent, eventEnd } from "../../surfaces/events/sse.ts";
import { asObject, parseObject } from "../../surfaces/json/json.ts";
import { JsonCursor } from "../../surfaces/json/json-cursor.ts";
import type { ClientSocket } from "./client-socket.ts";

/**
 * The events of a streamed answer as messages of a WebSocket: the same JSON, each in a text of its own. What the client
 * may build on with its next turn, the answer's id and items, is recorded before the last event leaves.
 */
export class EventFrames implements Sink {
  private readonly event = new CurrentEvent();
  private readonly cursor = new JsonCursor();
  private readonly items: Uint8Array[] = [];
  private isStarted = false;

  constructor(
    private readonly socket: ClientSocket,
    private readonly streamId: string | null,
    /** For the first event, because a WebSocket has no place for an answer's headers. */
    private readonly headers: Readonly<Record<string, string>>,
    private readonly ended: (end: AnswerEnd) => void,
  ) {}

  write(bytes: Uint8Array): boolean | Promise<boolean> {
    const { ready } = this.socket;
    if (ready === false) return false;
    if (ready !== true) return this.writeLater(ready, bytes);
    this.socket.send(this.framesIn(bytes));
    return this.socket.ready;
  }

  close(): void {}

  private async writeLater(ready: Promise<boolean>, bytes: Uint8Array): Promise<boolean> {
    return (await ready) && this.write(bytes);
  }

  private framesIn(bytes: Uint8Array): string[] {
    const frames: string[] = [];
    for (let from = 0; from < bytes.length; ) {
      const end = eventEnd(bytes, from);
      if (end === -1) break;
      this.event.moveTo(bytes, from, end);
      const frame = this.frame();
      if (frame !== null) frames.push(frame);
      from = end;
    }
    return frames;
  }

  /** Null for a comment, in whose place the client is sent a ping. */
  private frame(): string | null {
    const { data } = this.event;
    if (data === null) {
      this.socket.ping();
      return null;
    }
    if (!data.startsWith("{")) return null;
    this.note(data);
    const { streamId, headers } = this;
    const lane = streamId === null ? "" : `"stream_id":"${streamId}",`;
    const first = this.isStarted ? "" : `"headers":${JSON.stringify(headers)},`;
    this.isStarted = true;
    return lane === "" && first === "" ? data : `{${lane}${first}${data.slice(1)}`;
  }

  /** Looks at the few events that say what the answer consists of. */
  private note(data: string): void {
    const type = this.typeOf(data);
    if (type === "other") return;
    if (type === "item") {
      const item = this.memberOf(data, "item");
      if (item !== null) this.items.push(item);
      return;
    }
    if (type === "failed") this.ended({ isServed: false });
    else {
      const { id, output } = asObject(parseObject(data)?.response) ?? {};
      const outputItems = this.items.length > 0 || !Array.isArray(output) ? this.items : output.map(bytesOf);
      this.ended({ isServed: true, responseId: typeof id === "string" ? id : "", items: outputItems });
    }
  }

  private typeOf(data: string): EventKind {
    const known = TYPE.exec(data)?.[1] ?? asObject(parseObject(data))?.type;
    return typeof known === "string" && Object.hasOwn(KINDS, known) ? KINDS[known]! : "other";
  }

  private memberOf(data: string, name: string): Uint8Array | null {
    const bytes = Buffer.from(data);
    this.cursor.begin(bytes, 0, bytes.length);
    const isThere = this.cursor.passMember(name);
    const { valueStart, at } = this.cursor;
    this.cursor.letGo();
    return isThere ? bytes.slice(valueStart, at) : null;
  }
}

export type AnswerEnd =
  | { readonly isServed: false }
  | { readonly isServed: true; readonly responseId: string; readonly items: readonly Uint8Array[] };

type EventKind = "item" | "ended" | "failed" | "other";

const KINDS: Readonly<Record<string, EventKind>> = {
  "response.output_item.done": "item",
  "response.completed": "ended",
  "response.incomplete": "ended",
  "response.failed": "failed",
  error: "failed",
};

/** As nearly all hosts write it: first of all. */
const TYPE = /^\{\s*"type"\s*:\s*"([\w.]+)"/;

const bytesOf = (item: unknown): Uint8Array => Buffer.from(JSON.stringify(item));
