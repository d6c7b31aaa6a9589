import { grow } from "../deltas.ts";
import { asObject, asText } from "../json.ts";
import type { Collector } from "../judge.ts";

type Json = Record<string, unknown>;

/**
 * Whole answers from streamed ones of the same language, with every member that the host sent: what the
 * official clients' own accumulators do (openai `ChatCompletionStream`, @anthropic-ai/sdk `MessageStream`),
 * for members that they know and members that they do not.
 */
export class ChatCollector implements Collector {
  private readonly top: Json = {};
  private readonly choices = new Map<number, Json>();

  add(chunk: Json): void {
    for (const [name, value] of Object.entries(chunk))
      if (name !== "choices" && value !== null && value !== undefined) this.top[name] = value;
    if (Array.isArray(chunk.choices))
      for (const [at, value] of chunk.choices.entries()) this.addChoice(at, asObject(value) ?? {});
  }

  whole(): Json {
    const choices = [...this.choices.entries()]
      .sort(([a], [b]) => a - b)
      .map(([, choice]) => finished(choice));
    return { ...this.top, object: "chat.completion", choices };
  }

  private addChoice(at: number, given: Json): void {
    const index = typeof given.index === "number" ? given.index : at;
    const choice = this.choices.get(index) ?? { index, message: {}, logprobs: null, finish_reason: null };
    this.choices.set(index, choice);
    // A host's own `message` would take the place of ours, and need not even be an object.
    const { delta, message: _message, logprobs, ...rest } = given;
    for (const [name, value] of Object.entries(rest)) if (value !== null) choice[name] = value;
    growMessage(choice.message as Json, asObject(delta) ?? {});
    const told = asObject(logprobs);
    if (told !== null) {
      const known = asObject(choice.logprobs) ?? {};
      grow(known, told);
      choice.logprobs = known;
    }
  }
}

function growMessage(message: Json, delta: Json): void {
  if (!Array.isArray(delta.content) && !Array.isArray(message.content)) {
    grow(message, delta);
    return;
  }
  const { content, ...rest } = delta;
  message.content = growParts(message.content, content);
  grow(message, rest);
}

/**
 * Content in parts, as Mistral has it, where strings may come between: neighbours of one type are one part.
 */
function growParts(before: unknown, more: unknown): Json[] {
  const parts: Json[] = [];
  for (const part of [...partsOf(before), ...partsOf(more)]) {
    const last = parts.at(-1);
    if (last === undefined || last.type !== part.type) parts.push({ ...part });
    else if (typeof last.text === "string") last.text += asText(part.text);
    else grow(last, part);
  }
  return parts;
}

function partsOf(content: unknown): Json[] {
  if (Array.isArray(content)) return content.map((part) => asObject(part) ?? {});
  return typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : [];
}

function finished(choice: Json): Json {
  const {
    role = "assistant",
    content = null,
    refusal = null,
    tool_calls: calls,
    ...rest
  } = choice.message as Json;
  const message: Json = { role, content, refusal, ...rest };
  if (Array.isArray(calls)) {
    // An unstreamed call has no index, and an unstreamed message of calls no empty text.
    message.tool_calls = calls.map(({ index, ...call }: Json) => call);
    if (content === "") message.content = null;
  }
  return { ...choice, message };
}
