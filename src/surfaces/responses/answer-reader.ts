import { AnswerParts, MAX_PARTS, TOO_MANY_PARTS } from "../events/answer-bounds.ts";
import { ENDED_EARLY, errorOf, fault, NO_EVENT, untypedError } from "../host-error.ts";
import { asObject, asText, type Json, parseObject } from "../json/json.ts";
import type { HostError } from "../surface.ts";
import { readOpenAiUsage } from "../usage.ts";
import type { AnswerEvents, AnswerReader, OpenBlock, StopReason } from "../vocabulary/answer-events.ts";
import { BlockQueue } from "../vocabulary/block-queue.ts";
import { readCitation } from "../vocabulary/citations.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { readReasoningItem } from "./request-reader.ts";

/**
 * A responses host's events, read (platform.openai.com, "Streaming events"). Items may arrive side by side;
 * what a host sends only in an item's last event is passed on then.
 */
export class ResponsesReader implements AnswerReader {
  private readonly queue: BlockQueue;
  /** Items that are not done, by their index. */
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
    const index = data.output_index ?? this.openItem(data);
    switch (data.type) {
      case "keepalive":
        return "ping";
      case "response.created": {
        const id = asObject(data.response)?.id;
        this.events.start(typeof id === "string" ? id : null, null);
        return "more";
      }
      case "response.output_item.added":
        this.open(data.output_index ?? asObject(data.item)?.id, asObject(data.item) ?? {});
        break;
      case "response.output_text.delta": {
        const { logprobs } = data;
        const given = Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined;
        this.write(index, data.content_index, "text", data.delta, given);
        break;
      }
      case "response.output_text.annotation.added":
        this.cite(index, data.annotation);
        break;
      case "response.refusal.delta":
        this.write(index, data.content_index, "refusal", data.delta);
        break;
      case "response.reasoning_summary_part.added":
        this.nextThought(index);
        break;
      case "response.content_part.added":
        if (asObject(data.part)?.type === "reasoning_text") this.nextThought(index);
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.write(index, data.content_index, "reasoning", data.delta);
        break;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        this.write(index, data.content_index, "tool_call", data.delta);
        break;
      case "response.output_item.done":
        this.done(index, asObject(data.item) ?? {});
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

  /** The index of the open item that an event without one is about: the item that it names, or else the newest. */
  private openItem({ item_id, item }: Json): unknown {
    const id = item_id ?? asObject(item)?.id;
    let newest: unknown;
    for (const [index, state] of this.items) {
      if (id !== undefined && state.id === id) return index;
      newest = index;
    }
    return newest;
  }

  private open(index: unknown, item: Json): void {
    this.parts.begin();
    const state: ItemState = { id: item.id, isWritten: false, isCited: false, part: null, parts: 0 };
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

  private write(
    index: unknown,
    part: unknown,
    kind: OpenBlock["kind"],
    text: unknown,
    logprobs?: readonly unknown[],
  ): void {
    if (typeof text !== "string" || text === "") return;
    const state = this.items.get(index);
    if (state === undefined) return;
    const key =
      kind === "tool_call"
        ? state.part!
        : `${asText(index)} ${kind} ${kind === "reasoning" ? "" : asText(part ?? 0)}`;
    if (state.part !== key) {
      if (kind === "tool_call") return;
      if (state.part !== null) this.queue.close(state.part, null);
      state.part = key;
      this.queue.open(key, { kind });
    }
    state.isWritten = true;
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
    if (state.parts > 1) this.write(index, null, "reasoning", "\n\n");
  }

  private done(index: unknown, item: Json): void {
    if (!this.items.has(index)) this.open(index, item);
    const state = this.items.get(index)!;
    let seal: Seal | null = null;
    switch (item.type) {
      case "message":
        if (!state.isWritten) this.writeContent(index, item.content);
        else if (!state.isCited) this.citeContent(index, item.content);
        break;
      case "function_call":
        if (!state.isWritten) this.write(index, null, "tool_call", item.arguments);
        break;
      case "custom_tool_call":
        if (!state.isWritten) this.write(index, null, "tool_call", item.input);
        break;
      case "reasoning": {
        const thought = readReasoningItem(item);
        if (!state.isWritten) this.write(index, null, "reasoning", thought.text);
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

  private writeContent(index: unknown, content: unknown): void {
    for (const [at, value] of (Array.isArray(content) ? content : []).entries()) {
      const part = asObject(value) ?? {};
      if (part.type === "refusal") this.write(index, at, "refusal", part.refusal);
      else this.write(index, at, "text", part.text);
      this.citePart(index, part);
    }
  }

  /** All parts but the last are closed by now. */
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
  readonly id: unknown;
  /** Something of it was. */
  isWritten: boolean;
  isCited: boolean;
  /** Key of the block that is open. */
  part: string | null;
  /** Paragraphs of thoughts. */
  parts: number;
}

function reasonOf(response: Json, called: boolean): StopReason {
  if (response.status === "incomplete") return isFiltered(response) ? "filter" : "length";
  return called ? "tools" : "end";
}

/** It ended for policy reasons. */
export const isFiltered = (response: Json | null): boolean =>
  response?.status === "incomplete" && asObject(response.incomplete_details)?.reason === "content_filter";

export function faultIn(json: Json): HostError | null {
  if (json.status === "failed" || (json.error !== undefined && json.error !== null))
    return errorOf(json, "the response failed");
  if (!Array.isArray(json.output)) return fault("the answer has no output");
  return json.output.length > MAX_PARTS ? fault(TOO_MANY_PARTS) : null;
}
