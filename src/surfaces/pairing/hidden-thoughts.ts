import { asObject } from "../json/json.ts";
import type { GenerationRequest } from "../surface.ts";
import { type AnswerEvents, type OpenBlock, WithholdingEvents } from "../vocabulary/answer-events.ts";
import type { Seal } from "../vocabulary/conversation.ts";

/**
 * What a host answers, with its thoughts only where the client wants to see them: OpenRouter's
 * `reasoning.exclude`, and `include_reasoning` before it, on chat completions (openrouter.ai, "Reasoning
 * Tokens"); Groq's `reasoning_format: "hidden"` says the same. The host thinks all the same, so whoever counts tokens stands before this. `onSilence` is called
 * now and then while nothing else is told.
 */
export function asShown(
  next: AnswerEvents,
  { surface, json }: Pick<GenerationRequest, "surface" | "json">,
  onSilence: () => void,
): AnswerEvents {
  return surface === "chat.completions" && hidesThoughts(json) ? new ThoughtHider(next, onSilence) : next;
}

/** Where the two wishes disagree, what was not to be seen is not shown. */
const hidesThoughts = (json: GenerationRequest["json"]): boolean =>
  json.include_reasoning === false ||
  json.reasoning_format === "hidden" ||
  asObject(json.reasoning)?.exclude === true;

/**
 * Seals go with the thoughts: a signature without the text that it signs is refused by the host that made it.
 */
class ThoughtHider extends WithholdingEvents {
  private hiding = false;

  override open(block: OpenBlock): void {
    this.hiding = block.kind === "reasoning";
    if (!this.hiding) this.next.open(block);
  }

  override delta(text: string, logprobs?: readonly unknown[]): void {
    if (!this.hiding) this.next.delta(text, logprobs);
    else this.withhold();
  }

  override close(seal: Seal | null): void {
    if (!this.hiding) this.next.close(seal);
  }
}
