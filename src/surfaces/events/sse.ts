import { withoutByteOrderMark } from "../../units/byte-order-mark.ts";
import { copyInto, NO_BYTES, textOf } from "../json/bytes.ts";

/**
 * Cuts a byte stream into server-sent events (WHATWG HTML, "Server-sent events"), whole ones only. Lines end in
 * LF, CRLF or CR; behind the cutter, all of them end in LF, for readers here and for the client. Where a
 * chunk holds whole events and no CR, nothing is copied.
 */
export class EventCutter {
  /** The unfinished event, in memory that is reused. */
  private pending = NO_BYTES;
  private length = 0;
  private released = false;
  /** The last byte was a CR: an LF that follows ends the same line. */
  private isBehindCr = false;

  /**
   * Bytes in which events end, to be read with `eventEnd`; what follows the last whole event is kept for the
   * next call.
   */
  push(received: Uint8Array): Uint8Array {
    const chunk = this.isBehindCr || received.includes(CR) ? this.inLines(received) : received;
    if (this.length === 0) {
      const end = lastEventEnd(chunk, chunk.length, 0);
      if (end === chunk.length) return this.release(chunk);
      this.append(chunk, end);
      return this.release(chunk.subarray(0, end));
    }
    const seen = this.length;
    this.append(chunk, 0);
    // Most pieces of a large event end no line, and looking for one would go back to the event's beginning.
    if (chunk.lastIndexOf(LF) === -1) return NO_BYTES;
    // The blank line may have started in what was there before.
    const end = lastEventEnd(this.pending, this.length, seen - 1);
    if (end === 0) return NO_BYTES;
    // A copy: the caller keeps what it is given, and the memory is used again.
    const whole = this.pending.slice(0, end);
    this.pending.copyWithin(0, end, this.length);
    this.length -= end;
    return this.release(whole);
  }

  /** Bytes of an event that has not ended yet. */
  get unfinished(): number {
    return this.length;
  }

  /** What is left when the stream ends: hosts may leave out the last blank line. */
  rest(): Uint8Array {
    const rest = this.pending.slice(0, this.length);
    this.length = 0;
    return rest;
  }

  private append(bytes: Uint8Array, from: number): void {
    const needed = this.length + bytes.length - from;
    if (needed > this.pending.length) {
      const grown = new Uint8Array(Math.max(needed * 2, 1_024));
      copyInto(grown, 0, this.pending, 0, this.length);
      this.pending = grown;
    }
    copyInto(this.pending, this.length, bytes, from, bytes.length);
    this.length = needed;
  }

  /** The same with LF behind each line. */
  private inLines(received: Uint8Array): Uint8Array {
    if (received.length === 0) return received;
    const lines = new Uint8Array(received.length);
    let length = 0;
    let at = this.isBehindCr && received[0] === LF ? 1 : 0;
    for (;;) {
      const cr = received.indexOf(CR, at);
      if (cr === -1) break;
      length += copyInto(lines, length, received, at, cr);
      lines[length++] = LF;
      at = received[cr + 1] === LF ? cr + 2 : cr + 1;
    }
    length += copyInto(lines, length, received, at, received.length);
    this.isBehindCr = received[received.length - 1] === CR;
    return lines.slice(0, length);
  }

  /** A byte order mark may precede the first event. */
  private release(bytes: Uint8Array): Uint8Array {
    if (this.released || bytes.length === 0) return bytes;
    this.released = true;
    return withoutByteOrderMark(bytes);
  }
}

/**
 * Just behind the blank line that ends the event which begins at `from`; -1 when it does not end in these
 * bytes.
 */
export function eventEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    const newline = bytes.indexOf(LF, at);
    if (newline === -1) return -1;
    if (bytes[newline + 1] === LF) return newline + 2;
    // A blank line may also be the first of the event: a stray separator, which is an event without fields.
    if (newline === from) return newline + 1;
    at = newline + 1;
  }
}

/** The event that a stream is at, read where it stands. What it spells is only made where somebody asks. */
export class CurrentEvent {
  bytes = NO_BYTES;
  start = 0;
  end = 0;
  /** Span of the data, when it is on one line: what is changed is changed in place. Otherwise both are 0. */
  dataStart = 0;
  dataEnd = 0;
  /** Data on several lines, joined. */
  private joined: string | null = null;

  moveTo(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.dataStart = 0;
    this.dataEnd = 0;
    this.joined = null;
    for (let at = start; at < end; ) {
      let lineEnd = bytes.indexOf(LF, at);
      if (lineEnd === -1 || lineEnd > end) lineEnd = end;
      if (startsWith(bytes, at, lineEnd, DATA))
        this.addLine(valueStart(bytes, at + DATA.length, lineEnd), lineEnd);
      at = lineEnd + 1;
    }
  }

  /** Null where the event has none, as in a comment. */
  get data(): string | null {
    return this.dataEnd === 0 ? this.joined : textOf(this.bytes, this.dataStart, this.dataEnd);
  }

  /** A copy, which may be kept. */
  copy(): Uint8Array {
    return this.bytes.slice(this.start, this.end);
  }

  private addLine(start: number, end: number): void {
    const before = this.data;
    if (before === null) {
      this.dataStart = start;
      this.dataEnd = end;
      return;
    }
    this.joined = `${before}\n${textOf(this.bytes, start, end)}`;
    this.dataStart = 0;
    this.dataEnd = 0;
  }
}

/** One for all streams, because none waits while it reads an event: see surfaces/passing/judge. */
export const EVENT = new CurrentEvent();

/** A sign of life in a silent stream, of which no reader of events tells anybody. */
export const COMMENT: Uint8Array = Buffer.from(": keepalive\n\n");

/** The end of the last whole event in so many bytes; 0 when none ends behind `from`. */
function lastEventEnd(bytes: Uint8Array, length: number, from: number): number {
  for (
    let newline = bytes.lastIndexOf(LF, length - 1);
    newline > from;
    newline = bytes.lastIndexOf(LF, newline - 1)
  )
    if (bytes[newline - 1] === LF) return newline + 1;
  return from === 0 && length > 0 && bytes[0] === LF ? 1 : 0;
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const DATA = Buffer.from("data:");

const valueStart = (bytes: Uint8Array, at: number, end: number): number =>
  at < end && bytes[at] === SPACE ? at + 1 : at;

function startsWith(bytes: Uint8Array, at: number, end: number, prefix: Buffer): boolean {
  if (end - at < prefix.length) return false;
  for (let index = 0; index < prefix.length; index++) if (bytes[at + index] !== prefix[index]) return false;
  return true;
}
