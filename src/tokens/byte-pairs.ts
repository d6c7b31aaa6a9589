import { TokenTable, type Vocabulary } from "./token-table.ts";

/**
 * Counts tokens as byte pair encoding makes them: text is split into words, and in each word the two
 * neighbours of the lowest rank are merged, leftmost first, until no two of them make a token.
 *
 * Libraries look through the whole word for each merge: 20,000 random letters take them 0.2 s, and ten million
 * take days. Here a heap holds what may be merged, and a word longer than a window is encoded window by
 * window, so time grows with the bytes, whatever they say, and memory does not grow.
 */
export class BytePairs {
  private readonly table: TokenTable;
  private readonly window: Merging;
  private readonly seam: Merging;
  private readonly short = new Uint8Array(SHORT_BYTES);

  private readonly words: RegExp;

  /** `words` is global and matches the next word wherever it begins, so that all text is words. */
  constructor(vocabulary: Vocabulary, words: RegExp) {
    // One of its own, because it knows where it stands.
    this.words = new RegExp(words);
    this.table = new TokenTable(vocabulary);
    this.window = new Merging(this.table, WINDOW_BYTES);
    this.seam = new Merging(this.table, 2 * this.table.longest);
  }

  /** Work done so far, in looks at the table and moves in the heap: for tests, which must not read a clock. */
  get steps(): number {
    return this.table.lookups + this.window.moves + this.seam.moves;
  }

  count(text: string): number {
    const { words } = this;
    let tokens = 0;
    let at = 0;
    while (at < text.length) {
      words.lastIndex = at;
      const end = words.test(text) ? words.lastIndex : text.length;
      tokens += this.countWord(text, at, end);
      at = end;
    }
    return tokens;
  }

  private countWord(text: string, from: number, to: number): number {
    const { short, table, window } = this;
    let bytes: Uint8Array = short;
    let length = to - from <= SHORT_BYTES ? asciiInto(short, text, from, to) : -1;
    if (length < 0) {
      const word = text.slice(from, to);
      if (word.length * MAX_BYTES_OF_UNIT <= SHORT_BYTES) length = utf8.encodeInto(word, short).written;
      else {
        bytes = utf8.encode(word);
        length = bytes.length;
      }
    }
    if (table.rank(bytes, 0, length) >= 0) return 1;
    return length <= WINDOW_BYTES ? window.merge(bytes, 0, length) : this.countLong(bytes);
  }

  /**
   * The last tokens of a window are encoded again, at the beginning of the next one. The tokens before are
   * final if the last of them and the first of the next window stay apart when these two are encoded together:
   * whether tokens are an encoding is decided between neighbours alone. Should they ever not stay apart, the
   * word counts a token a byte, and no text has more.
   */
  private countLong(bytes: Uint8Array): number {
    const { window, seam } = this;
    let final = 0;
    let from = 0;
    let lastFrom = 0;
    for (;;) {
      const to = Math.min(from + WINDOW_BYTES, bytes.length);
      const tokens = window.merge(bytes, from, to);
      if (from > 0) {
        const firstTo = from + window.startOf(1);
        const apart = seam.merge(bytes, lastFrom, firstTo) === 2 && seam.startOf(1) === from - lastFrom;
        if (!apart) return bytes.length;
      }
      if (to === bytes.length) return final + tokens;
      final += tokens - OVERLAP_TOKENS;
      lastFrom = from + window.startOf(tokens - OVERLAP_TOKENS - 1);
      from += window.startOf(tokens - OVERLAP_TOKENS);
    }
  }
}

/** Encodes one stretch of bytes at a time, in place: a list of parts, and a heap of the pairs that may merge. */
class Merging {
  moves = 0;
  /** By the first byte of each part: where its neighbours begin, and the rank that it has with the next one. */
  private readonly next: Int32Array;
  private readonly before: Int32Array;
  private readonly ranks: Int32Array;
  /** Rank and place of each pair in one number, so that the least is the next to merge. */
  private readonly heap: Int32Array;
  private size = 0;

  constructor(
    private readonly table: TokenTable,
    most: number,
  ) {
    this.next = new Int32Array(most + 1);
    this.before = new Int32Array(most + 1);
    this.ranks = new Int32Array(most + 1);
    // Each merge takes one pair away and adds two.
    this.heap = new Int32Array(2 * most);
  }

  merge(bytes: Uint8Array, from: number, to: number): number {
    const { table, next, before, ranks } = this;
    const length = to - from;
    this.size = 0;
    for (let at = 0; at < length; at++) {
      next[at] = at + 1;
      before[at] = at - 1;
      this.offer(at, at + 2 <= length ? table.rank(bytes, from + at, from + at + 2) : NONE);
    }
    let tokens = length;
    while (this.size > 0) {
      const least = this.take();
      const at = least % WINDOW_BYTES;
      // Merged since with another neighbour.
      if (ranks[at] !== (least - at) / WINDOW_BYTES) continue;
      const gone = next[at]!;
      const after = next[gone]!;
      next[at] = after;
      before[after] = at;
      ranks[gone] = NONE;
      tokens -= 1;
      this.offer(at, after < length ? table.rank(bytes, from + at, from + next[after]!) : NONE);
      const left = before[at]!;
      if (left >= 0) this.offer(left, table.rank(bytes, from + left, from + after));
    }
    return tokens;
  }

  /** The first byte of a token of what was merged last, from its beginning. */
  startOf(token: number): number {
    let at = 0;
    for (let n = 0; n < token; n++) at = this.next[at]!;
    return at;
  }

  private offer(at: number, rank: number): void {
    this.ranks[at] = rank;
    if (rank === NONE) return;
    const { heap } = this;
    const added = rank * WINDOW_BYTES + at;
    let index = this.size++;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (heap[parent]! <= added) break;
      heap[index] = heap[parent]!;
      index = parent;
      this.moves += 1;
    }
    heap[index] = added;
  }

  private take(): number {
    const { heap } = this;
    const least = heap[0]!;
    const last = heap[--this.size]!;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.size) break;
      if (child + 1 < this.size && heap[child + 1]! < heap[child]!) child += 1;
      if (heap[child]! >= last) break;
      heap[index] = heap[child]!;
      index = child;
      this.moves += 1;
    }
    heap[index] = last;
    return least;
  }
}

/** How many bytes were written; -1 where a character is not ASCII. */
function asciiInto(bytes: Uint8Array, text: string, from: number, to: number): number {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) return -1;
    bytes[at - from] = code;
  }
  return to - from;
}

const utf8 = new TextEncoder();
const NONE = -1;
/** A pair of any rank and its place fit into 31 bits. */
const WINDOW_BYTES = 8_192;
const SHORT_BYTES = 256;
/** UTF-8 of one UTF-16 unit. */
const MAX_BYTES_OF_UNIT = 3;
/** What the end of a window has become may depend on what follows, though hardly ever for more than a few tokens. */
const OVERLAP_TOKENS = 8;
