import { estimateJsonText, NO_JSON_TEXT } from "../../tokens/estimate.ts";
import { COUNT, type FoundText, FREE_TEXT, FreeMembers, NUMBER } from "../events/event-template.ts";
import type { CurrentEvent } from "../events/sse.ts";
import { NO_BYTES } from "../json/bytes.ts";
import { JsonCursor } from "../json/json-cursor.ts";

/**
 * Finds what the model wrote in an event of text or arguments, as nearly all are, where it stands in the bytes. What
 * such an event means is in its bytes alone: the next that differs from it in one text that counts is not read any
 * more (see `EventTemplate`). One of each language for all streams, because none waits while it reads an event.
 */
export abstract class TextFinder {
  protected readonly cursor = new JsonCursor();
  /** Members of the event whose values do not matter. */
  readonly free = new FreeMembers();
  /** How many texts the event has; they stand first in `texts`, which holds as many as any event had. */
  found = 0;
  readonly texts: FoundText[] = [];
  /** The event's own number; -1 where it has none. */
  count = -1;
  private bytes: Uint8Array = NO_BYTES;

  /** False where the event says more than texts. */
  find({ bytes, dataStart, dataEnd }: CurrentEvent): boolean {
    this.bytes = bytes;
    this.found = 0;
    this.count = -1;
    this.free.clear();
    this.cursor.begin(bytes, dataStart, dataEnd);
    return this.read();
  }

  protected abstract read(): boolean;

  /** The text at the cursor, which may be null. */
  protected readText(channel: number): void {
    const { cursor, bytes } = this;
    if (!cursor.isText) return cursor.skipNull();
    const start = cursor.at + 1;
    cursor.skip();
    const end = cursor.at - 1;
    const tokens = estimateJsonText(bytes, start, end);
    if (tokens === NO_JSON_TEXT) cursor.giveUp();
    const text = (this.texts[this.found] ??= { start: 0, end: 0, channel: 0, tokens: 0 });
    this.found += 1;
    text.start = start;
    text.end = end;
    text.channel = channel;
    text.tokens = tokens;
  }

  /** Texts from `first` on are of this channel. */
  protected ofChannel(first: number, channel: number): void {
    for (let at = first; at < this.found; at++) this.texts[at]!.channel = channel;
  }

  /** Skips a member that means nothing, and may change from event to event. */
  protected skipFree(): void {
    const { cursor } = this;
    const { at: start, isText, isNumber } = cursor;
    cursor.skipOther();
    if (isText) this.free.add(start + 1, cursor.at - 1, FREE_TEXT);
    else if (isNumber) this.free.add(start, cursor.at, NUMBER);
  }

  protected readCount(): void {
    const { cursor } = this;
    const { at: start } = cursor;
    this.count = cursor.readCount();
    this.free.add(start, cursor.at, COUNT);
  }
}
