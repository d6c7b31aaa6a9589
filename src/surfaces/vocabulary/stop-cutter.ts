import type { SurfaceName } from "../../catalog/catalog.ts";
import type { GenerationRequest } from "../surface.ts";
import { type AnswerEvents, type Citation, type OpenBlock, WithholdingEvents } from "./answer-events.ts";
import type { Seal } from "./conversation.ts";

/**
 * Responses has no stop sequences, so the gateway keeps them for its clients: the answer is told to where the first
 * one begins. The host writes on, unheard, and what it wrote is charged as it counts it.
 */
export function asCut(
  next: AnswerEvents,
  { surface, json }: Pick<GenerationRequest, "surface" | "json">,
  host: SurfaceName,
  onSilence: () => void,
): AnswerEvents {
  if (host !== "responses") return next;
  const given = surface === "chat.completions" ? json.stop : json.stop_sequences;
  const sequences = (Array.isArray(given) ? given : [given]).filter(
    (one): one is string => typeof one === "string" && one !== "",
  );
  return sequences.length === 0 ? next : new StopCutter(next, sequences, onSilence);
}

/** So many are looked for in every word; OpenAI takes four. */
export const MAX_SEQUENCES = 64;
export const MAX_SEQUENCE_LENGTH = 1_024;

class StopCutter extends WithholdingEvents {
  private isText = false;
  /** The end of what was said, which may be the beginning of a sequence. */
  private held = "";
  private heldLogprobs: unknown[] | undefined;
  private found: string | null = null;

  constructor(
    next: AnswerEvents,
    private readonly sequences: readonly string[],
    onSilence: () => void,
  ) {
    super(next, onSilence);
  }

  override open(block: OpenBlock): void {
    if (this.found !== null) return;
    this.isText = block.kind === "text";
    this.next.open(block);
  }

  override delta(text: string, logprobs?: readonly unknown[]): void {
    if (this.found !== null) {
      this.withhold();
      return;
    }
    if (!this.isText) return this.next.delta(text, logprobs);
    const said = this.held + text;
    if (logprobs !== undefined) this.heldLogprobs = [...(this.heldLogprobs ?? []), ...logprobs];
    const end = this.cut(said);
    if (this.found !== null) {
      // Of the token in which a sequence begins, half is told, and no probability is true of that.
      if (end > 0) this.next.delta(said.slice(0, end));
      this.next.close(null);
      return;
    }
    this.held = said.slice(end);
    if (end === 0) return;
    this.next.delta(said.slice(0, end), this.heldLogprobs);
    this.heldLogprobs = undefined;
  }

  override cite(citation: Citation): void {
    if (this.found === null) this.next.cite(citation);
  }

  override close(seal: Seal | null): void {
    if (this.found !== null) return;
    if (this.held !== "") this.next.delta(this.held, this.heldLogprobs);
    this.held = "";
    this.heldLogprobs = undefined;
    this.next.close(seal);
  }

  override stop(...how: Parameters<AnswerEvents["stop"]>): void {
    if (this.found === null) this.next.stop(...how);
    else this.next.stop("sequence", this.found);
  }

  /** Where what may be told ends: at a sequence, which is then found, or where one may begin. */
  private cut(said: string): number {
    let end = said.length;
    for (const sequence of this.sequences) {
      const at = said.indexOf(sequence);
      if (at === -1 || (this.found !== null && at >= end)) continue;
      end = at;
      this.found = sequence;
    }
    if (this.found !== null) return end;
    for (const sequence of this.sequences) {
      const first = Math.max(0, said.length - sequence.length + 1);
      for (
        let at = said.indexOf(sequence[0]!, first);
        at !== -1 && at < end;
        at = said.indexOf(sequence[0]!, at + 1)
      ) {
        if (sequence.startsWith(said.slice(at))) end = at;
      }
    }
    return end;
  }
}
