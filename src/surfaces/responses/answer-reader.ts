import { AnswerParts, MAX_PARTS, TOO_MANY_PARTS } from "../events/answer-bounds.ts";
import { ENDED_EARLY, errorOf, fault, NO_EVENT, untypedError } from "../host-error.ts";
import { asObject, asText, type Json, parseObject } from "../json/json.ts";
import type { HostError } from "../surface.ts";
import { readOpenAiUsage } from "../usage.ts";
import type { AnswerEvents, OpenBlock, StopReason } from "../vocabulary/answer-events.ts";
import type { AnswerReader } from "../vocabulary/answer-reader.ts";
import { BlockQueue } from "../vocabulary/block-queue.ts";
import { readCitation } from "../vocabulary/citations.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { readReasoningItem } from "./request-reader.ts";

/**
 * A responses host's events, read (platform.openai.com, "Streaming events"). Items may be told side by side;
 * what a host tells only in an item's last event is told then.
 */
export class ResponsesReader implements AnswerReader {
  private readonly queue: BlockQueue;
  /** Those that are not done, by their index. */
  private readonly items = new Map<unknown, ItemState>();
  private readonly parts = new AnswerParts();
  private called = false;

  constructor(
    private readonly events: AnswerEvents,
    private readonly family: string,
  ) {
    this.queue = new BlockQueue(events);
  }

  read(text: string | null): "more" | "ping" | "end" | HostError {
    if (text === null) return "ping";
    const data = parseObject(text);
    if (data === null) return text.trim() === "" ? "more" : NO_EVENT;
    switch (data.type) {
      case "keepalive":
        return "ping";
      case "response.created": {
        const id = asObject(data.response)?.id;
        this.events.start(typeof id === "string" ? id : null, null);
        return "more";
      }
      case "response.output_item.added":
        this.open(data.output_index, asObject(data.item) ?? {});
        break;
      case "response.output_text.delta": {
        const { logprobs } = data;
        const told = Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined;
        this.told(data, "text", data.delta, told);
        break;
      }
      case "response.output_text.annotation.added":
        this.cite(data.output_index, data.annotation);
        break;
      case "response.refusal.delta":
        this.told(data, "refusal", data.delta);
        break;
      case "response.reasoning_summary_part.added":
        this.nextThought(data.output_index);
        break;
      case "response.content_part.added":
        if (asObject(data.part)?.type === "reasoning_text") this.nextThought(data.output_index);
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.told(data, "reasoning", data.delta);
        break;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        this.told(data, "tool_call", data.delta);
        break;
      case "response.output_item.done":
        this.done(data.output_index, asObject(data.item) ?? {});
        return "more";
      case "response.completed":
      case "response.incomplete":
        return this.finish(asObject(data.response) ?? {});
      case "response.failed":
        return errorOf(data.response, "the response failed");
      case "error":
        return errorOf(data, "an error without a message");
      case undefined:
        return untypedError(data) ?? "more";
    }
    return this.queue.isOverfull ? fault("too much text of several items at once") : "more";
  }

  close(): HostError {
    return ENDED_EARLY;
  }

  private open(index: unknown, item: Json): void {
    this.parts.begin();
    const state: ItemState = { isTold: false, isCited: false, part: null, parts: 0 };
    this.items.set(index, state);
    if (item.type !== "function_call" && item.type !== "custom_tool_call") return;
    this.called = true;
    state.part = `${asText(index)} call`;
    this.queue.open(state.part, {
      kind: "tool_call",
      id: asText(item.call_id ?? item.id),
      name: asText(item.name),
      custom: item.type === "custom_tool_call",
    });
  }

  private told(data: Json, kind: OpenBlock["kind"], text: unknown, logprobs?: readonly unknown[]): void {
    if (typeof text !== "string" || text === "") return;
    const state = this.items.get(data.output_index);
    if (state === undefined) return;
    const { content_index: part = 0 } = data;
    const key =
      kind === "tool_call"
        ? state.part!
        : `${asText(data.output_index)} ${kind} ${kind === "reasoning" ? "" : asText(part)}`;
    if (state.part !== key) {
      if (kind === "tool_call") return;
      if (state.part !== null) this.queue.close(state.part, null);
      state.part = key;
      this.queue.open(key, { kind });
    }
    state.isTold = true;
    this.queue.delta(key, text, logprobs);
  }

  private cite(index: unknown, annotation: unknown): void {
    const state = this.items.get(index);
    const citation = readCitation(annotation);
    if (state === undefined || state.part === null || citation === null) return;
    state.isCited = true;
    this.queue.cite(state.part, citation);
  }

  /** Thoughts come in paragraphs. */
  private nextThought(index: unknown): void {
    const state = this.items.get(index);
    if (state === undefined) return;
    state.parts += 1;
    if (state.parts > 1) this.told({ output_index: index }, "reasoning", "\n\n");
  }

  private done(index: unknown, item: Json): void {
    if (!this.items.has(index)) this.open(index, item);
    const state = this.items.get(index)!;
    const rest = { output_index: index };
    let seal: Seal | null = null;
    switch (item.type) {
      case "message":
        if (!state.isTold) this.tellContent(index, item.content);
        else if (!state.isCited) this.citeContent(index, item.content);
        break;
      case "function_call":
        if (!state.isTold) this.told(rest, "tool_call", item.arguments);
        break;
      case "custom_tool_call":
        if (!state.isTold) this.told(rest, "tool_call", item.input);
        break;
      case "reasoning": {
        const thought = readReasoningItem(item);
        if (!state.isTold) this.told(rest, "reasoning", thought.text);
        seal = thought.seal === null ? null : { ...thought.seal, family: this.family };
        if (seal !== null && state.part === null) {
          state.part = `${asText(index)} reasoning`;
          this.queue.open(state.part, { kind: "reasoning" });
        }
      }
    }
    if (state.part !== null) this.queue.close(state.part, seal);
    this.items.delete(index);
  }

  private tellContent(index: unknown, content: unknown): void {
    for (const [at, value] of (Array.isArray(content) ? content : []).entries()) {
      const part = asObject(value) ?? {};
      const place = { output_index: index, content_index: at };
      if (part.type === "refusal") this.told(place, "refusal", part.refusal);
      else this.told(place, "text", part.text);
      this.citePart(index, part);
    }
  }

  /** Of several parts, all but the last are closed by now. */
  private citeContent(index: unknown, content: unknown): void {
    if (Array.isArray(content) && content.length === 1) this.citePart(index, asObject(content[0]) ?? {});
  }

  private citePart(index: unknown, { annotations }: Json): void {
    if (Array.isArray(annotations)) for (const annotation of annotations) this.cite(index, annotation);
  }

  private finish(response: Json): "end" {
    this.queue.closeAll();
    const usage = readOpenAiUsage(response.usage);
    if (usage !== null) this.events.usage(usage);
    this.events.stop(reasonOf(response, this.called), null);
    return "end";
  }
}

interface ItemState {
  /** Something of it was. */
  isTold: boolean;
  isCited: boolean;
  /** Key of the block that is open. */
  part: string | null;
  /** Paragraphs of thoughts. */
  parts: number;
}

function reasonOf(response: Json, called: boolean): StopReason {
  if (response.status === "incomplete")
    return asObject(response.incomplete_details)?.reason === "content_filter" ? "filter" : "length";
  return called ? "tools" : "end";
}

/** Why a whole answer is none; null when it is one. */
export function faultIn(json: Json): HostError | null {
  if (json.status === "failed" || (json.error !== undefined && json.error !== null))
    return errorOf(json, "the response failed");
  if (!Array.isArray(json.output)) return fault("the answer has no output");
  return json.output.length > MAX_PARTS ? fault(TOO_MANY_PARTS) : null;
}
