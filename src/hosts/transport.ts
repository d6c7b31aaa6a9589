import type { Host } from "../catalog/catalog.ts";
import type { HostFaultKind } from "../ledger/receipt.ts";
import { withoutByteOrderMark } from "../units/byte-order-mark.ts";

/**
 * The way to a host's socket. One interface, so that production, the simulator and the benches choose their
 * own; see hosts/http1/transport for the real one. An exchange is one POST: it is never repeated here.
 */
export interface Transport {
  open(call: HostCall): HostExchange;
  /** Closes idle connections; those in use finish. */
  close(): void;
}

export interface HostCall {
  readonly to: Destination;
  /** The request's own, lower-case names. Where the destination has the same, the destination's count. */
  readonly headers: Readonly<Record<string, string>>;
  /** In parts that are sent in order, and must not change until then. */
  readonly body: readonly Uint8Array[] | null;
  /** Never on a pooled socket: for the one repetition after a `stale` fault. */
  readonly fresh?: boolean;
}

/**
 * Where requests go, and what all of them say there. One object for all of them, which is never changed: a
 * transport keeps what it makes of it.
 */
export interface Destination {
  readonly host: Host;
  readonly method: "POST" | "GET";
  /** Appended to the host's base address: `/chat/completions`. */
  readonly path: string;
  /**
   * Lower-case names. Authentication is already among them; `host`, `content-length` and `connection` are the
   * transport's.
   */
  readonly headers: Readonly<Record<string, string>>;
}

export interface HostExchange {
  /** Settles once, with the response head or with why there is none; never rejects. */
  readonly reply: Promise<HostReply | HostFault>;
  /**
   * Ends the exchange wherever it stands and frees its socket; safe at any time. `reply` and `read` then say
   * `cancelled`.
   */
  cancel(): void;
  /**
   * The answer has said that it is over, and nobody reads on. Its body may still have to end: hosts write the
   * end of a stream apart from its last event. The socket is kept for that a moment, so that it can be used
   * again.
   */
  done(): void;
}

export interface HostReply {
  readonly status: number;
  /** Lower-case names; repeated fields joined by ", ". */
  readonly headers: Pick<ReadonlyMap<string, string>, "get" | "has">;
  /**
   * The next bytes of the body, unchunked and decompressed; null at its proper end; a fault when it ended
   * otherwise. Answers at once when bytes are waiting. Call again only after the last answer. What is not
   * read stays in the socket.
   */
  read(): Read | Promise<Read>;
  /**
   * What `read` would still read, without the head: a stream goes on for minutes when nobody looks at that any
   * more.
   */
  takeBody(): HostBytes;
}

/**
 * Whether an answer that was asked for as a stream is a whole one, by its first bytes. No line of a stream
 * begins so, whatever the host calls it: some streams go by the name of JSON. Before the whole answer there
 * may be spaces, by which a host shows that it is at work.
 */
export function beginsWhole(read: Uint8Array, { headers }: Pick<HostReply, "headers">): boolean {
  const bytes = withoutByteOrderMark(read);
  let at = 0;
  while (at < bytes.length && bytes[at]! <= SPACE) at += 1;
  return at === bytes.length
    ? headers.get("content-type")?.startsWith("application/json") === true
    : bytes[at] === OPENING_BRACE;
}

/** Whether a whole body is a stream of events: some hosts always stream. */
export const isStream = (body: Uint8Array): boolean =>
  body[0] !== OPENING_BRACE &&
  /^\s*(?:data|event|id|retry)?:/.test(Buffer.from(body.subarray(0, 64)).toString());

const SPACE = 0x20;
const OPENING_BRACE = 0x7b;

export interface HostBytes {
  /**
   * The next bytes at once, or how they ended; undefined when nothing is there yet: then `reader` is called,
   * once. A promise per event would cost more than reading it.
   */
  next(reader: ReadListener): Read | undefined;
}

export interface ReadListener {
  arrived(read: Read): void;
}

/** For bodies that are read by promises. */
export const bytesOf = (body: Pick<HostReply, "read">): HostBytes => ({
  next(reader) {
    const read = body.read();
    if (!(read instanceof Promise)) return read;
    void read.then((later) => reader.arrived(later));
    return undefined;
  },
});

/** Bytes, their proper end, or what broke. */
export type Read = Uint8Array | null | HostFault;

export class HostFault {
  constructor(
    readonly kind: HostFaultKind,
    readonly message: string,
    /**
     * The request went out on a pooled socket that broke before it gave a single byte. Most likely the host
     * had closed it while it was idle and never saw the request, so the same host may be tried once more,
     * with `fresh`.
     */
    readonly stale = false,
  ) {}
}
