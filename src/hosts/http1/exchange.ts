import { assert } from "../../units/assert.ts";
import type { Clock, Timer } from "../../units/clock.ts";
import {
  type HostBytes,
  type HostExchange,
  HostFault,
  type HostReply,
  type Read,
  type ReadListener,
} from "../transport.ts";
import type { HostConnection, Tenant } from "./connection.ts";
import { type CompressedBody, decompressed } from "./decompress.ts";
import { type HeaderFields, NO_FIELDS } from "./fields.ts";
import type { Pool } from "./pool.ts";
import { ResponseReader } from "./reader.ts";
import type { RequestBytes } from "./request.ts";

/**
 * One POST and its answer. The socket pushes, the caller pulls: what has arrived and was not read waits here
 * up to a high-water mark, the rest in the socket. The socket is given back as soon as the answer has arrived
 * whole, read or not.
 */
export class Http1Exchange implements HostExchange, Tenant, CompressedBody, HostBytes {
  readonly reply: Promise<HostReply | HostFault>;
  /** Null once it has been called. */
  private settleReply: ((reply: HostReply | HostFault) => void) | null;
  private connection: HostConnection | null = null;
  private readonly reader = new ResponseReader();

  private readonly arrived: Uint8Array[] = [];
  private firstArrived = 0;
  private unreadBytes = 0;
  private waiting: ReadListener | null = null;
  /** Runs while nobody reads on, and the body has to end. */
  private lastBytesTimer: Timer | null = null;
  private lastBytesLeft = MAX_LAST_BYTES;
  /** Undefined until the body ended; then what `read` says after the last bytes. */
  private end: null | HostFault | undefined = undefined;

  /** Null once the connection has it: an answer may last for minutes, and the request may be megabytes. */
  private request: RequestBytes | null;

  constructor(
    request: RequestBytes,
    private readonly clock: Pick<Clock, "after">,
  ) {
    this.request = request;
    const { promise, resolve } = Promise.withResolvers<HostReply | HostFault>();
    this.reply = promise;
    this.settleReply = resolve;
  }

  takeRequest(): RequestBytes {
    assert(this.request !== null, "a request was sent twice");
    const request = this.request;
    this.request = null;
    return request;
  }

  begin(pool: Pool, fresh: boolean): void {
    const connection = pool.connect(this, fresh);
    // A dial may fail before `connect` returns.
    if (this.end !== undefined) return;
    if (connection !== null) this.connection = connection;
    else
      this.failed(
        new HostFault(
          "refused",
          `${pool.limits.maxSockets} sockets to ${pool.endpoint.origin} are already open.`,
        ),
      );
  }

  cancel(): void {
    // Read to its end already: nothing is left to cancel, and the socket has long gone back.
    if (this.end === null && this.unreadBytes === 0) return;
    this.connection?.release(false, null);
    this.connection = null;
    this.arrived.length = this.firstArrived = this.unreadBytes = 0;
    this.finish(CANCELLED);
  }

  done(): void {
    if (this.end !== undefined || !this.reader.started) return this.cancel();
    this.lastBytesTimer ??= this.clock.after(LAST_BYTES_MS, () => this.cancel());
    const { unreadBytes } = this;
    this.arrived.length = this.firstArrived = this.unreadBytes = 0;
    this.letGo(unreadBytes);
    this.connection?.resume();
  }

  get cancelled(): boolean {
    return this.end === CANCELLED;
  }

  read(): Read | Promise<Read> {
    if (this.unreadBytes > 0) return this.takeArrived();
    if (this.end !== undefined) return this.end;
    return new Promise((arrived) => this.wait({ arrived }));
  }

  next(listener: ReadListener): Read | undefined {
    if (this.unreadBytes > 0) return this.takeArrived();
    if (this.end === undefined) this.wait(listener);
    return this.end;
  }

  private wait(listener: ReadListener): void {
    assert(this.waiting === null, "a body is read by one reader at a time");
    this.waiting = listener;
  }

  received(bytes: Uint8Array): void {
    const reader = this.reader;
    const body = reader.push(bytes);
    if (this.settleReply !== null && reader.head !== null) this.settle(decompressed(this));
    if (body !== null) this.deliver(body);
    if (reader.complete) this.complete();
    else if (reader.fault !== null) {
      this.connection?.release(false, null);
      this.failed(reader.fault);
    } else if (this.unreadBytes > HIGH_WATER_BYTES) this.connection?.pause();
  }

  lost(clean: boolean, reused: boolean): void {
    const reader = this.reader;
    this.connection = null;
    const stale = reused && !reader.started;
    reader.end(clean);
    if (reader.complete) this.finish(null);
    else this.finish(stale ? STALE : reader.fault!);
  }

  failed(fault: HostFault): void {
    this.connection = null;
    this.finish(fault);
  }

  get status(): number {
    return this.reader.head!.status;
  }

  get headers(): HeaderFields {
    return this.reader.head!.headers;
  }

  /** Nobody looks at the fields any more. */
  takeBody(): HostBytes {
    this.reader.head!.headers = NO_FIELDS;
    return this;
  }

  private settle(reply: HostReply | HostFault): void {
    const settle = this.settleReply!;
    this.settleReply = null;
    settle(reply);
  }

  private deliver(body: Uint8Array): void {
    if (this.lastBytesTimer !== null) {
      this.letGo(body.length);
    } else if (this.waiting !== null) {
      this.wake(body);
    } else {
      this.arrived.push(body);
      this.unreadBytes += body.length;
    }
  }

  /** A host that goes on and on is not read to an end. */
  private letGo(bytes: number): void {
    this.lastBytesLeft -= bytes;
    if (this.lastBytesLeft < 0) this.cancel();
  }

  private takeArrived(): Uint8Array {
    const bytes = this.arrived[this.firstArrived++]!;
    this.unreadBytes -= bytes.length;
    if (this.firstArrived === this.arrived.length) this.arrived.length = this.firstArrived = 0;
    if (this.unreadBytes <= LOW_WATER_BYTES) this.connection?.resume();
    return bytes;
  }

  private complete(): void {
    const { head, surplus } = this.reader;
    const connection = this.connection;
    this.connection = null;
    connection?.release(head!.keepAlive && !surplus, head!.keepAliveS);
    this.finish(null);
  }

  private finish(end: null | HostFault): void {
    this.end = end;
    this.lastBytesTimer?.cancel();
    if (this.settleReply !== null && end !== null) this.settle(end);
    if (this.waiting !== null) this.wake(end);
  }

  private wake(answer: Read): void {
    const listener = this.waiting!;
    this.waiting = null;
    listener.arrived(answer);
  }
}

/** Unread bytes above this stop the socket; one read of the socket (half a MiB) may come on top. */
const HIGH_WATER_BYTES = 64 * 1024;
/** Below this the socket may go on, so that the next read is under way while the caller handles the last. */
const LOW_WATER_BYTES = 16 * 1024;

/** What comes behind the end of an answer is the end of its body, a round trip later at most. */
const LAST_BYTES_MS = 1_000;
const MAX_LAST_BYTES = 16 * 1024;

const CANCELLED = new HostFault("cancelled", "The exchange was cancelled.");
const STALE = new HostFault(
  "reset",
  "The host had closed the pooled connection before it saw the request.",
  true,
);
