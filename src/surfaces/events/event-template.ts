import { estimateJsonText, NO_JSON_TEXT } from "../../tokens/estimate.ts";
import { copyInto, equals, NO_BYTES } from "../json/bytes.ts";
import type { Edits } from "../json/edits.ts";
import { BACKSLASH, QUOTE } from "../json/json-scan.ts";
import type { CurrentEvent } from "./sse.ts";

/**
 * Most events of a stream differ from the previous one only in a word, and some in a number or in padding as
 * well (OpenAI's `sequence_number` and `obfuscation`). Once an event was read and a text in it counted, the next
 * with the same bytes around its text means the same: a few comparisons show that, and only the word has to be
 * read. A member that means nothing to the judge and was seen to change becomes a gap, which is stepped over.
 */
export class EventTemplate {
  readonly text: FoundText = { start: 0, end: 0, channel: 0, tokens: 0 };
  /** The event that was learnt, without what may change in it. */
  private around = NO_BYTES;
  /** Where its text stood, as long as nothing else is known to change. */
  private textAt = 0;
  /** Null where nothing else changes, as in most streams. */
  private gaps: TemplateGaps | null = null;
  /** Start and end of each span that is changed in it, as if its gaps were empty. */
  private readonly spans: number[] = [];
  private readonly texts: Uint8Array[] = [];
  private misses = 0;
  private learns = 0;

  /** The number of the event that was passed; -1 where they have none. */
  get count(): number {
    return this.gaps === null ? -1 : this.gaps.count;
  }

  /**
   * Just behind the event that begins at `start`, whose changes are then made where `edits` takes them; -1 when
   * it is another, or not all of it is there.
   */
  pass(bytes: Uint8Array, start: number, edits: Edits | null): number {
    const { around, textAt } = this;
    if (around.length === 0) return -1;
    if (this.gaps !== null) return this.passWithGaps(this.gaps, bytes, start, edits);
    const textStart = start + textAt;
    if (!equals(bytes, start, around, 0, textAt)) return this.miss();
    const textEnd = endOfText(bytes, textStart);
    if (textEnd === -1 || !equals(bytes, textEnd, around, textAt, around.length)) return this.miss();
    if (!this.findText(bytes, textStart, textEnd)) return this.miss();
    const shift = textEnd - textStart;
    if (edits !== null)
      for (let index = 0; index < this.texts.length; index++) {
        const from = start + this.spans[2 * index]!;
        const to = start + this.spans[2 * index + 1]!;
        const by = from >= textStart ? shift : 0;
        edits.replace(from + by, to + by, this.texts[index]!);
      }
    return start + around.length + shift;
  }

  private passWithGaps(gaps: TemplateGaps, bytes: Uint8Array, start: number, edits: Edits | null): number {
    const { around } = this;
    let at = start;
    let from = 0;
    let textStart = 0;
    let textEnd = 0;
    for (let index = 0; index < gaps.at.length; index++) {
      const to = gaps.at[index]!;
      if (!equals(bytes, at, around, from, to)) return this.miss();
      at += to - from;
      from = to;
      const kind = gaps.kinds[index]!;
      const end = kind === NUMBER || kind === COUNT ? endOfDigits(bytes, at) : endOfText(bytes, at);
      if (end === -1) return this.miss();
      if (kind === TEXT) {
        textStart = at;
        textEnd = end;
      } else if (kind === COUNT) gaps.count = numberAt(bytes, at, end);
      SHIFTS[index] = end - start - to;
      at = end;
    }
    if (!equals(bytes, at, around, from, around.length)) return this.miss();
    if (!this.findText(bytes, textStart, textEnd)) return this.miss();
    if (edits !== null)
      for (let index = 0; index < this.texts.length; index++) {
        const before = gaps.before[index]!;
        const by = start + (before === 0 ? 0 : SHIFTS[before - 1]!);
        edits.replace(this.spans[2 * index]! + by, this.spans[2 * index + 1]! + by, this.texts[index]!);
      }
    return at + around.length - from;
  }

  private findText(bytes: Uint8Array, start: number, end: number): boolean {
    const tokens = estimateJsonText(bytes, start, end);
    if (tokens === NO_JSON_TEXT) return false;
    const { text } = this;
    text.start = start;
    text.end = end;
    text.tokens = tokens;
    this.misses = 0;
    return true;
  }

  /** Whether it is worth looking for the text of an event that was read. */
  mayLearn({ start, end }: CurrentEvent): boolean {
    return this.misses <= MAX_MISSES && end - start <= MAX_BYTES;
  }

  /** Learns an event that was read, with its changes, which are those from `first` on. */
  learn(
    event: CurrentEvent,
    { start: textStart, end: textEnd, channel, free }: FoundText & { readonly free: FreeMembers },
    edits: Edits | null,
    first: number,
  ): void {
    const { bytes, start, end } = event;
    this.text.channel = channel;
    this.learns += 1;
    this.spans.length = this.texts.length = 0;
    if (this.learns > 1 || free.hasCount) {
      this.gaps ??= new TemplateGaps();
      const { gaps } = this;
      this.around = gaps.learn(event, textStart, textEnd, free);
      edits?.each(first, (from, to, by) => {
        const taken = gaps.takenBefore(from);
        this.spans.push(from - start - taken, to - start - taken);
        this.texts.push(by);
      });
      return;
    }
    this.textAt = textStart - start;
    this.around = new Uint8Array(end - start - (textEnd - textStart));
    copyInto(this.around, 0, bytes, start, textStart);
    copyInto(this.around, this.textAt, bytes, textEnd, end);
    edits?.each(first, (from, to, by) => {
      const length = from >= textEnd ? textEnd - textStart : 0;
      this.spans.push(from - start - length, to - start - length);
      this.texts.push(by);
    });
  }

  forget(): void {
    this.around = NO_BYTES;
  }

  /** So that hosts whose events differ in more than can be stepped over are not compared forever. */
  private miss(): -1 {
    this.misses += 1;
    if (this.misses > MAX_MISSES) this.forget();
    return -1;
  }
}

/** A text in an event, between its quotes. */
export interface FoundText {
  start: number;
  end: number;
  /** Which of the answer's texts it goes on with. */
  channel: number;
  /** By estimate. */
  tokens: number;
}

/** What changes from event to event next to the text. Only streams in which something does have one. */
class TemplateGaps {
  /** The number of the event that was passed; -1 where they have none. */
  count = -1;
  /** Where they stand in the event without them, in order; and what each is. */
  readonly at: number[] = [];
  readonly kinds: GapKind[] = [];
  /** For each change in the event, the gaps before it. */
  readonly before: number[] = [];
  /** Which of the free members were seen to change. */
  private varies = 0;
  /** The values of the free members in the event that was learnt last. */
  private last = NO_BYTES;
  private readonly lastSpans: number[] = [];

  /** The event without its gaps. */
  learn(
    { bytes, start, end }: CurrentEvent,
    textStart: number,
    textEnd: number,
    free: FreeMembers,
  ): Uint8Array {
    this.findChanges(bytes, free);
    this.at.length = this.kinds.length = this.before.length = STARTS.length = ENDS.length = 0;
    this.count = -1;
    let hasText = false;
    for (let index = 0; index < free.count; index++) {
      if ((this.varies & (1 << index)) === 0 && free.kinds[index] !== COUNT) continue;
      const from = free.spans[2 * index]!;
      if (!hasText && from > textStart) {
        hasText = true;
        this.open(textStart, textEnd, TEXT);
      }
      this.open(from, free.spans[2 * index + 1]!, free.kinds[index]!);
    }
    if (!hasText) this.open(textStart, textEnd, TEXT);
    let length = end - start;
    for (let index = 0; index < STARTS.length; index++) length -= ENDS[index]! - STARTS[index]!;
    const around = new Uint8Array(length);
    let at = 0;
    let from = start;
    for (let index = 0; index < STARTS.length; index++) {
      at += copyInto(around, at, bytes, from, STARTS[index]!);
      this.at.push(at);
      from = ENDS[index]!;
    }
    copyInto(around, at, bytes, from, end);
    return around;
  }

  /** Bytes in the gaps before the change that begins here, which is noted. */
  takenBefore(changeStart: number): number {
    let gaps = 0;
    let taken = 0;
    while (gaps < ENDS.length && ENDS[gaps]! <= changeStart) {
      taken += ENDS[gaps]! - STARTS[gaps]!;
      gaps += 1;
    }
    this.before.push(gaps);
    return taken;
  }

  private open(from: number, to: number, kind: GapKind): void {
    STARTS.push(from);
    ENDS.push(to);
    this.kinds.push(kind);
  }

  private findChanges(bytes: Uint8Array, free: FreeMembers): void {
    const { lastSpans } = this;
    if (lastSpans.length === 2 * free.count) {
      for (let index = 0; index < free.count; index++) {
        const from = free.spans[2 * index]!;
        const to = free.spans[2 * index + 1]!;
        const lastFrom = lastSpans[2 * index]!;
        const lastTo = lastSpans[2 * index + 1]!;
        if (to - from !== lastTo - lastFrom || !equals(bytes, from, this.last, lastFrom, lastTo))
          this.varies |= 1 << index;
      }
    } else this.varies = 0;
    lastSpans.length = 0;
    let length = 0;
    for (let index = 0; index < free.count; index++)
      length += free.spans[2 * index + 1]! - free.spans[2 * index]!;
    if (this.last.length < length) this.last = new Uint8Array(length + SPARE_BYTES);
    let at = 0;
    for (let index = 0; index < free.count; index++) {
      lastSpans.push(at);
      at += copyInto(this.last, at, bytes, free.spans[2 * index]!, free.spans[2 * index + 1]!);
      lastSpans.push(at);
    }
  }
}

/** What stands in a gap: the text, another text without its quotes, a number, the event's own number. */
type GapKind = 0 | 1 | 2 | 3;
const TEXT = 0;
export const FREE_TEXT = 1;
export const NUMBER = 2;
export const COUNT = 3;

/** Members of an event whose values mean nothing, or only a number; one list for all streams. */
export class FreeMembers {
  count = 0;
  /** One of them is the event's own number. */
  hasCount = false;
  readonly spans: number[] = [];
  readonly kinds: GapKind[] = [];

  add(from: number, to: number, kind: GapKind): void {
    if (this.count === MAX_FREE) return;
    this.spans[2 * this.count] = from;
    this.spans[2 * this.count + 1] = to;
    this.kinds[this.count] = kind;
    this.count += 1;
    this.hasCount ||= kind === COUNT;
  }

  clear(): void {
    this.count = 0;
    this.hasCount = false;
  }
}

const MAX_FREE = 16;
const SPARE_BYTES = 32;
/** The changes in one event while it is read. */
const SHIFTS: number[] = [];
const STARTS: number[] = [];
const ENDS: number[] = [];

/** Events in a row that do not fit. Text, thoughts and tools' arguments follow each other in one stream. */
const MAX_MISSES = 16;
/** A stream keeps so many at most. */
const MAX_BYTES = 1_024;

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

/** Behind a whole number of at most 15 digits; -1 where there is none. */
export function endOfDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at]! >= ZERO && bytes[at]! <= NINE) at++;
  return at === from || at - from > 15 || (bytes[from] === ZERO && at > from + 1) ? -1 : at;
}

function numberAt(bytes: Uint8Array, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) number = number * 10 + bytes[at]! - ZERO;
  return number;
}

const SPACE = 0x20;
const ZERO = 0x30;
const NINE = 0x39;
