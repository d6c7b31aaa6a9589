import { AnswerParts } from "../events/answer-bounds.ts";
import { asObject, type MutableJson } from "../json/json.ts";
import { StreamedCalls } from "./streamed-calls.ts";

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
    let indexes = this.choices.get(choice.index);
    if (indexes === undefined) this.choices.set(choice.index, (indexes = new ChoiceIndexes(this.parts)));
    return indexes.number(call);
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
