import { asObject, type Collector } from "./judge.ts";

type Json = Record<string, unknown>;

/**
 * Whole answers from streamed ones of the same language, with every member that the host sent: what the official clients'
 * own accumulators do (openai `ChatCompletionStream`, @anthropic-ai/sdk `MessageStream`), for members that they know and
 * members that they do not.
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
    const { delta, logprobs, ...rest } = given;
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

/** Said once; everything else that is text goes on. */
const ONCE = new Set(["role", "id", "type", "name"]);

function grow(known: Json, more: Json): void {
  for (const [name, value] of Object.entries(more)) {
    const before = known[name];
    if (value === null || value === undefined) {
      if (before === undefined) known[name] = value;
    } else if (name === "tool_calls" && Array.isArray(value)) {
      known[name] = growCalls(Array.isArray(before) ? before : [], value);
    } else if (typeof value === "string" && !ONCE.has(name)) {
      known[name] = (typeof before === "string" ? before : "") + value;
    } else if (Array.isArray(value)) {
      known[name] = Array.isArray(before) ? before.concat(value) : value;
    } else if (asObject(value) !== null) {
      const inner = { ...asObject(before) };
      grow(inner, value as Json);
      known[name] = inner;
    } else if (before === undefined || before === null || !ONCE.has(name)) {
      known[name] = value;
    }
  }
}

/** Content in parts, as Mistral has it, where strings may come between: neighbours of one type are one part. */
function growParts(before: unknown, more: unknown): Json[] {
  const parts: Json[] = [];
  for (const part of [...partsOf(before), ...partsOf(more)]) {
    const last = parts.at(-1);
    if (last === undefined || last.type !== part.type) parts.push({ ...part });
    else if (typeof last.text === "string") last.text += String(part.text);
    else grow(last, part);
  }
  return parts;
}

function partsOf(content: unknown): Json[] {
  if (Array.isArray(content)) return content.map((part) => asObject(part) ?? {});
  return typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : [];
}

/** Calls by their index; where a host leaves it out, a new id begins a new call. */
function growCalls(known: Json[], more: readonly unknown[]): Json[] {
  for (const value of more) {
    const call = asObject(value) ?? {};
    const found =
      typeof call.index === "number"
        ? known.find(({ index }) => index === call.index)
        : known.findLast(({ id }) => call.id === undefined || id === call.id);
    if (found === undefined) {
      const begun: Json = {};
      grow(begun, call);
      known.push(begun);
    } else grow(found, call);
  }
  return known;
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

export class MessagesCollector implements Collector {
  private message: Json = {};
  private readonly blocks: Json[] = [];
  /** JSON of a call's input, until its block ends. */
  private input = "";

  add(data: Json): void {
    switch (data.type) {
      case "message_start":
        this.message = { ...asObject(data.message) };
        return;
      case "content_block_start":
        this.input = "";
        this.blocks.push({ ...asObject(data.content_block) });
        return;
      case "content_block_delta":
        this.addDelta(asObject(data.delta) ?? {});
        return;
      case "content_block_stop":
        this.endBlock();
        return;
      case "message_delta": {
        const { type: _type, delta, usage, ...rest } = data;
        const used = { ...asObject(this.message.usage) };
        for (const [name, value] of Object.entries(asObject(usage) ?? {}))
          if (value !== null) used[name] = value;
        this.message = { ...this.message, ...rest, ...asObject(delta), usage: used };
      }
    }
  }

  whole(): Json {
    return { ...this.message, content: this.blocks };
  }

  private addDelta({ type, ...delta }: Json): void {
    const block = this.blocks.at(-1);
    if (block === undefined) return;
    if (type === "input_json_delta") {
      this.input += String(delta.partial_json ?? "");
    } else if (type === "citations_delta") {
      block.citations = [...(Array.isArray(block.citations) ? block.citations : []), delta.citation];
    } else {
      grow(block, delta);
    }
  }

  private endBlock(): void {
    const block = this.blocks.at(-1);
    if (block === undefined || this.input === "") return;
    try {
      block.input = JSON.parse(this.input);
    } catch {
      // Anthropic's form for what is no JSON.
      block.input = { INVALID_JSON: this.input };
    }
    this.input = "";
  }
}

/** Responses end with the whole answer. */
export class ResponsesCollector implements Collector {
  private response: Json = {};

  add(data: Json): void {
    if (data.type === "response.completed" || data.type === "response.incomplete")
      this.response = asObject(data.response) ?? {};
  }

  whole(): Json {
    return this.response;
  }
}
