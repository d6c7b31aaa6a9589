import type { Sink, StreamedAnswer } from "./answer.ts";

/**
 * A stream that several clients read, each from its first byte and at its own pace. As long as there is room for
 * all of it, the host writes on, even without readers. Once there is not, what all readers have had is dropped, so that
 * nobody else can start; the host waits for the slowest, and is left with the last of them.
 */
export class SharedStream implements Sink {
  private chunks: Uint8Array[] = [];
  /** Chunks that were let go. */
  private gone = 0;
  private ended = false;
  private kept = true;
  private readonly readers = new Set<SharedStreamReader>();
  private more = Promise.withResolvers<void>();
  private drained: PromiseWithResolvers<boolean> | null = null;

  constructor(
    private readonly room: StreamRoom,
    /** Clients that are about to read. */
    private readonly expected: () => number,
  ) {}

  /** From its first byte. */
  get canBegin(): boolean {
    return this.gone === 0;
  }

  /** Only while it can begin. */
  reader(status: number, headers: StreamedAnswer["headers"], signal: AbortSignal): StreamedAnswer {
    const reader = new SharedStreamReader(this, status, headers, signal);
    if (!signal.aborted) this.readers.add(reader);
    return reader;
  }

  write(bytes: Uint8Array): boolean | Promise<boolean> {
    if (this.kept && !this.room.take(bytes.length + CHUNK_OVERHEAD)) this.kept = false;
    // Copied (`slice` of a Buffer would not): the relay's bytes may be part of a buffer that is used again.
    this.chunks.push(new Uint8Array(bytes));
    this.wake();
    return this.kept || this.untilDrained();
  }

  close(): void {
    this.ended = true;
    this.wake();
  }

  /** Keeps nothing for those who might come. */
  letGo(): void {
    this.kept = false;
    this.shrink();
  }

  /** What there is from then on, a part of it at a time; null at the end. */
  async from(position: number): Promise<{ readonly bytes: Uint8Array; readonly next: number } | null> {
    while (position - this.gone >= this.chunks.length) {
      if (this.ended) return null;
      await this.more.promise;
    }
    const parts: Uint8Array[] = [];
    let length = 0;
    for (let at = position - this.gone; at < this.chunks.length && length < MAX_AT_ONCE; at++) {
      parts.push(this.chunks[at]!);
      length += this.chunks[at]!.length;
    }
    return { bytes: parts.length === 1 ? parts[0]! : Buffer.concat(parts), next: position + parts.length };
  }

  leave(reader: SharedStreamReader): void {
    if (this.readers.delete(reader)) this.shrink();
  }

  /** A reader has gone on, or one that was expected has come. */
  shrink(): void {
    if (this.kept || this.expected() > 0) return;
    let slowest = this.gone + this.chunks.length;
    for (const { position } of this.readers) slowest = Math.min(slowest, position);
    this.chunks.splice(0, slowest - this.gone);
    this.gone = slowest;
    if (this.chunks.length > 0) return;
    this.room.giveBack();
    this.drained?.resolve(this.readers.size > 0);
    this.drained = null;
  }

  private untilDrained(): Promise<boolean> {
    this.drained ??= Promise.withResolvers<boolean>();
    const { promise } = this.drained;
    this.shrink();
    return promise;
  }

  private wake(): void {
    this.more.resolve();
    this.more = Promise.withResolvers<void>();
  }
}

/** One client's way through it. */
class SharedStreamReader implements StreamedAnswer {
  readonly kind = "stream";
  /** Chunks that its client has taken. */
  position = 0;
  private started = false;

  constructor(
    private readonly stream: SharedStream,
    readonly status: number,
    readonly headers: StreamedAnswer["headers"],
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", this);
  }

  async run(sink: Sink): Promise<void> {
    this.started = true;
    this.signal.removeEventListener("abort", this);
    for (;;) {
      const part = await this.stream.from(this.position);
      if (part === null) break;
      const taken = sink.write(part.bytes);
      if (!(taken === true || (await taken))) break;
      this.position = part.next;
      this.stream.shrink();
    }
    this.stream.leave(this);
    sink.close();
  }

  /** @internal The client leaves before its response is pulled. */
  handleEvent(): void {
    if (!this.started) this.stream.leave(this);
  }
}

export interface StreamRoom {
  /** False when there is no more. */
  take(bytes: number): boolean;
  /** All of it, once. */
  giveBack(): void;
}

/** What each chunk takes next to its bytes. */
const CHUNK_OVERHEAD = 128;
const MAX_AT_ONCE = 64 * 1024;
