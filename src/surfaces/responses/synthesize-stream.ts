import { StreamSynthesis } from "../events/stream-synthesis.ts";
import { asObject, type Json } from "../json/json.ts";
import type { HostError } from "../surface.ts";

type EventEmitter = (type: string, more: Json) => void;

/**
 * A responses host's whole answer, in which no fault was found, as events (platform.openai.com, "Streaming
 * events"). Items that are neither messages, thoughts nor calls begin as they end.
 */
export function synthesizeResponsesStream(reply: Json): Uint8Array | HostError {
  const synthesis = new StreamSynthesis();
  let sequence_number = 0;
  const emit: EventEmitter = (type, more) =>
    synthesis.emit(type, { type, sequence_number: sequence_number++, ...more });
  const status = reply.status === "incomplete" ? "incomplete" : "completed";
  const started = { status: "in_progress", output: [], incomplete_details: null, usage: null };
  const response = { ...reply, ...started, ...("completed_at" in reply ? { completed_at: null } : {}) };
  emit("response.created", { response });
  emit("response.in_progress", { response });
  for (const [at, value] of (reply.output as readonly unknown[]).entries()) {
    const item = asObject(value) ?? {};
    const running = "status" in item ? { status: "in_progress" } : {};
    emit("response.output_item.added", { output_index: at, item: { ...item, ...running, ...emptied(item) } });
    emitItem(item, { item_id: item.id, output_index: at }, emit);
    emit("response.output_item.done", { output_index: at, item });
  }
  emit(`response.${status}`, { response: { ...reply, status } });
  return synthesis.bytes();
}

/** The members of an item that have events of their own. */
function emptied({ type }: Json): Json {
  switch (type) {
    case "message":
      return { content: [] };
    case "reasoning":
      return { summary: [], content: undefined };
    case "function_call":
      return { arguments: "" };
    case "custom_tool_call":
      return { input: "" };
    default:
      return {};
  }
}

function emitItem(item: Json, indexes: Json, emit: EventEmitter): void {
  switch (item.type) {
    case "message":
      emitParts(item.content, indexes, emit);
      return;
    case "reasoning":
      emitSummary(item.summary, indexes, emit);
      emitParts(item.content, indexes, emit);
      return;
    case "function_call":
      emit("response.function_call_arguments.delta", { ...indexes, delta: item.arguments });
      emit("response.function_call_arguments.done", {
        ...indexes,
        name: item.name,
        arguments: item.arguments,
      });
      return;
    case "custom_tool_call":
      emit("response.custom_tool_call_input.delta", { ...indexes, delta: item.input });
      emit("response.custom_tool_call_input.done", { ...indexes, input: item.input });
  }
}

function emitSummary(parts: unknown, indexes: Json, emit: EventEmitter): void {
  for (const [summary_index, part] of partsOf(parts)) {
    const { text } = part;
    const at = { ...indexes, summary_index };
    emit("response.reasoning_summary_part.added", { ...at, part: { ...part, text: "" } });
    emit("response.reasoning_summary_text.delta", { ...at, delta: text });
    emit("response.reasoning_summary_text.done", { ...at, text });
    emit("response.reasoning_summary_part.done", { ...at, part });
  }
}

function emitParts(parts: unknown, indexes: Json, emit: EventEmitter): void {
  for (const [content_index, part] of partsOf(parts)) {
    const at = { ...indexes, content_index };
    switch (part.type) {
      case "output_text": {
        const { text, logprobs = [], annotations } = part;
        emit("response.content_part.added", {
          ...at,
          part: { ...part, text: "", annotations: [], logprobs: [] },
        });
        emit("response.output_text.delta", { ...at, delta: text, logprobs });
        for (const [annotation_index, annotation] of partsOf(annotations))
          emit("response.output_text.annotation.added", { ...at, annotation_index, annotation });
        emit("response.output_text.done", { ...at, text, logprobs });
        break;
      }
      case "refusal": {
        const { refusal } = part;
        emit("response.content_part.added", { ...at, part: { ...part, refusal: "" } });
        emit("response.refusal.delta", { ...at, delta: refusal });
        emit("response.refusal.done", { ...at, refusal });
        break;
      }
      case "reasoning_text": {
        const { text } = part;
        emit("response.content_part.added", { ...at, part: { ...part, text: "" } });
        emit("response.reasoning_text.delta", { ...at, delta: text });
        emit("response.reasoning_text.done", { ...at, text });
        break;
      }
      default:
        emit("response.content_part.added", { ...at, part });
    }
    emit("response.content_part.done", { ...at, part });
  }
}

const partsOf = (parts: unknown): readonly (readonly [number, Json])[] =>
  Array.isArray(parts) ? parts.map((part, at) => [at, asObject(part) ?? {}] as const) : [];
