import type { GenerationRequest } from "../surface.ts";
import type { AnswerEvents } from "./answer-events.ts";

/**
 * Responses has no stop sequences, so the gateway obeys those of its clients: text ends where the first one begins. The
 * host writes on, and the client is charged for what the host counts.
 */
export class StopCutter {
  /** The sequence at which the text ended. */
  found: string | null = null;
  /** The end of the text so far, which may be the beginning of a sequence. */
  private held = "";
  private heldLogprobs: unknown[] | undefined;

  constructor(
    private readonly sequences: readonly string[],
    private readonly writer: Pick<AnswerEvents, "delta" | "close">,
  ) {}

  /** Passes on what comes before a sequence, and closes the block there. */
  delta(more: string, logprobs: readonly unknown[] | undefined): void {
    const text = this.held + more;
    if (logprobs !== undefined) this.heldLogprobs = [...(this.heldLogprobs ?? []), ...logprobs];
    const end = this.endOfShown(text);
    if (this.found !== null) {
      // Half of the token in which a sequence begins is shown, and no probability is true of that half.
      if (end > 0) this.writer.delta(text.slice(0, end));
      this.writer.close(null);
      return;
    }
    this.held = text.slice(end);
    if (end === 0) return;
    this.writer.delta(text.slice(0, end), this.heldLogprobs);
    this.heldLogprobs = undefined;
  }

  /** The block ends: what might have been the beginning of a sequence is none. */
  flush(): void {
    if (this.held !== "") this.writer.delta(this.held, this.heldLogprobs);
    this.held = "";
    this.heldLogprobs = undefined;
  }

  /** At a sequence, which is then `found`, or where one may begin. */
  private endOfShown(text: string): number {
    let end = text.length;
    for (const sequence of this.sequences) {
      const at = text.indexOf(sequence);
      if (at === -1 || (this.found !== null && at >= end)) continue;
      end = at;
      this.found = sequence;
    }
    if (this.found !== null) return end;
    for (const sequence of this.sequences) {
      const first = Math.max(0, text.length - sequence.length + 1);
      for (
        let at = text.indexOf(sequence[0]!, first);
        at !== -1 && at < end;
        at = text.indexOf(sequence[0]!, at + 1)
      ) {
        if (sequence.startsWith(text.slice(at))) end = at;
      }
    }
    return end;
  }
}

export function stopSequences({ surface, json }: Pick<GenerationRequest, "surface" | "json">): string[] {
  const stop = surface === "chat.completions" ? json.stop : json.stop_sequences;
  return (Array.isArray(stop) ? stop : [stop]).filter(
    (sequence): sequence is string => typeof sequence === "string" && sequence !== "",
  );
}

/** The bounds of a search in every delta; OpenAI takes four sequences. */
export const MAX_SEQUENCES = 64;
export const MAX_SEQUENCE_LENGTH = 1_024;
