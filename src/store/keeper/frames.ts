/**
 * What a keeper and a node say to each other: JSON, behind its length in four bytes. Both are of one build, but
 * a build may be replaced while an older process still runs; so the keeper begins by naming its version.
 */
export const KEEPER_PROTOCOL = 6;

export function frameOf(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + body.length);
  frame.writeUInt32BE(body.length);
  body.copy(frame, LENGTH_BYTES);
  return frame;
}

/** Puts messages together again, whatever pieces they come in. */
export class FrameReader {
  private pieces: Buffer[] = [];
  private bytes = 0;

  /** The messages that end with this piece; throws where one is longer than any should be. */
  read(piece: Buffer): unknown[] {
    this.pieces.push(piece);
    this.bytes += piece.length;
    const messages: unknown[] = [];
    for (let size = this.nextSize(); size !== null && this.bytes >= size; size = this.nextSize()) {
      const all = this.pieces.length === 1 ? this.pieces[0]! : Buffer.concat(this.pieces);
      messages.push(JSON.parse(all.toString("utf8", LENGTH_BYTES, size)));
      this.pieces = all.length === size ? [] : [all.subarray(size)];
      this.bytes = all.length - size;
    }
    return messages;
  }

  /** Of the first frame, its length included; null while that is not here. */
  private nextSize(): number | null {
    if (this.bytes < LENGTH_BYTES) return null;
    if (this.pieces[0]!.length < LENGTH_BYTES) this.pieces = [Buffer.concat(this.pieces)];
    const length = this.pieces[0]!.readUInt32BE();
    if (length > MAX_BYTES) throw new FrameTooLong(`a frame of ${length} bytes`);
    return LENGTH_BYTES + length;
  }
}

export class FrameTooLong extends Error {
  override name = "FrameTooLong";
}

const LENGTH_BYTES = 4;
/** A start may send 2,000 ends at once, of some kilobytes each. */
const MAX_BYTES = 64 * 1024 * 1024;
