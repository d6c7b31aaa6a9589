import type { PromptCount } from "./generation/admission.ts";

/**
 * Exact counts of prompts, in a thread of its own: tokenizing a long prompt takes longer than any stream should wait. The
 * thread starts with the first count and is bounded: beyond so many prompts waiting, the caller falls back to the bound.
 */
export class Counting {
  private thread: Worker | null = null;
  private readonly waiting = new Map<number, (count: PromptCount | null) => void>();
  private asked = 0;

  /** Of the request body; `fallback`, and files of any size, when too much is waiting or the thread fails. */
  count(body: Uint8Array, fallback: number): Promise<PromptCount> {
    const unknown = { text: fallback, files: null };
    if (this.waiting.size >= MAX_WAITING) return Promise.resolve(unknown);
    const id = this.asked++;
    return new Promise((resolve) => {
      this.waiting.set(id, (count) => resolve(count ?? unknown));
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
    thread.onmessage = ({ data }: MessageEvent<{ id: number; count: PromptCount }>) => {
      this.waiting.get(data.id)?.(data.count);
      this.waiting.delete(data.id);
    };
    thread.onerror = () => this.stop();
    this.thread = thread;
    return thread;
  }

  private release(): void {
    for (const answer of this.waiting.values()) answer(null);
    this.waiting.clear();
  }
}

const MAX_WAITING = 64;
