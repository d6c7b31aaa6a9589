import { AnswerParts, MAX_PARTS, TOO_MANY_PARTS } from "../events/answer-bounds.ts";
import { ENDED_EARLY, errorOf, fault, NO_EVENT } from "../host-error.ts";
import { asObject, type Json, parseObject } from "../json/json.ts";
import type { GenerationRequest, HostError, Usage } from "../surface.ts";
import { readOpenAiUsage } from "../usage.ts";
import type {
  AnswerEvents,
  AnswerReader,
  OpenBlock,
  ReadOutcome,
  StopReason,
} from "../vocabulary/answer-events.ts";
import { BlockQueue } from "../vocabulary/block-queue.ts";
import { readCitation } from "../vocabulary/citations.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { StreamedCalls } from "./call-indexes.ts";

/**
 * A chat host's chunks, read (platform.openai.com, "Chat completion chunk"; DeepSeek, vLLM and OpenRouter for
 * thoughts, Mistral for content in parts, Gemini for calls without an index).
 */
export class ChatReader implements AnswerReader {
  private readonly queue: BlockQueue;
  private started = false;
  private index: number | null = null;
  /** The block of text, thoughts or refusal that is open. */
  private current: OpenBlock["kind"] | null = null;
  private seal: Seal | null = null;
  /** Thoughts came as plain text: what their details repeat, whole or in pieces, was passed on already. */
  private hasPlainThoughts = false;
  private readonly calls = new StreamedCalls(new AnswerParts());
  private used: Usage | null = null;
  private reason: string | null = null;
  private sequence: string | null = null;

  constructor(
    private readonly events: AnswerEvents,
    private readonly family: string,
    private readonly ceiling: number | null,
  ) {
    this.queue = new BlockQueue(events);
  }

  read(data: string | null): ReadOutcome {
    if (data === null) return "ping";
    if (data.trim() === "[DONE]") return this.finish();
    const chunk = parseObject(data);
    if (chunk === null) return data.trim() === "" ? "more" : NO_EVENT;
    const error = errorIn(chunk);
    if (error !== null) return error;
    const stops = this.note(chunk);
    if (brokeDown(this.reason)) return fault(`the host stopped with ${this.reason}`);
    if (this.queue.isOverfull) return fault("too many tool calls at once");
    return stops ? "stop" : "more";
  }

  /** A host may leave `[DONE]` out once it has given its reason to finish. */
  close(): "end" | HostError {
    return this.reason === null ? ENDED_EARLY : this.finish();
  }

  /** Whether it says why the answer ended. */
  private note(chunk: Json): boolean {
    const choice = this.choiceOf(chunk);
    if (!this.started) {
      // Azure first says what its filters found, before the answer has a name.
      if (choice === null && chunk.id === "") return false;
      this.started = true;
      this.events.start(typeof chunk.id === "string" ? chunk.id : null, null);
    }
    if (choice !== null) this.noteChoice(choice);
    // It counts what its own chunk brings.
    const usage = readOpenAiUsage(chunk.usage, this.used);
    if (usage !== null && usage !== this.used) this.events.usage(usage);
    this.used = usage;
    return typeof choice?.finish_reason === "string";
  }

  /** Where a host sends several answers to a request for one, the first counts. */
  private choiceOf({ choices }: Json): Json | null {
    const choice = Array.isArray(choices) ? asObject(choices[0]) : null;
    if (typeof choice?.index !== "number") return choice;
    this.index ??= choice.index;
    return choice.index === this.index ? choice : null;
  }

  private noteChoice(choice: Json): void {
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
      this.emitText("text", delta.content, Array.isArray(list) ? list : undefined);
    } else if (Array.isArray(delta.content)) {
      forEachPart(delta.content, (kind, text) => this.emitText(kind, text));
    }
    if (Array.isArray(delta.annotations)) this.noteCitations(delta.annotations);
    this.emitText("refusal", delta.refusal);
    if (!Array.isArray(delta.tool_calls)) return;
    for (const call of delta.tool_calls) {
      // A single chunk may be megabytes of them.
      if (this.queue.isOverfull) return;
      this.noteCall(asObject(call) ?? {});
    }
  }

  private noteThoughts(delta: Json): void {
    const plain = delta.reasoning_content ?? delta.reasoning;
    this.emitText("reasoning", plain);
    if (typeof plain === "string" && plain !== "") this.hasPlainThoughts = true;
    if (!Array.isArray(delta.reasoning_details)) return;
    for (const value of delta.reasoning_details) {
      const detail = asObject(value) ?? {};
      if (!this.hasPlainThoughts) this.emitText("reasoning", detail.text ?? detail.summary);
      const seal = sealOf(detail, this.family);
      if (seal === null) continue;
      if (this.current !== "reasoning") this.turnTo("reasoning");
      this.seal = seal;
    }
  }

  /** They may come after the text, and before anything else. */
  private noteCitations(annotations: readonly unknown[]): void {
    if (this.current !== "text") return;
    for (const annotation of annotations) {
      const citation = readCitation(annotation);
      if (citation !== null) this.queue.cite("text", citation);
    }
  }

  private emitText(
    kind: "text" | "refusal" | "reasoning",
    text: unknown,
    logprobs?: readonly unknown[],
  ): void {
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
    const count = this.calls.count;
    const number = this.calls.numberOf(call);
    const key = `call ${number}`;
    if (number === count) this.openCall(key, call, called, custom);
    const words = custom ? called.input : called.arguments;
    // Some hosts give the arguments as the object that they spell.
    const text =
      typeof words === "string" ? words : words === undefined || words === null ? "" : JSON.stringify(words);
    this.queue.delta(key, text);
  }

  private openCall(key: string, call: Json, called: Json, custom: boolean): void {
    const signature = signatureOf(call);
    if (signature !== null) {
      this.turnTo("reasoning");
      this.seal = { family: this.family, kind: "call", data: signature };
    }
    if (this.current !== null) this.turnTo(null);
    const id = typeof call.id === "string" && call.id !== "" ? call.id : `call_${this.calls.count - 1}`;
    const name = typeof called.name === "string" ? called.name : "";
    this.queue.open(key, { kind: "tool_call", id, name, custom });
  }

  private finish(): "end" {
    if (this.current !== null) this.turnTo(null);
    this.queue.closeAll();
    // It includes blocks that had to wait for their turn.
    if (this.used !== null) this.events.usage(this.used);
    const reason = this.reason ?? (isCut(this.used, this.ceiling) ? "length" : null);
    this.events.stop(reasonOf(reason, this.sequence, this.calls.count > 0), this.sequence);
    return "end";
  }
}

/**
 * What a chunk says of a failure, next to OpenAI's `error`: hosts made with FastAPI tell it as the chunk
 * itself (vLLM and SGLang, `object: "error"`), Groq as the reason for which it stopped early
 * (`x_groq.error`). Null where it is none.
 */
export function errorIn(chunk: Json): HostError | null {
  const { error, object } = chunk;
  if ((error !== undefined && error !== null) || object === "error")
    return errorOf(chunk, "an error without a message");
  const stopped = asObject(chunk.x_groq)?.error;
  return typeof stopped === "string" && stopped !== "" ? fault(`the host stopped early: ${stopped}`) : null;
}

/** Gemini's signature of the thoughts that led to a call (ai.google.dev, "Thought signatures"). */
function signatureOf(call: Json): string | null {
  const signature = asObject(asObject(call.extra_content)?.google)?.thought_signature;
  return typeof signature === "string" && signature !== "" ? signature : null;
}

/** A reason to finish by which a host says that it broke down. */
export const brokeDown = (reason: unknown): boolean =>
  reason === "error" || reason === "insufficient_system_resource";

/** Whether an answer whose host gives no reason for its end (Snowflake) has all the tokens that it may have. */
export const isCut = (usage: Usage | null, ceiling: number | null): boolean =>
  usage !== null && ceiling !== null && usage.output >= ceiling;

/** Null where several answers share the usage. */
export const ceilingOf = ({
  choices,
  maxOutputTokens,
}: Pick<GenerationRequest, "choices" | "maxOutputTokens">): number | null =>
  choices === 1 ? maxOutputTokens : null;

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
export function forEachPart(
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

export function faultIn(json: Json): HostError | null {
  const { error, choices } = json;
  if (error !== undefined && error !== null) return errorOf(json, "an error without a message");
  if (!Array.isArray(choices) || choices.length === 0) return NO_CHOICES;
  let parts = choices.length;
  for (const choice of choices) {
    const given = asObject(choice);
    const calls = asObject(given?.message)?.tool_calls;
    if (Array.isArray(calls)) parts += calls.length;
    if (parts > MAX_PARTS) return fault(TOO_MANY_PARTS);
    const reason = given?.finish_reason;
    if (brokeDown(reason)) return fault(`the host stopped with ${reason}`);
    // Clients look into the message of each, and another host may have one.
    if (asObject(given?.message) === null && !isWordless(given)) return NO_CHOICES;
  }
  return null;
}

/** Azure says nothing next to the reason where its filter stopped an answer ("Content filtering"). */
const isWordless = (choice: Json | null): boolean =>
  endsFiltered(choice) && (choice?.message ?? null) === null;

const endsFiltered = (choice: Json | null): boolean => choice?.finish_reason === "content_filter";

/** It ended for policy reasons. */
export const isFiltered = ({ choices }: Json): boolean =>
  Array.isArray(choices) && choices.some((choice) => endsFiltered(asObject(choice)));

/** The answer with a message in each choice, as clients expect it; null where it has them. */
export function withMessages(json: Json): Json | null {
  const choices = (json.choices as readonly unknown[]).map(asObject);
  if (!choices.some(isWordless)) return null;
  const message = { role: "assistant", content: null, refusal: null };
  return {
    ...json,
    choices: choices.map((choice) => (isWordless(choice) ? { ...choice, message } : choice)),
  };
}

const NO_CHOICES = fault("the answer has no choices");
