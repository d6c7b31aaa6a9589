import { asObject } from "../json.ts";

type Json = Record<string, unknown>;

/**
 * Gemini's chat streams calls without the index that OpenAI's clients put them together by, and ends them
 * with `stop`, which agents take for the end of their work (googleapis/python-genai issue 2868). Such streams
 * get both; others nothing.
 */
export class CallIndexes {
  /** Of each choice: the ids of the calls that had no index, and the indexes that they got. */
  private readonly calls = new Map<unknown, Map<unknown, number>>();

  /** Mends the chunk, and tells whether it had to. */
  mend({ choices }: Json): boolean {
    if (!Array.isArray(choices)) return false;
    let mended = false;
    for (const value of choices) {
      const choice = asObject(value);
      const calls = asObject(choice?.delta)?.tool_calls;
      if (Array.isArray(calls))
        for (const call of calls) mended = this.number(choice, asObject(call)) || mended;
      if (choice?.finish_reason !== "stop" || !this.calls.has(choice.index)) continue;
      choice.finish_reason = "tool_calls";
      mended = true;
    }
    return mended;
  }

  private number(choice: Json | null, call: Json | null): boolean {
    if (choice === null || call === null || typeof call.index === "number") return false;
    const known = this.calls.get(choice.index) ?? new Map<unknown, number>();
    this.calls.set(choice.index, known);
    const { id } = call;
    // Without an id of its own it goes on with the last call.
    const goesOn = known.size > 0 && (id === undefined || id === null || id === "");
    const index = goesOn ? known.size - 1 : (known.get(id) ?? known.size);
    if (!goesOn) known.set(id, index);
    call.index = index;
    return true;
  }
}
