import { AnswerParts } from "../events/answer-bounds.ts";
import { asObject, asText, type MutableJson } from "../json/json.ts";
import type { Collector } from "../passing/judge.ts";
import { grow } from "../passing/merge-delta.ts";

/**
 * Whole answers from streamed ones of the same language, with every member that the host sent: what the
 * official clients' own accumulators do (openai `ChatCompletionStream`, @anthropic-ai/sdk `MessageStream`),
 * for members that they know and members that they do not.
 */
export class ChatCollector implements Collector {
  private readonly top: MutableJson = {};
  private readonly choices = new Map<number, Choice>();
  private readonly parts = new AnswerParts();

  add(chunk: MutableJson): void {
    for (const [name, value] of Object.entries(chunk))
      if (!OF_A_CHUNK.includes(name) && value !== null && value !== undefined) this.top[name] = value;
    if (Array.isArray(chunk.choices))
      for (const [at, value] of chunk.choices.entries()) this.addChoice(at, asObject(value) ?? {});
  }

  whole(): MutableJson {
    const choices = [...this.choices.entries()]
      .sort(([a], [b]) => a - b)
      .map(([, choice]) => finished(choice));
    return { ...this.top, object: "chat.completion", choices };
  }

  private addChoice(at: number, given: MutableJson): void {
    const index = typeof given.index === "number" ? given.index : at;
    const choice = this.choices.getOrInsertComputed(index, () => {
      this.parts.begin();
      return newChoice(index);
    });
    // A host's own `message` would take the place of ours, and need not even be an object.
    const { delta, message: _message, logprobs, ...rest } = given;
    for (const [name, value] of Object.entries(rest)) if (value !== null) choice.members[name] = value;
    growMessage(choice, asObject(delta) ?? {});
    const more = asObject(logprobs);
    if (more !== null) {
      const known = asObject(choice.members.logprobs) ?? {};
      grow(known, more);
      choice.members.logprobs = known;
    }
  }
}

/** Padding (OpenAI's `stream_options.include_obfuscation`) is no part of a whole answer; choices are assembled. */
const OF_A_CHUNK: readonly string[] = ["choices", "obfuscation"];

interface Choice {
  readonly members: MutableJson;
  readonly message: MutableJson;
  /** By their index, which each has: see `CallIndexes`. Null while the host has named no list of them. */
  calls: Map<unknown, MutableJson> | null;
}

const newChoice = (index: number): Choice => ({
  members: { index, message: null, logprobs: null, finish_reason: null },
  message: {},
  calls: null,
});

function growMessage(choice: Choice, delta: MutableJson): void {
  const { message } = choice;
  const { content, tool_calls: calls, ...rest } = delta;
  if (Array.isArray(content) || Array.isArray(message.content))
    message.content = growParts(message.content, content);
  else grow(message, { content });
  if (Array.isArray(calls)) {
    choice.calls ??= new Map();
    growCalls(choice.calls, calls);
  }
  grow(message, rest);
}

function growCalls(known: Map<unknown, MutableJson>, more: readonly unknown[]): void {
  for (const value of more) {
    const call = asObject(value);
    if (call === null) continue;
    const grown = known.getOrInsertComputed(call.index, () => ({}));
    grow(grown, call);
  }
}

/**
 * Content in parts, as Mistral has it, where strings may come between: neighbours of one type are one part.
 */
function growParts(before: unknown, more: unknown): MutableJson[] {
  // In place: there may be as many parts as tokens.
  const parts: MutableJson[] = Array.isArray(before) ? before : partsOf(before);
  for (const part of partsOf(more)) {
    const last = parts.at(-1);
    if (last === undefined || last.type !== part.type) parts.push({ ...part });
    else if (typeof last.text === "string") last.text += asText(part.text);
    else grow(last, part);
  }
  return parts;
}

function partsOf(content: unknown): MutableJson[] {
  if (Array.isArray(content)) return content.map((part) => asObject(part) ?? {});
  return typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : [];
}

function finished({ members, message: grown, calls }: Choice): MutableJson {
  const { role = "assistant", content = null, refusal = null, ...rest } = grown;
  const message: MutableJson = { role, content, refusal, ...rest };
  if (calls !== null) {
    // An unstreamed call has no index, and an unstreamed message of calls no empty text.
    message.tool_calls = [...calls.values()].map(({ index, ...call }) => call);
    if (content === "") message.content = null;
  }
  return { ...members, message };
}
