import { AnswerParts } from "../events/answer-bounds.ts";
import { asObject, type Json, type MutableJson } from "../json/json.ts";

/**
 * Indexes for calls that a host streams without one, or with that of another call: OpenAI's clients put calls
 * together by their indexes. Gemini, which leaves them out, also ends such an answer with `stop`, which agents
 * take for the end of their work (googleapis/python-genai issue 2868), so that is fixed too. Other streams
 * get nothing.
 */
export class CallIndexes {
  /** A call got another index than its own: its next piece may look like one of another call's. */
  hasChanged = false;
  private readonly parts = new AnswerParts();
  private choices: Map<unknown, ChoiceIndexes> | null = null;

  get isEmpty(): boolean {
    return this.choices === null;
  }

  /** Corrects the chunk, and returns whether it had to. */
  correct({ choices }: MutableJson): boolean {
    if (!Array.isArray(choices)) return false;
    let changed = false;
    for (const value of choices) {
      const choice = asObject(value);
      const calls = asObject(choice?.delta)?.tool_calls;
      if (Array.isArray(calls))
        for (const call of calls) changed = this.number(choice, asObject(call)) || changed;
      if (choice?.finish_reason !== "stop" || this.choices?.get(choice.index)?.hasLacked !== true) continue;
      choice.finish_reason = "tool_calls";
      changed = true;
    }
    this.hasChanged ||= changed;
    return changed;
  }

  private number(choice: MutableJson | null, call: MutableJson | null): boolean {
    if (choice === null || call === null) return false;
    this.choices ??= new Map();
    return this.choices.getOrInsertComputed(choice.index, () => new ChoiceIndexes(this.parts)).number(call);
  }
}

class ChoiceIndexes {
  /** Some call had none. */
  hasLacked = false;
  private readonly calls: StreamedCalls;
  /** By call, the index that the client gets. */
  private readonly numbers: number[] = [];
  private readonly taken = new Set<number>();
  private free = 0;

  constructor(parts: AnswerParts) {
    this.calls = new StreamedCalls(parts);
  }

  number(call: MutableJson): boolean {
    const { index: own } = call;
    const number = this.calls.numberOf(call);
    if (number === this.numbers.length) this.take(own);
    if (typeof own !== "number") this.hasLacked = true;
    const index = this.numbers[number]!;
    if (index === own) return false;
    call.index = index;
    return true;
  }

  private take(own: unknown): void {
    const index = typeof own === "number" && !this.taken.has(own) ? own : this.free;
    this.numbers.push(index);
    this.taken.add(index);
    this.free = Math.max(this.free, index + 1);
  }
}

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
