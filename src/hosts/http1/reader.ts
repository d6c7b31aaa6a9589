import { HostFault } from "../transport.ts";
import { ChunkedBody, portion } from "./chunked.ts";
import { HEAD_BYTES_MAX, malformed, parseHead, type ResponseHead } from "./head.ts";

/**
 * Reads one HTTP/1.1 response from the bytes of a socket, at any split of them. Pure: bytes in, a head and
 * body bytes out. It would rather refuse than guess, since a response that two readers frame differently
 * hands one caller's answer to another on a shared socket.
 */
export class ResponseReader {
  /** The final head, once it has arrived whole. */
  head: ResponseHead | null = null;
  /** The body reached its proper end. */
  complete = false;
  fault: HostFault | null = null;
  /** At least one byte of an answer has arrived. */
  started = false;
  /**
   * Bytes followed the response's end: nobody asked for them, so the socket cannot be trusted with another
   * request.
   */
  surplus = false;

  private held = NOTHING;
  private heldBytes = 0;
  private interims = 0;
  private bodyLeft = 0;
  private chunked: ChunkedBody | null = null;

  /**
   * Takes over `bytes` (they may be overwritten) and returns the body's bytes among them, null when there are
   * none. Look at `head`, `complete` and `fault` afterwards; body bytes that precede a fault are returned.
   */
  push(bytes: Uint8Array): Uint8Array | null {
    if (bytes.length === 0 || this.fault !== null) return null;
    this.started = true;
    if (this.head !== null) return this.readBody(bytes);
    const rest = this.readHead(bytes);
    return rest === null || this.head === null ? null : this.readBody(rest);
  }

  /** The peer closed the socket: cleanly, or by a reset. */
  end(clean: boolean): void {
    if (this.complete || this.fault !== null) return;
    if (this.head === null)
      this.fault = new HostFault("reset", "The host closed the connection before it answered.");
    else if (this.head.framing === "close" && clean) this.complete = true;
    else this.fault = new HostFault("truncated", "The host closed the connection inside its answer.");
  }

  /** Returns what follows the final head; null while that has not arrived whole, and after a fault. */
  private readHead(bytes: Uint8Array): Uint8Array | null {
    let rest = this.heldBytes === 0 ? bytes : this.hold(bytes);
    // A head found in held bytes may have its blank line begin in an earlier read.
    for (let from = Math.max(0, rest.length - bytes.length - 3); ; from = 0) {
      const end = indexOf.call(rest, HEAD_END, from);
      if (end + 4 > HEAD_BYTES_MAX) return this.fail(`a head larger than ${HEAD_BYTES_MAX} bytes`);
      if (end < 0) return this.waitForHead(rest, bytes.length);
      const head = parseHead(decode.call(rest, "latin1", 0, end));
      if (head instanceof HostFault) {
        this.fault = head;
        return null;
      }
      rest = portion(rest, end + 4, rest.length);
      this.heldBytes = 0;
      if (head.status >= 200) {
        this.held = NOTHING;
        this.begin(head);
        return rest;
      }
      if (head.status === 101) return this.fail("a protocol switch that was not asked for");
      if (++this.interims > INTERIM_HEADS_MAX) return this.fail("too many interim responses");
    }
  }

  private begin(head: ResponseHead): void {
    this.head = head;
    if (head.framing === "chunked") this.chunked = new ChunkedBody();
    else if (head.framing === "close") this.bodyLeft = Number.POSITIVE_INFINITY;
    else this.bodyLeft = head.framing;
  }

  private readBody(bytes: Uint8Array): Uint8Array | null {
    const chunked = this.chunked;
    if (chunked !== null) {
      const payload = chunked.decode(bytes);
      if (chunked.fault !== null) this.fault = malformed(chunked.fault);
      this.complete = chunked.complete;
      this.surplus = chunked.complete && chunked.end < bytes.length;
      return payload;
    }
    const end = Math.min(bytes.length, this.bodyLeft);
    this.bodyLeft -= end;
    this.complete = this.bodyLeft === 0;
    this.surplus = end < bytes.length;
    return end === 0 ? null : portion(bytes, 0, end);
  }

  /**
   * Refuses early what can never become a head, so that a peer speaking another protocol is not waited for.
   */
  private waitForHead(rest: Uint8Array, fresh: number): null {
    if (rest.length >= HEAD_BYTES_MAX) return this.fail(`a head larger than ${HEAD_BYTES_MAX} bytes`);
    for (let at = 0; at < Math.min(rest.length, PROTOCOL.length); at++) {
      if (rest[at] !== PROTOCOL[at]) return this.fail("it is not HTTP/1.1");
    }
    for (
      let at = rest.indexOf(LF, Math.max(0, rest.length - fresh));
      at >= 0;
      at = rest.indexOf(LF, at + 1)
    ) {
      if (rest[at - 1] !== CR) return this.fail("a lone line break in the response head");
    }
    if (this.heldBytes === 0) this.hold(rest);
    return null;
  }

  /**
   * Appends to the held bytes and returns them all; doubles its room, so that a head that drips in costs
   * linear time.
   */
  private hold(bytes: Uint8Array): Uint8Array {
    const needed = this.heldBytes + bytes.length;
    if (needed > this.held.length) {
      const larger = new Uint8Array(Math.max(needed, this.held.length * 2, HELD_BYTES_MIN));
      larger.set(this.held.subarray(0, this.heldBytes));
      this.held = larger;
    }
    this.held.set(bytes, this.heldBytes);
    this.heldBytes = needed;
    return this.held.subarray(0, needed);
  }

  private fail(what: string): null {
    this.fault = malformed(what);
    return null;
  }
}

const NOTHING = new Uint8Array(0);
const HELD_BYTES_MIN = 1024;
const INTERIM_HEADS_MAX = 16;
const PROTOCOL = Uint8Array.from("HTTP/1.", (character) => character.charCodeAt(0));
const CR = 0x0d;
const LF = 0x0a;
const HEAD_END = Uint8Array.of(CR, LF, CR, LF);

/**
 * Node's search and latin-1 decoding, which are native and take any bytes; a Buffer over them would cost more
 * than either.
 */
const { indexOf, toString: decode } = Buffer.prototype;
