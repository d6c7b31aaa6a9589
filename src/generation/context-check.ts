import type { Model } from "../catalog/catalog.ts";
import type { FailoverOutcome } from "../hosts/failover.ts";
import type { Plan } from "../routing/plan.ts";
import { contextLengths } from "../surfaces/context-lengths.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { type Refusal, refuse } from "../units/errors/refusal.ts";
import type { PromptCount } from "./prompt-count.ts";
import { type ConversationSize, textBytesOf } from "./prompt-sizes.ts";
import { widestModel } from "./reservation-size.ts";

/**
 * Whether the exact count of a prompt has to be known, because its text may not fit its model's context; null where it
 * surely fits.
 */
export function checkContext(
  request: GenerationRequest,
  plan: Plan,
  sizeOf: () => ConversationSize,
): ContextCheck | null {
  const model = widestModel(plan);
  const textBytes = textBytesOf(request);
  // Smaller prompts need no count, and the next turn will be no larger than the context either.
  if (textBytes * REMEMBERED_SHARE <= model.contextLength) return null;
  const size = sizeOf();
  const doubt =
    size.most <= model.contextLength ? "none" : size.estimate <= model.contextLength ? "small" : "large";
  return { size, doubt, refusal: (prompt) => compareCount(request, prompt, model, size) };
}

export interface ContextCheck {
  readonly size: ConversationSize;
  /** Where it is small, the host can start meanwhile; where it is large, the host would be sent a long body in vain. */
  readonly doubt: "none" | "small" | "large";
  /** Why the prompt is refused, by its exact count; null where it fits, or cannot be counted now and is left to the host. */
  refusal(prompt: PromptCount): Promise<Refusal | null>;
}

/** A conversation is remembered from this part of its model's context on. */
const REMEMBERED_SHARE = 2;

async function compareCount(
  request: GenerationRequest,
  prompt: PromptCount,
  { id, contextLength: widest }: Model,
  size: ConversationSize,
): Promise<Refusal | null> {
  const tokens = await prompt.text();
  if (tokens === null) return null;
  if (tokens <= widest) {
    size.has(tokens);
    return null;
  }
  // Agents know that they have to shorten a conversation by the words of Anthropic's host, and of OpenAI's.
  return refuse(
    "context_too_long",
    `The prompt is too long: ${tokens} tokens > ${widest} maximum. This model's maximum context length is ${widest} tokens (${id}): shorten the prompt by ${tokens - widest} tokens, or use a model with a larger context.`,
    { param: request.surface === "responses" ? "input" : "messages" },
  );
}

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
