import type { ErrorObject } from "../errors/refusal.ts";
import type { Answer, AnswerEvents, OpenBlock, StopReason } from "./answer-events.ts";
import { type AnswerReader, ENDED_EARLY, fault } from "./answer-reader.ts";
import { AnswerWriter, answerId } from "./answer-writer.ts";
import { BlockQueue, MAX_HELD_CHARACTERS } from "./block-queue.ts";
import type { Seal } from "./conversation.ts";
import { errorOf } from "./host-error.ts";
import { asObject, dataObject } from "./judge.ts";
import { present } from "./members.ts";
import { sealText } from "./seal.ts";
import type { EventFields } from "./sse.ts";
import type { Asked, HostError, Usage } from "./surface.ts";
import { readOpenAiUsage } from "./usage.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * A chat host's chunks, read (platform.openai.com, "Chat completion chunk"; DeepSeek, vLLM and OpenRouter for thoughts,
 * Mistral for content in parts, Gemini for calls without an index).
 */
export class ChatReader implements AnswerReader {
  private readonly queue: BlockQueue;
  private started = false;
  /** The block of text, thoughts or refusal that is being told. */
  private current: OpenBlock["kind"] | null = null;
  private seal: Seal | null = null;
  /** Thoughts came as plain text: what their details repeat, whole or in pieces, was told already. */
  private toldPlainly = false;
  private readonly calls: { readonly key: string; readonly index: number | null; readonly id: string }[] = [];
  private reason: string | null = null;
  private sequence: string | null = null;

  constructor(
    private readonly events: AnswerEvents,
    private readonly family: string,
  ) {
    this.queue = new BlockQueue(events);
  }

  read(event: EventFields): "more" | "ping" | "end" | HostError {
    if (event.data === null) return "ping";
    if (event.data.trim() === "[DONE]") return this.finish();
    const chunk = dataObject(event);
    if (chunk === null) return "more";
    if (chunk.error !== undefined && chunk.error !== null)
      return errorOf(chunk, "an error without a message");
    this.note(chunk);
    if (brokeDown(this.reason)) return fault(`the host stopped with ${this.reason}`);
    return this.queue.heldCharacters > MAX_HELD_CHARACTERS ? fault("too many tool calls at once") : "more";
  }

  /** A host may leave `[DONE]` out once it has given its reason to finish. */
  close(): "end" | HostError {
    return this.reason === null ? ENDED_EARLY : this.finish();
  }

  private note(chunk: Json): void {
    if (!this.started) {
      this.started = true;
      this.events.start(typeof chunk.id === "string" ? chunk.id : null, null);
    }
    const usage = readOpenAiUsage(chunk.usage);
    if (usage !== null) this.events.usage(usage);
    const choice = Array.isArray(chunk.choices) ? asObject(chunk.choices[0]) : null;
    if (choice === null) return;
    const delta = asObject(choice.delta);
    if (delta !== null) this.noteDelta(delta, asObject(choice.logprobs));
    if (typeof choice.finish_reason === "string") {
      this.reason = choice.finish_reason;
      // vLLM names the sequence that it stopped at.
      if (typeof choice.stop_reason === "string") this.sequence = choice.stop_reason;
    }
  }

  private noteDelta(delta: Json, logprobs: Json | null): void {
    this.noteThoughts(delta);
    if (typeof delta.content === "string") {
      const list = logprobs?.content;
      this.told("text", delta.content, Array.isArray(list) ? list : undefined);
    } else if (Array.isArray(delta.content)) {
      forEachPart(delta.content, (kind, text) => this.told(kind, text));
    }
    this.told("refusal", delta.refusal);
    if (Array.isArray(delta.tool_calls))
      for (const call of delta.tool_calls) this.noteCall(asObject(call) ?? {});
  }

  private noteThoughts(delta: Json): void {
    const plain = delta.reasoning_content ?? delta.reasoning;
    this.told("reasoning", plain);
    if (typeof plain === "string" && plain !== "") this.toldPlainly = true;
    if (!Array.isArray(delta.reasoning_details)) return;
    for (const value of delta.reasoning_details) {
      const detail = asObject(value) ?? {};
      if (!this.toldPlainly) this.told("reasoning", detail.text ?? detail.summary);
      const seal = sealOf(detail, this.family);
      if (seal === null) continue;
      if (this.current !== "reasoning") this.turnTo("reasoning");
      this.seal = seal;
    }
  }

  private told(kind: "text" | "refusal" | "reasoning", text: unknown, logprobs?: readonly unknown[]): void {
    if (typeof text !== "string" || text === "") return;
    if (this.current !== kind) this.turnTo(kind);
    this.queue.delta(kind, text, logprobs);
  }

  private turnTo(kind: "text" | "refusal" | "reasoning" | null): void {
    if (this.current !== null) this.queue.close(this.current, this.seal);
    this.seal = null;
    this.current = kind;
    if (kind !== null) this.queue.open(kind, { kind });
  }

  private noteCall(call: Json): void {
    const custom = call.type === "custom" || asObject(call.custom) !== null;
    const called = asObject(custom ? call.custom : call.function) ?? {};
    const key = this.keyOf(call) ?? this.openCall(call, called, custom);
    const words = custom ? called.input : called.arguments;
    // Some hosts give the arguments as the object that they spell.
    const text =
      typeof words === "string" ? words : words === undefined || words === null ? "" : JSON.stringify(words);
    this.queue.delta(key, text);
  }

  /** The call that this is more of; null for a new one. Hosts leave the index out, or give every call the same one. */
  private keyOf(call: Json): string | null {
    const index = typeof call.index === "number" ? call.index : null;
    const id = typeof call.id === "string" && call.id !== "" ? call.id : null;
    const known = this.calls.findLast((one) =>
      index === null ? id === null || one.id === id : one.index === index,
    );
    if (known === undefined) return null;
    return id === null || id === known.id ? known.key : null;
  }

  private openCall(call: Json, called: Json, custom: boolean): string {
    if (this.current !== null) this.turnTo(null);
    const key = `call ${this.calls.length}`;
    const id = typeof call.id === "string" && call.id !== "" ? call.id : `call_${this.calls.length}`;
    this.calls.push({ key, index: typeof call.index === "number" ? call.index : null, id });
    const name = typeof called.name === "string" ? called.name : "";
    this.queue.open(key, { kind: "tool_call", id, name, custom });
    return key;
  }

  private finish(): "end" {
    if (this.current !== null) this.turnTo(null);
    this.queue.closeAll();
    this.events.stop(reasonOf(this.reason, this.sequence, this.calls.length > 0), this.sequence);
    return "end";
  }
}

/** A reason to finish by which a host says that it broke down. */
export const brokeDown = (reason: unknown): boolean =>
  reason === "error" || reason === "insufficient_system_resource";

function reasonOf(reason: string | null, sequence: string | null, called: boolean): StopReason {
  switch (reason) {
    case "length":
      return "length";
    case "content_filter":
      return "filter";
    default:
      if (called) return "tools";
      return sequence === null ? "end" : "sequence";
  }
}

/** Mistral's: thoughts and text as parts. */
function forEachPart(
  parts: readonly unknown[],
  each: (kind: "text" | "reasoning", text: unknown) => void,
): void {
  for (const value of parts) {
    const part = asObject(value) ?? {};
    if (part.type === "text") each("text", part.text);
    else if (part.type === "thinking" && Array.isArray(part.thinking))
      for (const thought of part.thinking) each("reasoning", asObject(thought)?.text);
  }
}

function sealOf(detail: Json, family: string): Seal | null {
  if (typeof detail.signature === "string" && detail.signature !== "")
    return { family, kind: "signature", data: detail.signature };
  return typeof detail.data === "string" && detail.data !== ""
    ? { family, kind: "encrypted", data: detail.data }
    : null;
}

/** A whole answer of a chat host. The message holds what the chunks would have. */
export function readChatAnswer(json: Json, events: AnswerEvents, family: string): HostError | null {
  if (json.error !== undefined && json.error !== null) return errorOf(json, "an error without a message");
  const choice = Array.isArray(json.choices) ? asObject(json.choices[0]) : null;
  const message = asObject(choice?.message);
  if (message === null) return fault("the answer has no choices");
  const reader = new ChatReader(events, family);
  const chunk = { ...json, choices: [{ ...choice, delta: message }] };
  const outcome = reader.read({ name: null, dataStart: 0, dataEnd: 0, data: JSON.stringify(chunk) });
  if (typeof outcome === "object") return outcome;
  const end = reader.close();
  return end === "end" ? null : end;
}

/** Chunks for a chat client. */
export class ChatWriter extends AnswerWriter {
  private head = "";
  private id = "chatcmpl-gateway";
  private kind: OpenBlock["kind"] = "text";
  private custom = false;
  private calls = 0;
  private thoughts = 0;
  private thought = "";
  private lastUsage: Usage | null = null;

  constructor(
    private readonly asked: Asked,
    private readonly wantsUsage: boolean,
  ) {
    super();
  }

  start(id: string | null): void {
    this.id = answerId("chatcmpl-", id);
    this.head = this.headOf();
    this.chunk('{"role":"assistant","content":""}');
  }

  open(block: OpenBlock): void {
    this.kind = block.kind;
    if (block.kind !== "tool_call") return;
    const { id, name, custom } = block;
    this.custom = custom;
    const called = custom
      ? { type: "custom", custom: { name, input: "" } }
      : { type: "function", function: { name, arguments: "" } };
    this.chunk(JSON.stringify({ tool_calls: [{ index: this.calls, id, ...called }] }));
    this.calls += 1;
  }

  delta(text: string, logprobs?: readonly unknown[]): void {
    const words = JSON.stringify(text);
    switch (this.kind) {
      case "text":
        if (logprobs === undefined) this.chunk(`{"content":${words}}`);
        else
          this.chunk(
            `{"content":${words}}`,
            `,"logprobs":{"content":${JSON.stringify(logprobs)},"refusal":null}`,
          );
        return;
      case "refusal":
        this.chunk(`{"refusal":${words}}`);
        return;
      case "reasoning":
        this.thought += text;
        this.chunk(`{"reasoning_content":${words}}`);
        return;
      case "tool_call": {
        const index = this.calls - 1;
        const called = this.custom ? `"custom":{"input":${words}}` : `"function":{"arguments":${words}}`;
        this.chunk(`{"tool_calls":[{"index":${index},${called}}]}`);
      }
    }
  }

  close(seal: Seal | null): void {
    if (this.kind !== "reasoning") return;
    if (seal !== null)
      this.chunk(JSON.stringify({ reasoning_details: [detailOf(this.thought, seal, this.thoughts)] }));
    this.thought = "";
    this.thoughts += 1;
  }

  usage(usage: Usage): void {
    this.lastUsage = usage;
  }

  stop(reason: StopReason): void {
    this.reason = FINISH[reason];
  }

  private reason: string = FINISH.end;

  finish(): Buffer {
    this.data(`${this.head}"choices":[{"index":0,"delta":{},"finish_reason":"${this.reason}"}]}`);
    if (this.wantsUsage && this.lastUsage !== null)
      this.data(`${this.head}"choices":[],"usage":${JSON.stringify(writeChatUsage(this.lastUsage))}}`);
    return DONE;
  }

  fail(error: ErrorObject): Buffer {
    if (this.head === "") this.head = this.headOf();
    this.data(JSON.stringify({ error }));
    this.data(`${this.head}"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`);
    return this.take();
  }

  private chunk(delta: string, more = ""): void {
    this.data(`${this.head}"choices":[{"index":0,"delta":${delta}${more},"finish_reason":null}]}`);
  }

  private headOf(): string {
    const { publicModel, atS } = this.asked;
    const head = { id: this.id, object: "chat.completion.chunk", created: atS, model: publicModel };
    return `${JSON.stringify(head).slice(0, -1)},`;
  }
}

const DONE = Buffer.from("data: [DONE]\n\n");

const FINISH: Readonly<Record<StopReason, string>> = {
  end: "stop",
  sequence: "stop",
  tools: "tool_calls",
  length: "length",
  filter: "content_filter",
};

/** OpenRouter's form, which clients that keep thoughts send back. */
const detailOf = (text: string, seal: Seal, index: number): Json =>
  text === ""
    ? { type: "reasoning.encrypted", data: sealText(seal), index }
    : { type: "reasoning.text", text, signature: sealText(seal), index };

function writeChatUsage({ input, cacheRead, cacheWrite, output, reasoning }: Usage): Json {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: present({
      cached_tokens: cacheRead,
      cache_write_tokens: cacheWrite > 0 ? cacheWrite : undefined,
    }),
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

/** A whole answer for a chat client. */
export function writeChatAnswer(answer: Answer, usage: Usage, asked: Asked): Json {
  return {
    id: answerId("chatcmpl-", answer.id),
    object: "chat.completion",
    created: asked.atS,
    model: asked.publicModel,
    choices: [
      {
        index: 0,
        message: writeMessage(answer),
        logprobs: writeLogprobs(answer),
        finish_reason: FINISH[answer.reason],
      },
    ],
    usage: writeChatUsage(usage),
  };
}

function writeMessage({ blocks }: Answer): Json {
  const told = (kind: OpenBlock["kind"]) => {
    const texts = blocks.filter(({ block }) => block.kind === kind).map(({ text }) => text);
    return texts.length === 0 ? null : texts.join("");
  };
  const details = blocks.flatMap(({ block, text, seal }) =>
    block.kind === "reasoning" ? [{ text, seal }] : [],
  );
  const sealed = details.flatMap(({ text, seal }, at) => (seal === null ? [] : [detailOf(text, seal, at)]));
  const calls = blocks.flatMap(({ block, text }) => (block.kind === "tool_call" ? [{ ...block, text }] : []));
  return present({
    role: "assistant",
    content: told("text"),
    refusal: told("refusal"),
    reasoning_content: told("reasoning") ?? undefined,
    reasoning_details: sealed.length > 0 ? sealed : undefined,
    tool_calls:
      calls.length === 0
        ? undefined
        : calls.map(({ id, name, custom, text }) =>
            custom
              ? { id, type: "custom", custom: { name, input: text } }
              : { id, type: "function", function: { name, arguments: text } },
          ),
  });
}

function writeLogprobs({ blocks }: Answer): Json | null {
  const content = blocks.flatMap(({ logprobs }) => logprobs);
  return content.length === 0 ? null : { content, refusal: null };
}
