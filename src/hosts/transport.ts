import type { Host } from "../catalog/catalog.ts";
import type { HostFaultKind } from "../ledger/receipt.ts";
import { withoutByteOrderMark } from "../units/byte-order-mark.ts";

/**
 * Sends requests to hosts. Production uses hosts/http1/transport; the simulator and the benches pass in their own. An exchange
 * is one POST, which a transport never repeats.
 */
export interface Transport {
  open(call: HostCall): HostExchange;
  /** Closes idle connections; those in use finish. */
  close(): void;
}

export interface HostCall {
  readonly to: Destination;
  /** The request's own headers, with lower-case names. The destination's take precedence. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parts that are sent in order, and must not change before. */
  readonly body: readonly Uint8Array[] | null;
  /** Never on a pooled socket: for the retry after a `stale` fault. */
  readonly fresh?: boolean;
}

/** Where requests go, with their common headers. One immutable object for all requests: transports cache by it. */
export interface Destination {
  readonly host: Pick<Host, "id" | "baseUrl">;
  readonly method: "POST" | "GET";
  /** Appended to the host's base address: `/chat/completions`. */
  readonly path: string;
  /** Lower-case names, including authentication; the transport adds `host`, `content-length` and `connection`. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface HostExchange {
  /** Resolves once, with the response head or a fault; never rejects. */
  readonly reply: Promise<HostReply | HostFault>;
  /** Ends the exchange and frees its socket, at any time. `reply` and `read` then return `cancelled`. */
  cancel(): void;
  /**
   * The answer is complete, and nobody reads on. Hosts write the end of the body apart from a stream's last event, so the
   * socket waits for it a moment and can then be used again.
   */
  done(): void;
}

export interface HostReply {
  readonly status: number;
  /** Lower-case names; repeated fields joined by ", ". */
  readonly headers: Pick<ReadonlyMap<string, string>, "get" | "has">;
  /**
   * The next bytes of the body, unchunked and decompressed; null at its proper end, a fault at any other. Resolves at once if
   * bytes are waiting. One call at a time; unread bytes stay in the socket.
   */
  read(): Read | Promise<Read>;
  /** The rest of the body without the head, so that a long stream does not keep the head in memory. */
  takeBody(): HostBytes;
}

/**
 * Whether an answer to a streaming request is a whole one, by its first bytes: no line of a stream begins like that. The
 * content type does not tell, because some hosts call streams JSON. Spaces may come first, as keepalives.
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
   * The next bytes or how they ended, at once; undefined if there is nothing yet, and then `listener` is called, once. A promise
   * per event would cost more than reading it.
   */
  next(listener: ReadListener): Read | undefined;
}

export interface ReadListener {
  arrived(read: Read): void;
}

/** For bodies that are read by promises. */
export const bytesOf = (body: Pick<HostReply, "read">): HostBytes => ({
  next(listener) {
    const read = body.read();
    if (!(read instanceof Promise)) return read;
    void read.then((later) => listener.arrived(later));
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
     * The pooled socket broke before the first byte. Most likely the host had closed it while it was idle and never saw the
     * request, so the same host may be tried once more, with `fresh`.
     */
    readonly stale = false,
  ) {}
}
