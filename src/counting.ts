import { type Refusal, refused } from "./errors/refusal.ts";
import type { Key } from "./keys/key.ts";
import type { CountAllowance } from "./limits/count-allowance.ts";
import { SURFACES } from "./surfaces/surfaces.ts";

/**
 * Exact counts of prompts, in a thread of its own: tokenizing a long prompt takes longer than any stream
 * should wait. The thread starts with the first count and is bounded: beyond so many prompts waiting, the
 * caller stays with the bound.
 */
export class Counting {
  private thread: Worker | null = null;
  private readonly waiting = new Map<number, (tokens: number | null) => void>();
  private asked = 0;

  /**
   * Of a request body; null when it cannot be told: too much is waiting, the thread fails, a file may be of
   * any size.
   */
  count(counted: Counted, body: Uint8Array): Promise<number | null> {
    if (this.waiting.size >= MAX_WAITING) return Promise.resolve(null);
    const id = this.asked++;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.running().postMessage({ id, body, counted });
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
    thread.onmessage = ({ data }: MessageEvent<{ id: number; tokens: number | null }>) => {
      this.waiting.get(data.id)?.(data.tokens);
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

/** The text's tokens, or the most that the embedded files come to. */
export type Counted = "text" | "files";

const MAX_WAITING = 64;

export interface CountDesk {
  readonly counting: Counting;
  readonly allowance: CountAllowance;
  /** Why the key may not name the model. */
  nameRefusal(model: string, key: Key): Refusal | null;
}

/**
 * Input tokens of a Messages request, as Anthropic's endpoint for that counts them; estimated where the
 * balance has had too many counted, or too much is waiting.
 */
export async function countMessages(
  body: Uint8Array,
  key: Key,
  { counting, allowance, nameRefusal }: CountDesk,
): Promise<number | Refusal> {
  const request = SURFACES.messages.readRequest(withCeiling(body));
  if (refused(request)) return request;
  const unnamed = nameRefusal(request.model, key);
  if (unnamed !== null) return unnamed;
  const counts = allowance.take(key.balanceId, request.body.length) !== null;
  return (counts ? await counting.count("text", request.body) : null) ?? request.promptEstimate;
}

/** That endpoint takes a request without a ceiling. */
function withCeiling(body: Uint8Array): Uint8Array {
  try {
    const json = JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>;
    if (typeof json !== "object" || json === null || "max_tokens" in json) return body;
    return new TextEncoder().encode(JSON.stringify({ ...json, max_tokens: 1 }));
  } catch {
    return body;
  }
}
