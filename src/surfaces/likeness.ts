import { estimateJsonText, NO_JSON_TEXT } from "../tokens/estimate.ts";
import { copyInto, equals, NO_BYTES } from "./bytes.ts";
import type { Edits } from "./edits.ts";
import { BACKSLASH, QUOTE } from "./json-scan.ts";
import type { FoundText } from "./judge.ts";
import type { CurrentEvent } from "./sse.ts";

/**
 * Most events of a stream differ from the previous one only in a word. Once an event was read and a text in
 * it counted, the next event with the same bytes on both sides of its text means the same: two comparisons
 * show that, and only the word has to be read.
 */
export class Likeness {
  /** The text of the event that was passed. */
  readonly text: FoundText = { start: 0, end: 0, channel: 0, tokens: 0 };
  /** The event that was learnt, without its text, and where that stood. */
  private around = NO_BYTES;
  private textAt = 0;
  /** Start and end of each span that is changed in it, as if it had no text. */
  private readonly spans: number[] = [];
  private readonly texts: Uint8Array[] = [];
  private misses = 0;

  /**
   * Just behind the event that begins at `start`, whose changes are then made; -1 when it is another, or not
   * all of it is there.
   */
  pass(bytes: Uint8Array, start: number, edits: Edits): number {
    const { around, textAt } = this;
    if (around.length === 0) return -1;
    const textStart = start + textAt;
    if (!equals(bytes, start, around, 0, textAt)) return this.miss();
    const textEnd = endOfText(bytes, textStart);
    if (textEnd === -1 || !equals(bytes, textEnd, around, textAt, around.length)) return this.miss();
    const tokens = estimateJsonText(bytes, textStart, textEnd);
    if (tokens === NO_JSON_TEXT) return this.miss();
    this.text.start = textStart;
    this.text.end = textEnd;
    this.text.tokens = tokens;
    this.misses = 0;
    const shift = textEnd - textStart;
    for (let index = 0; index < this.texts.length; index++) {
      const from = start + this.spans[2 * index]!;
      const to = start + this.spans[2 * index + 1]!;
      const by = from >= textStart ? shift : 0;
      edits.replace(from + by, to + by, this.texts[index]!);
    }
    return start + around.length + shift;
  }

  /**
   * The event was read, and of all its texts this one counted; its changes are those from `first` on.
   */
  learn(
    { bytes, start, end }: CurrentEvent,
    { start: textStart, end: textEnd, channel }: FoundText,
    edits: Edits,
    first: number,
  ): void {
    if (this.misses > MOST_MISSES || end - start > MOST_BYTES) return;
    this.textAt = textStart - start;
    this.text.channel = channel;
    this.around = new Uint8Array(end - start - (textEnd - textStart));
    copyInto(this.around, 0, bytes, start, textStart);
    copyInto(this.around, this.textAt, bytes, textEnd, end);
    this.spans.length = this.texts.length = 0;
    edits.each(first, (from, to, by) => {
      const length = from >= textEnd ? textEnd - textStart : 0;
      this.spans.push(from - start - length, to - start - length);
      this.texts.push(by);
    });
  }

  forget(): void {
    this.around = NO_BYTES;
  }

  /** So that hosts that pad or number each event are not compared forever. */
  private miss(): -1 {
    this.misses += 1;
    if (this.misses > MOST_MISSES) this.forget();
    return -1;
  }
}

/** Of events in a row. Text, thoughts and tools' arguments follow each other in one stream. */
const MOST_MISSES = 16;
/** A stream keeps so many at most. */
const MOST_BYTES = 1_024;

/** Where its closing quote stands; -1 where there is none before the end of the line. */
function endOfText(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    let byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) byte = bytes[++at] ?? 0;
    if (byte < SPACE) return -1;
  }
  return -1;
}

const SPACE = 0x20;
