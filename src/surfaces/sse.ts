/**
 * Cuts a byte stream into server-sent events (WHATWG HTML, "Server-sent events"), whole ones only. Lines end in LF or
 * CRLF; a line that ends in a lone CR is legal and sent by no host, and is not recognised. Where a chunk holds whole
 * events, nothing is copied.
 */
export class EventCutter {
  /** The unfinished event, in memory that is reused. */
  private pending = NO_BYTES;
  private length = 0;
  private released = false;

  /** Bytes in which events end, to be read with `eventEnd`; what follows the last whole event is kept for the next call. */
  push(chunk: Uint8Array): Buffer {
    const bytes = asBuffer(chunk);
    if (this.length === 0) {
      const end = lastEventEnd(bytes, 0);
      if (end < bytes.length) this.append(bytes.subarray(end));
      return this.release(bytes.subarray(0, end));
    }
    const seen = this.length;
    this.append(bytes);
    // The blank line may have begun in what was there before.
    const end = lastEventEnd(this.pending.subarray(0, this.length), Math.max(0, seen - 3));
    // A copy: the caller keeps what it is given, and the memory is used again.
    const whole = Buffer.from(this.pending.subarray(0, end));
    this.pending.copyWithin(0, end, this.length);
    this.length -= end;
    return this.release(whole);
  }

  /** Bytes of an event that has not ended yet. */
  get unfinished(): number {
    return this.length;
  }

  /** What is left when the stream ends: hosts may leave out the last blank line. */
  rest(): Buffer {
    const rest = Buffer.from(this.pending.subarray(0, this.length));
    this.length = 0;
    return rest;
  }

  private append(bytes: Buffer): void {
    const needed = this.length + bytes.length;
    if (needed > this.pending.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed * 2, 1_024));
      this.pending.copy(grown, 0, 0, this.length);
      this.pending = grown;
    }
    bytes.copy(this.pending, this.length);
    this.length = needed;
  }

  /** A byte order mark may precede the first event. */
  private release(bytes: Buffer): Buffer {
    if (this.released || bytes.length === 0) return bytes;
    this.released = true;
    return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
  }
}

/** Just behind the blank line that ends the event which begins at `from`; -1 when it does not end in these bytes. */
export function eventEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const newline = bytes.indexOf(LF, at);
    if (newline === -1) return -1;
    const next = bytes[newline + 1];
    if (next === LF) return newline + 2;
    if (next === CR && bytes[newline + 2] === LF) return newline + 3;
    // A blank line may also be the first of the event: a stray separator, which is an event without fields.
    if (newline === from || (newline === from + 1 && bytes[from] === CR)) return newline + 1;
    at = newline + 1;
  }
}

/** The fields of one event that are read here; `data` is null where it has none, as in a comment. */
export interface EventFields {
  readonly name: string | null;
  /** Span of the data, when it is on one line: what is changed is changed in place. */
  readonly dataStart: number;
  readonly dataEnd: number;
  readonly data: string | null;
}

export function readEvent(bytes: Buffer, from: number, to: number): EventFields {
  let name: string | null = null;
  let data: string | null = null;
  let [dataStart, dataEnd] = [0, 0];
  for (let at = from; at < to; ) {
    let end = bytes.indexOf(LF, at);
    if (end === -1 || end >= to) end = to;
    const lineEnd = end > at && bytes[end - 1] === CR ? end - 1 : end;
    if (startsWith(bytes, at, lineEnd, DATA)) {
      const start = valueStart(bytes, at + DATA.length, lineEnd);
      const line = bytes.toString("utf8", start, lineEnd);
      [dataStart, dataEnd] = data === null ? [start, lineEnd] : [0, 0];
      data = data === null ? line : `${data}\n${line}`;
    } else if (startsWith(bytes, at, lineEnd, EVENT)) {
      name = bytes.toString("utf8", valueStart(bytes, at + EVENT.length, lineEnd), lineEnd);
    }
    at = end + 1;
  }
  return { name, dataStart, dataEnd, data };
}

/** The end of the last whole event; 0 when none ends behind `from`. */
function lastEventEnd(bytes: Buffer, from: number): number {
  for (let newline = bytes.lastIndexOf(LF); newline > from; newline = bytes.lastIndexOf(LF, newline - 1)) {
    const before = bytes[newline - 1] === CR ? newline - 2 : newline - 1;
    if (before >= 0 && bytes[before] === LF) return newline + 1;
  }
  return from === 0 && bytes[0] === LF ? 1 : 0;
}

const NO_BYTES = Buffer.alloc(0);
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const DATA = Buffer.from("data:");
const EVENT = Buffer.from("event:");

const valueStart = (bytes: Buffer, at: number, end: number): number =>
  at < end && bytes[at] === SPACE ? at + 1 : at;

function startsWith(bytes: Buffer, at: number, end: number, prefix: Buffer): boolean {
  if (end - at < prefix.length) return false;
  for (let index = 0; index < prefix.length; index++) if (bytes[at + index] !== prefix[index]) return false;
  return true;
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
