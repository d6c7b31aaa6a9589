import { StreamSynthesis } from "../events/stream-synthesis.ts";
import { asObject, type Json } from "../json/json.ts";
import type { HostError } from "../surface.ts";
import { CONTENT, contentEvents, PART_EVENTS, type PartEvents } from "./part-events.ts";

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
    case "reasoning":
      for (const [summary_index, part] of item.type === "message" ? [] : partsOf(item.summary))
        emitPart(PART_EVENTS.summary_text, part, { ...indexes, summary_index }, emit);
      for (const [content_index, part] of partsOf(item.content))
        emitPart(contentEvents(part.type), part, { ...indexes, content_index }, emit);
      return;
    case "function_call":
    case "custom_tool_call": {
      const { delta, done, member } = PART_EVENTS[item.type];
      const named = item.type === "function_call" ? { name: item.name } : {};
      emit(delta, { ...indexes, delta: item[member] });
      emit(done, { ...indexes, ...named, [member]: item[member] });
    }
  }
}

function emitPart(events: PartEvents | null, part: Json, at: Json, emit: EventEmitter): void {
  const { added, done } = events?.part ?? CONTENT;
  if (events === null) emit(added, { ...at, part });
  else {
    const { [events.member]: text, logprobs = [], annotations } = part;
    const isText = part.type === "output_text";
    const more = isText ? { logprobs } : {};
    const emptied = { [events.member]: "", ...(isText ? { annotations: [], logprobs: [] } : {}) };
    emit(added, { ...at, part: { ...part, ...emptied } });
    emit(events.delta, { ...at, delta: text, ...more });
    for (const [annotation_index, annotation] of isText ? partsOf(annotations) : [])
      emit("response.output_text.annotation.added", { ...at, annotation_index, annotation });
    emit(events.done, { ...at, [events.member]: text, ...more });
  }
  emit(done, { ...at, part });
}

const partsOf = (parts: unknown): readonly (readonly [number, Json])[] =>
  Array.isArray(parts) ? parts.map((part, at) => [at, asObject(part) ?? {}] as const) : [];
