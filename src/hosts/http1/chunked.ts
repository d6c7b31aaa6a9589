/**
 * The chunked transfer coding (RFC 9112 §7.1), incremental and strict: CR LF only, extensions and trailers
 * dropped, each within a bound. The payload of a whole socket read is moved together inside the read's own
 * buffer, so that ten small chunks cost the reader one answer and no allocation.
 */
export class ChunkedBody {
  /** The last chunk and the trailers have been read. */
  complete = false;
  /** What is wrong with the coding, once something is. */
  fault: string | null = null;
  /** Where in the last decoded buffer the body ended. */
  end = 0;
  private state = State.Size;
  private digits = 0;
  /** The chunk's size while that is read, then what is still to come of it. */
  private left = 0;
  private lineBytes = 0;
  private trailerBytes = 0;

  /**
   * Decodes `bytes` and overwrites them. Returns the payload among them, null when there is none; payload
   * that precedes a fault is returned.
   */
  decode(bytes: Uint8Array): Uint8Array | null {
    let at = 0;
    let payloadFrom = 0;
    let payloadTo = 0;
    while (at < bytes.length && !this.complete && this.fault === null) {
      if (this.state !== State.Data) {
        this.readFrame(bytes[at++]!);
        continue;
      }
      const taken = Math.min(this.left, bytes.length - at);
      if (payloadTo === payloadFrom) payloadFrom = payloadTo = at;
      else bytes.copyWithin(payloadTo, at, at + taken);
      payloadTo += taken;
      at += taken;
      this.left -= taken;
      if (this.left === 0) this.state = State.DataCr;
    }
    this.end = at;
    return payloadTo === payloadFrom ? null : portion(bytes, payloadFrom, payloadTo);
  }

  private readFrame(byte: number): void {
    switch (this.state) {
      case State.Size:
        this.readSize(byte);
        return;
      case State.Extension:
        if (byte === CR) this.state = State.SizeLf;
        else if (isControl(byte)) this.fault = "a control character in a chunk extension";
        else if (++this.lineBytes > EXTENSION_BYTES_MAX) this.fault = "a chunk extension that is too long";
        return;
      case State.SizeLf:
        if (byte !== LF) this.fault = "a chunk size that does not end in CR LF";
        else this.state = this.left === 0 ? State.TrailerStart : State.Data;
        return;
      case State.DataCr:
        if (byte !== CR) this.fault = "a chunk longer than its size";
        else this.state = State.DataLf;
        return;
      case State.DataLf:
        if (byte !== LF) this.fault = "a chunk longer than its size";
        else this.expectSize();
        return;
      case State.TrailerStart:
        if (byte === CR) this.state = State.LastLf;
        else if (byte === SPACE || byte === TAB) this.fault = "a folded trailer field";
        else {
          this.state = State.Trailer;
          this.readTrailer(byte);
        }
        return;
      case State.Trailer:
        if (byte === CR) this.state = State.TrailerLf;
        else this.readTrailer(byte);
        return;
      case State.TrailerLf:
        if (byte !== LF) this.fault = "a trailer field that does not end in CR LF";
        else this.state = State.TrailerStart;
        return;
      case State.LastLf:
        if (byte !== LF) this.fault = "a last chunk that does not end in CR LF";
        else this.complete = true;
        return;
    }
  }

  private readSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      if (++this.digits > SIZE_DIGITS_MAX) this.fault = "a chunk size that is too long";
      this.left = this.left * 16 + digit;
      return;
    }
    if (this.digits === 0) this.fault = "a chunk without a size";
    else if (byte === CR) this.state = State.SizeLf;
    else if (byte === SEMICOLON) this.state = State.Extension;
    else this.fault = "a chunk size that is not hexadecimal";
  }

  private readTrailer(byte: number): void {
    if (isControl(byte)) this.fault = "a control character in a trailer field";
    else if (++this.trailerBytes > TRAILER_BYTES_MAX) this.fault = "trailer fields that are too long";
  }

  private expectSize(): void {
    this.state = State.Size;
    this.digits = 0;
    this.left = 0;
    this.lineBytes = 0;
  }
}

/**
 * A part of a socket's read. Small arrays live inside JavaScriptCore's heap, and the first view on one moves
 * it out of there: below a kilobyte a copy costs a third of that (0.1 against 0.35 µs).
 */
export function portion(bytes: Uint8Array, from: number, to: number): Uint8Array {
  if (from === 0 && to === bytes.length) return bytes;
  return to - from <= COPIED_BYTES_MAX ? bytes.slice(from, to) : bytes.subarray(from, to);
}

const COPIED_BYTES_MAX = 1000;

enum State {
  Size,
  Extension,
  SizeLf,
  Data,
  DataCr,
  DataLf,
  TrailerStart,
  Trailer,
  TrailerLf,
  LastLf,
}

/** 12 digits name 256 TiB and stay exact in a double. */
const SIZE_DIGITS_MAX = 12;
const EXTENSION_BYTES_MAX = 1024;
const TRAILER_BYTES_MAX = 16 * 1024;

const CR = 0x0d;
const LF = 0x0a;
const SPACE = 0x20;
const TAB = 0x09;
const SEMICOLON = 0x3b;

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

const isControl = (byte: number): boolean => (byte < SPACE && byte !== TAB) || byte === 0x7f;
