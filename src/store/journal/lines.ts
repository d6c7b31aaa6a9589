import { formatRecord, type LedgerRecord } from "../../ledger/record.ts";

/**
 * Journal records as lines, `check json`: the check is the CRC-32 of the JSON's bytes, salted with the number
 * of the file, in eight hexadecimal digits. A file that is used again still holds the lines of its former
 * number, and none of them passes.
 *
 * Behind the check stands `|` in place of the space where the disk had confirmed all lines before this one. So
 * it is known of lines whether they were written for good, although one before them is torn.
 */
export class JournalLines {
  /** Used again for every batch: what is written is on its way to the disk before the next. */
  private buffer = Buffer.alloc(MIN_BYTES);
  private length = 0;
  private salt = 0;
  private separator = SPACE;

  /** Begins a new batch, for this file; `allConfirmed` says that what is in the file before it is durable. */
  begin(file: number, allConfirmed: boolean): void {
    this.length = 0;
    this.separator = allConfirmed ? BEHIND_CONFIRMED : SPACE;
    this.salt = saltOf(file);
    if (this.buffer.length > MAX_KEPT_BYTES) this.buffer = Buffer.alloc(MIN_BYTES);
  }

  /** Returns where the record's line ends within the batch. */
  add(record: LedgerRecord): number {
    const text = formatRecord(record);
    this.reserve(CRC_LENGTH + text.length * MAX_BYTES_A_UNIT + SEPARATORS);
    const { buffer } = this;
    writeHex((Bun.hash.crc32(text) ^ this.salt) >>> 0, buffer, this.length);
    const start = this.length + CRC_LENGTH + 1;
    const end = start + buffer.write(text, start, "utf8");
    buffer[start - 1] = this.separator;
    this.separator = SPACE;
    buffer[end] = LF;
    this.length = end + 1;
    return this.length;
  }

  /** The lines one behind the other, valid until the next batch. */
  bytes(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }

  private reserve(more: number): void {
    const needed = this.length + more;
    if (needed <= this.buffer.length) return;
    const grown = Buffer.alloc(needed * 2);
    this.buffer.copy(grown, 0, 0, this.length);
    this.buffer = grown;
  }
}

/** Eight lower-case hexadecimal digits, from the right. */
function writeHex(value: number, into: Uint8Array, at: number): void {
  for (let digit = CRC_LENGTH - 1, left = value; digit >= 0; digit--, left >>>= 4) {
    into[at + digit] = HEX_DIGITS.charCodeAt(left & 0xf);
  }
}

/**
 * The records, as JSON, in the bytes of the file with this number, in order, with the place where each ends;
 * stops at the first line that was torn, or belongs to a former number.
 */
export function* readLines(bytes: Uint8Array, file: number): Generator<JournalLine> {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let start = 0; ; ) {
    const end = content.indexOf(LF, start);
    if (end === -1 || !isWhole(content, start, end, file)) return;
    yield lineAt(content, start, end);
    start = end + 1;
  }
}

export interface JournalLine {
  readonly text: string;
  /** Where the next one begins. */
  readonly end: number;
}

/**
 * The lines of this file that are whole behind `from`, where reading stopped. Lines that the disk had confirmed
 * are read. The others may be of a write that was never acknowledged, or was taken back.
 */
export function linesBehind(bytes: Uint8Array, from: number, file: number): LinesBehind {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const confirmed: JournalLine[] = [];
  let others: JournalLine[] = [];
  let tornBytes = 0;
  let wholeEnd = from;
  for (let start = from, end = content.indexOf(LF, from); end !== -1; end = content.indexOf(LF, start)) {
    // What a former use of the file left behind has another salt.
    if (isWhole(content, start, end, file)) {
      if (content[start + CRC_LENGTH] === BEHIND_CONFIRMED) {
        for (const line of others) confirmed.push(line);
        others = [];
      }
      others.push(lineAt(content, start, end));
      tornBytes += start - wholeEnd;
      wholeEnd = end + 1;
    }
    start = end + 1;
  }
  return { confirmed, unconfirmed: others.length, tornBytes };
}

interface LinesBehind {
  readonly confirmed: readonly JournalLine[];
  readonly unconfirmed: number;
  /** Between `from` and the last whole line. */
  readonly tornBytes: number;
}

const lineAt = (content: Buffer, start: number, end: number): JournalLine => ({
  text: content.toString("utf8", start + CRC_LENGTH + 1, end),
  end: end + 1,
});

function isWhole(content: Buffer, start: number, end: number, file: number): boolean {
  const crc = Bun.hash.crc32(content.subarray(start + CRC_LENGTH + 1, end));
  return content.toString("latin1", start, start + CRC_LENGTH) === hex(crc ^ saltOf(file));
}

/**
 * Different for every file, and never 0: multiplication by an odd number takes no two numbers to the same.
 */
const saltOf = (file: number): number => Math.imul(file, 0x9e3779b1);

const CRC_LENGTH = 8;
const HEX_DIGITS = "0123456789abcdef";
const hex = (crc: number): string => (crc >>> 0).toString(16).padStart(CRC_LENGTH, "0");

const SPACE = 0x20;
/** The sign `|`. */
const BEHIND_CONFIRMED = 0x7c;
const LF = 0x0a;
/** The space and the line feed. */
const SEPARATORS = 2;
/** UTF-8 bytes of one UTF-16 unit. */
const MAX_BYTES_A_UNIT = 3;
const MIN_BYTES = 64 * 1024;
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
