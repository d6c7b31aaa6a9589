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
  const tell: EventEmitter = (type, more) =>
    synthesis.emit(type, { type, sequence_number: sequence_number++, ...more });
  const status = reply.status === "incomplete" ? "incomplete" : "completed";
  const begun = { status: "in_progress", output: [], incomplete_details: null, usage: null };
  const response = { ...reply, ...begun, ...("completed_at" in reply ? { completed_at: null } : {}) };
  tell("response.created", { response });
  tell("response.in_progress", { response });
  for (const [at, value] of (reply.output as readonly unknown[]).entries()) {
    const item = asObject(value) ?? {};
    const running = "status" in item ? { status: "in_progress" } : {};
    tell("response.output_item.added", { output_index: at, item: { ...item, ...running, ...emptied(item) } });
    tellItem(item, { item_id: item.id, output_index: at }, tell);
    tell("response.output_item.done", { output_index: at, item });
  }
  tell(`response.${status}`, { response: { ...reply, status } });
  return synthesis.bytes();
}

/** The members of an item that are told in events of their own. */
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

function tellItem(item: Json, place: Json, tell: EventEmitter): void {
  switch (item.type) {
    case "message":
      tellParts(item.content, place, tell);
      return;
    case "reasoning":
      tellSummary(item.summary, place, tell);
      tellParts(item.content, place, tell);
      return;
    case "function_call":
      tell("response.function_call_arguments.delta", { ...place, delta: item.arguments });
      tell("response.function_call_arguments.done", { ...place, name: item.name, arguments: item.arguments });
      return;
    case "custom_tool_call":
      tell("response.custom_tool_call_input.delta", { ...place, delta: item.input });
      tell("response.custom_tool_call_input.done", { ...place, input: item.input });
  }
}

function tellSummary(parts: unknown, place: Json, tell: EventEmitter): void {
  for (const [summary_index, part] of partsOf(parts)) {
    const { text } = part;
    const at = { ...place, summary_index };
    tell("response.reasoning_summary_part.added", { ...at, part: { ...part, text: "" } });
    tell("response.reasoning_summary_text.delta", { ...at, delta: text });
    tell("response.reasoning_summary_text.done", { ...at, text });
    tell("response.reasoning_summary_part.done", { ...at, part });
  }
}

function tellParts(parts: unknown, place: Json, tell: EventEmitter): void {
  for (const [content_index, part] of partsOf(parts)) {
    const at = { ...place, content_index };
    switch (part.type) {
      case "output_text": {
        const { text, logprobs = [], annotations } = part;
        tell("response.content_part.added", {
          ...at,
          part: { ...part, text: "", annotations: [], logprobs: [] },
        });
        tell("response.output_text.delta", { ...at, delta: text, logprobs });
        for (const [annotation_index, annotation] of partsOf(annotations))
          tell("response.output_text.annotation.added", { ...at, annotation_index, annotation });
        tell("response.output_text.done", { ...at, text, logprobs });
        break;
      }
      case "refusal": {
        const { refusal } = part;
        tell("response.content_part.added", { ...at, part: { ...part, refusal: "" } });
        tell("response.refusal.delta", { ...at, delta: refusal });
        tell("response.refusal.done", { ...at, refusal });
        break;
      }
      case "reasoning_text": {
        const { text } = part;
        tell("response.content_part.added", { ...at, part: { ...part, text: "" } });
        tell("response.reasoning_text.delta", { ...at, delta: text });
        tell("response.reasoning_text.done", { ...at, text });
        break;
      }
      default:
        tell("response.content_part.added", { ...at, part });
    }
    tell("response.content_part.done", { ...at, part });
  }
}

const partsOf = (parts: unknown): readonly (readonly [number, Json])[] =>
  Array.isArray(parts) ? parts.map((part, at) => [at, asObject(part) ?? {}] as const) : [];
