import type { AnswerParts } from "../events/answer-bounds.ts";
import { asObject, type Json } from "../json/json.ts";

/**
 * Which call each piece of an answer's calls belongs to. OpenAI gives each call an index of its own. Gemini
 * leaves it out (googleapis/python-genai issue 2868), Ollama, vLLM and SGLang have given every call the same
 * one (ollama/ollama issue 15457), and Poolside gives the pieces of a call another id than its beginning. So
 * a call begins at an index that is new, or with a name and an id that are new there.
 */
export class StreamedCalls {
  private readonly calls: { readonly index: unknown; readonly id: unknown }[] = [];
  private readonly lastAt = new Map<unknown, number>();
  private readonly withId = new Map<unknown, number>();

  /** `parts` are the answer's: calls of several choices share their bound. */
  constructor(private readonly parts: AnswerParts) {}

  get count(): number {
    return this.calls.length;
  }

  /** The piece's call, as a number in the order in which they begin: `count` so far for one that is new. */
  numberOf(piece: Json): number {
    const index = typeof piece.index === "number" ? piece.index : null;
    const id = piece.id === "" ? null : (piece.id ?? null);
    const known = this.find(index, id, piece);
    if (known !== null) return known;
    this.parts.begin();
    const number = this.calls.push({ index, id }) - 1;
    this.lastAt.set(index, number);
    if (id !== null) this.withId.set(id, number);
    return number;
  }

  private find(index: number | null, id: unknown, piece: Json): number | null {
    const same = id === null ? undefined : this.withId.get(id);
    if (same !== undefined && (index === null || this.calls[same]!.index === index)) return same;
    // Without an id of its own it goes on with the last call.
    if (index === null) return id === null && this.count > 0 ? this.count - 1 : null;
    const last = this.lastAt.get(index);
    if (last === undefined) return null;
    return id === null || id === this.calls[last]!.id || !hasName(piece) ? last : null;
  }
}

function hasName(piece: Json): boolean {
  const name = asObject(piece.function)?.name ?? asObject(piece.custom)?.name;
  return typeof name === "string" && name !== "";
}
