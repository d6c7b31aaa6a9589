import { copyInto, NO_BYTES } from "./bytes.ts";

/**
 * Changes in bytes that are passed on: spans that are replaced or left out. All changes together cost one
 * copy, and no change costs none. The lists are reused, because there is one use per token.
 */
export class Edits {
  /** Start and end of each span. */
  private readonly spans: number[] = [];
  private readonly texts: Uint8Array[] = [];
  private count = 0;
  private growth = 0;

  /** Spans may not overlap; they come in order but for neighbours. */
  replace(start: number, end: number, by: Uint8Array): void {
    let at = this.count;
    for (; at > 0 && this.spans[2 * at - 2]! > start; at--) {
      this.spans[2 * at] = this.spans[2 * at - 2]!;
      this.spans[2 * at + 1] = this.spans[2 * at - 1]!;
      this.texts[at] = this.texts[at - 1]!;
    }
    this.spans[2 * at] = start;
    this.spans[2 * at + 1] = end;
    this.texts[at] = by;
    this.count += 1;
    this.growth += by.length - (end - start);
  }

  leaveOut(start: number, end: number): void {
    this.replace(start, end, NO_BYTES);
  }

  /** How many there are. */
  get made(): number {
    return this.count;
  }

  /** Calls `visit` with the edits from this number on. */
  each(first: number, visit: (start: number, end: number, by: Uint8Array) => void): void {
    for (let at = first; at < this.count; at++)
      visit(this.spans[2 * at]!, this.spans[2 * at + 1]!, this.texts[at]!);
  }

  /** The span with its changes, which are those from the one with this number on; they are then forgotten. */
  takeBack(first: number, bytes: Uint8Array, start: number, end: number): Uint8Array {
    const parts: Uint8Array[] = [];
    let from = start;
    this.each(first, (spanStart, spanEnd, by) => {
      parts.push(bytes.subarray(from, spanStart), by);
      from = spanEnd;
      this.growth -= by.length - (spanEnd - spanStart);
    });
    this.count = first;
    parts.push(bytes.subarray(from, end));
    return Buffer.concat(parts);
  }

  /**
   * The bytes with all changes made, as parts to be sent in order; then it starts afresh. What stays of large ones is not
   * copied: to copy 200 kB takes 10 µs, and three times that in memory that the kernel has to give first.
   */
  partsOf(bytes: Uint8Array): readonly Uint8Array[] {
    if (this.count === 0 || bytes.length < MIN_UNCOPIED_BYTES) return [this.applyTo(bytes)];
    const parts: Uint8Array[] = [];
    const add = (part: Uint8Array) => part.length > 0 && parts.push(part);
    let from = 0;
    this.each(0, (start, end, by) => {
      add(bytes.subarray(from, start));
      add(by);
      from = end;
    });
    add(bytes.subarray(from));
    this.forget();
    return parts;
  }

  /** The bytes with all changes made; then it starts afresh. */
  applyTo(bytes: Uint8Array): Uint8Array {
    if (this.count === 0) return bytes;
    const length = bytes.length + this.growth;
    const edited = length === 0 ? NO_BYTES : new Uint8Array(length);
    let from = 0;
    let at = 0;
    for (let index = 0; index < this.count; index++) {
      at += copyInto(edited, at, bytes, from, this.spans[2 * index]!);
      const text = this.texts[index]!;
      at += copyInto(edited, at, text, 0, text.length);
      from = this.spans[2 * index + 1]!;
    }
    copyInto(edited, at, bytes, from, bytes.length);
    this.forget();
    return edited;
  }

  forget(): void {
    // Replacement texts are released: one may be a whole event, and the stream may last for minutes.
    for (let index = 0; index < this.count; index++) this.texts[index] = NO_BYTES;
    if (this.count > KEPT_SPANS) this.spans.length = this.texts.length = 0;
    this.count = 0;
    this.growth = 0;
  }
}

/** Shorter ones are copied as fast as they are divided. */
const MIN_UNCOPIED_BYTES = 16 * 1024;
/** Reads with more events are rare, so memory for them is not kept. */
const KEPT_SPANS = 64;
