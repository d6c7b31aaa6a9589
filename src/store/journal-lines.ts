import { formatRecord, type LedgerRecord, parseRecord } from "../ledger/record.ts";

/** Journal records as lines, `crc32 json`: the checksum is that of the JSON's bytes, in eight hexadecimal digits. */
export class JournalLines {
  /** Used again for every batch: what is written is on its way to the disk before the next. */
  private buffer = Buffer.alloc(LEAST_BYTES);

  /** The lines one behind the other, valid until the next call, and where each ends in a file of so many bytes before. */
  of(
    batch: readonly { readonly record: LedgerRecord }[],
    before: number,
  ): { bytes: Uint8Array; ends: number[] } {
    const ends: number[] = [];
    let at = 0;
    if (this.buffer.length > MOST_KEPT_BYTES) this.buffer = Buffer.alloc(LEAST_BYTES);
    for (const { record } of batch) {
      const text = formatRecord(record);
      this.reserve(at, CRC_LENGTH + text.length * MOST_BYTES_A_UNIT + SEPARATORS);
      const { buffer } = this;
      const start = at + CRC_LENGTH + 1;
      const end = start + buffer.write(text, start, "utf8");
      buffer.write(crc(buffer.subarray(start, end)), at, "latin1");
      buffer[start - 1] = SPACE;
      buffer[end] = LF;
      at = end + 1;
      ends.push(before + at);
    }
    return { bytes: this.buffer.subarray(0, at), ends };
  }

  private reserve(used: number, more: number): void {
    if (used + more <= this.buffer.length) return;
    const grown = Buffer.alloc((used + more) * 2);
    this.buffer.copy(grown, 0, 0, used);
    this.buffer = grown;
  }
}

/** The records in a file's bytes, in order, with the place where each ends; stops at the first torn line. */
export function* readLines(content: Buffer): Generator<{ record: LedgerRecord; end: number }> {
  for (let start = 0; ; ) {
    const end = content.indexOf(LF, start);
    if (end === -1) return;
    const textStart = start + CRC_LENGTH + 1;
    if (content.toString("latin1", start, start + CRC_LENGTH) !== crc(content.subarray(textStart, end)))
      return;
    start = end + 1;
    yield { record: parseRecord(content.toString("utf8", textStart, end)), end: start };
  }
}

const CRC_LENGTH = 8;
const crc = (bytes: Uint8Array): string => Bun.hash.crc32(bytes).toString(16).padStart(CRC_LENGTH, "0");

const SPACE = 0x20;
const LF = 0x0a;
/** The space and the line feed. */
const SEPARATORS = 2;
/** UTF-8 bytes of one UTF-16 unit. */
const MOST_BYTES_A_UNIT = 3;
const LEAST_BYTES = 64 * 1024;
const MOST_KEPT_BYTES = 16 * 1024 * 1024;
