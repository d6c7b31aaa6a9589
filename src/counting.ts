/**
 * Exact counts of prompts, in a thread of its own: tokenizing a long prompt takes longer than any stream should wait. The
 * thread starts with the first count and is bounded: beyond so many prompts waiting, the caller falls back to the bound.
 */
export class Counting {
  private thread: Worker | null = null;
  private readonly waiting = new Map<number, (tokens: number) => void>();
  private asked = 0;

  /** Tokens of the request body, or `fallback` when too much is waiting or the thread fails. */
  count(body: Uint8Array, fallback: number): Promise<number> {
    if (this.waiting.size >= MAX_WAITING) return Promise.resolve(fallback);
    const id = this.asked++;
    return new Promise((resolve) => {
      this.waiting.set(id, (tokens) => resolve(tokens < 0 ? fallback : tokens));
      this.running().postMessage({ id, body });
    });
  }

  stop(): void {
    this.thread?.terminate();
    this.thread = null;
    this.release();
  }

  private running(): Worker {
    if (this.thread !== null) return this.thread;
    const thread = new Worker(new URL("./counting-thread.ts", import.meta.url), {
      ref: false,
    } as WorkerOptions);
    thread.onmessage = ({ data }: MessageEvent<{ id: number; tokens: number }>) => {
      this.waiting.get(data.id)?.(data.tokens);
      this.waiting.delete(data.id);
    };
    thread.onerror = () => this.stop();
    this.thread = thread;
    return thread;
  }

  private release(): void {
    for (const answer of this.waiting.values()) answer(-1);
    this.waiting.clear();
  }
}

const MAX_WAITING = 64;
