import type { ConversationId } from "../routing/conversation.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { estimatePrompt } from "../tokens/estimate.ts";
import { boundedCache } from "../units/bounded-cache.ts";

/**
 * How many tokens the prompts of long conversations have, as their hosts last reported. The next turn repeats that
 * prompt and adds to it, and no text has more tokens than bytes: so most turns are known to fit their model's context
 * without a count. A hint: it decides whether a prompt is counted before it goes to a host, and never what is held or
 * charged. Where it is wrong, because a host reported too little or the client replaced its prompt, the host refuses a
 * prompt that is too long, and the conversation is forgotten. A conversation belongs to one balance (routing/conversation).
 */
export class PromptSizes {
  private readonly known: KnownSizes = boundedCache(MAX_CONVERSATIONS);

  of(conversation: ConversationId, request: TextSize): ConversationSize {
    return new ConversationSize(this.known, conversation, textBytesOf(request));
  }
}

/** What is known of the size of one conversation's prompt, at one of its turns. */
export class ConversationSize {
  constructor(
    private readonly known: KnownSizes,
    private readonly conversation: ConversationId,
    private readonly textBytes: number,
  ) {}

  /** The most tokens that the text can have. */
  get most(): number {
    const { textBytes } = this;
    const known = this.known.get(this.conversation);
    return known === undefined
      ? textBytes
      : Math.min(textBytes, known.tokens + Math.max(0, textBytes - known.textBytes));
  }

  /** The tokens that it probably has. */
  get estimate(): number {
    const { textBytes } = this;
    const known = this.known.get(this.conversation);
    return known === undefined
      ? estimatePrompt(textBytes)
      : known.tokens + estimatePrompt(Math.max(0, textBytes - known.textBytes));
  }

  /** A host, or a count, found that the prompt has so many tokens. */
  has(tokens: number): void {
    const { textBytes } = this;
    if (tokens * MAX_BYTES_A_TOKEN < textBytes) return;
    this.known.set(this.conversation, { tokens, textBytes });
  }

  /** A host found the prompt too long. */
  forget(): void {
    this.known.delete(this.conversation);
  }
}

type KnownSizes = ReturnType<typeof boundedCache<ConversationId, KnownSize>>;

interface KnownSize {
  readonly tokens: number;
  /** Bytes of the text that had them. */
  readonly textBytes: number;
}

/** Bytes of a prompt that are text, or the JSON around it. */
export const textBytesOf = ({ promptBound, mediaTokens }: TextSize): number => promptBound - mediaTokens;

type TextSize = Pick<GenerationRequest, "promptBound" | "mediaTokens">;

/** About 2 MB when full. Each had a prompt of half a context, and was charged for it. */
const MAX_CONVERSATIONS = 10_000;
/** No text has fewer tokens than that; a host that reports fewer is not believed. */
const MAX_BYTES_A_TOKEN = 16;
