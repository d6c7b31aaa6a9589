import type { Transform } from "node:stream";
import zlib from "node:zlib";
import { bytesOf, type HostBytes, HostFault, type HostReply, type Read } from "../transport.ts";
import { malformed } from "./head.ts";

/** What a compressed reply is made from: an exchange and its head. */
export interface CompressedBody extends HostReply {
  readonly headers: HostReply["headers"] & Iterable<[string, string]>;
  readonly cancelled: boolean;
}

/**
 * The reply with its content coding undone. Hosts are asked not to compress (see request.ts), so this is
 * the path of the few that do regardless: it may cost a trip through Node's zlib streams, but an event that
 * has arrived whole comes out at once, and a small body that swells to gigabytes is inflated only as fast as
 * it is read.
 */
export function decompressed(reply: CompressedBody): HostReply {
  const coding = reply.headers.get("content-encoding")?.toLowerCase();
  if (coding === undefined || coding === "identity" || coding === "") return reply;
  return new InflatedReply(reply, coding);
}

class InflatedReply implements HostReply {
  readonly status: number;
  readonly headers: Map<string, string>;
  private readonly inflated: AsyncIterator<Uint8Array, null>;
  /** How the body ended, for later reads. */
  private end: null | HostFault | undefined = undefined;

  constructor(
    private readonly source: CompressedBody,
    coding: string,
  ) {
    this.status = source.status;
    this.headers = new Map(source.headers);
    this.headers.delete("content-encoding");
    // It counted the compressed bytes.
    this.headers.delete("content-length");
    this.inflated = inflate(source, coding);
  }

  takeBody(): HostBytes {
    return bytesOf(this);
  }

  async read(): Promise<Read> {
    if (this.source.cancelled) return this.source.read();
    if (this.end !== undefined) return this.end;
    try {
      const { done, value } = await this.inflated.next();
      return done === true ? (this.end = null) : value;
    } catch (error) {
      return (this.end = faultOf(error as Error));
    }
  }
}

async function* inflate(source: CompressedBody, coding: string): AsyncGenerator<Uint8Array, null> {
  const first = await source.read();
  if (first === null) return null;
  if (first instanceof HostFault) throw failure(first);
  const codec = codecFor(coding, first[0]!);
  if (codec === null) throw failure(malformed("a content-encoding that was not asked for and is unknown"));
  void feed(codec, first, source);
  yield* codec as AsyncIterable<Uint8Array>;
  return null;
}

/** As fast as its output is taken, to the end of the body. */
async function feed(codec: Transform, first: Uint8Array, source: CompressedBody): Promise<void> {
  for (let read: Read = first; read !== null; read = await source.read()) {
    if (read instanceof HostFault) return void codec.destroy(failure(read));
    const bytes = read;
    await new Promise<void>((taken) => codec.write(bytes, () => taken()));
    if (codec.destroyed) return;
  }
  codec.end();
}

/** Null for a coding that is not known, a chain of several among them. */
function codecFor(coding: string, firstByte: number): Transform | null {
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return zlib.createGunzip(PROMPT);
    case "deflate":
      // By the standard it has a zlib header; some servers send the bare stream. Method 8 is the only one
      // there is.
      return (firstByte & 0x0f) === 8 ? zlib.createInflate(PROMPT) : zlib.createInflateRaw(PROMPT);
    case "br":
      return zlib.createBrotliDecompress();
    case "zstd":
      return zlib.createZstdDecompress();
    default:
      return null;
  }
}

const PROMPT = { flush: zlib.constants.Z_SYNC_FLUSH };

/** A fault of the host's, as a stream ends with it. */
const failure = (fault: HostFault): Error => new Error(fault.message, { cause: fault });

function faultOf(error: Error): HostFault {
  if (error.cause instanceof HostFault) return error.cause;
  if ((error as NodeJS.ErrnoException).code === "Z_BUF_ERROR") {
    return new HostFault("truncated", "The host's compressed body ended early.");
  }
  return malformed(`its compressed body cannot be read, ${error.message}`);
}
