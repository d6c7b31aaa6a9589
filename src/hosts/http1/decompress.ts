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
  private readonly source: CompressedBody;
  private readonly coding: string;
  /** Made when the first bytes come: a body without any ends properly. */
  private codec: Transform | null = null;
  private writing = false;
  private sourceEnded = false;
  private end: null | HostFault | undefined = undefined;
  private sleeper: (() => void) | null = null;

  constructor(source: CompressedBody, coding: string) {
    this.status = source.status;
    this.headers = new Map(source.headers);
    this.headers.delete("content-encoding");
    // It counted the compressed bytes.
    this.headers.delete("content-length");
    this.source = source;
    this.coding = coding;
  }

  takeBody(): HostBytes {
    return bytesOf(this);
  }

  /**
   * Each turn takes output if there is some, waits for the codec if it is busy, and else gives it more input.
   */
  async read(): Promise<Read> {
    for (;;) {
      if (this.source.cancelled) {
        this.codec?.destroy();
        return this.source.read();
      }
      const output: Uint8Array | null = this.codec?.read() ?? null;
      if (output !== null) return output;
      if (this.end !== undefined) return this.end;
      if (this.writing || this.sourceEnded) await this.codecStirs();
      else this.feed(await this.source.read());
    }
  }

  private feed(input: Read): void {
    if (input instanceof HostFault) {
      this.finish(input);
    } else if (input !== null) {
      this.write(input);
    } else {
      this.sourceEnded = true;
      if (this.codec === null) this.finish(null);
      else this.codec.end();
    }
  }

  private write(input: Uint8Array): void {
    const codec = (this.codec ??= this.openCodec(input[0]!));
    if (codec === null) {
      this.finish(malformed("a content-encoding that was not asked for and is unknown"));
      return;
    }
    this.writing = true;
    codec.write(input, () => {
      this.writing = false;
      this.stir();
    });
  }

  private openCodec(firstByte: number): Transform | null {
    const codec = codecFor(this.coding, firstByte);
    codec?.on("readable", this.stir);
    codec?.on("end", () => this.finish(null));
    codec?.on("error", (error) => this.finish(codecFault(error)));
    return codec;
  }

  private finish(end: null | HostFault): void {
    if (this.end !== undefined) return;
    this.end = end;
    if (end !== null) this.codec?.destroy();
    this.stir();
  }

  private codecStirs(): Promise<void> {
    return new Promise((wake) => {
      this.sleeper = wake;
    });
  }

  private readonly stir = (): void => {
    const wake = this.sleeper;
    this.sleeper = null;
    wake?.();
  };
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

function codecFault(error: Error): HostFault {
  if ((error as NodeJS.ErrnoException).code === "Z_BUF_ERROR") {
    return new HostFault("truncated", "The host's compressed body ended early.");
  }
  return malformed(`its compressed body cannot be read, ${error.message}`);
}
