import type { FailoverOutcome } from "../hosts/failover.ts";
import { contextLengths } from "../surfaces/context-lengths.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import type { ContextCheck } from "./admission.ts";
import type { PromptCount } from "./prompt-count.ts";

/**
 * Counts a prompt that probably fits its model's context while a host works on it, and has the host stop if it does
 * not fit. A host that has answered by then took the whole prompt, and serves.
 */
export class ContextWatch {
  /** Set once the prompt was counted and does not fit. */
  tooLong: Refusal | null = null;
  private readonly stop = new AbortController();

  constructor(context: ContextCheck, prompt: PromptCount, client: AbortSignal) {
    if (client.aborted) this.handleEvent();
    else client.addEventListener("abort", this);
    void this.count(context, prompt);
  }

  /** Aborts when the prompt does not fit, or the client leaves. A host that has answered by then does not notice. */
  get signal(): AbortSignal {
    return this.stop.signal;
  }

  /** @internal The client leaves. */
  handleEvent(): void {
    this.stop.abort();
  }

  /** What cannot be counted is left to the host. */
  private async count(context: ContextCheck, prompt: PromptCount): Promise<void> {
    try {
      this.tooLong = await prompt.meanwhile(context.refusal(prompt));
    } catch {
      return;
    }
    if (this.tooLong !== null) this.stop.abort();
  }
}

/**
 * The refusal with the exact count of a prompt that a host found too long without reporting how long it is; null
 * where the host did, where the prompt fits by the count or cannot be counted, and where the host failed for another reason.
 */
export async function countedRefusal(
  outcome: FailoverOutcome,
  context: ContextCheck,
  prompt: PromptCount,
): Promise<Refusal | null> {
  if (outcome.kind !== "rejected" || !outcome.error.contextTooLong) return null;
  context.size.forget();
  const lengths = contextLengths(outcome.error.message);
  return lengths !== null && lengths.tokens !== null ? null : context.refusal(prompt).catch(() => null);
}
