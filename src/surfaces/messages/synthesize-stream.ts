import { StreamSynthesis } from "../events/stream-synthesis.ts";
import { asObject, type Json } from "../json/json.ts";
import type { HostError } from "../surface.ts";

/**
 * A messages host's whole answer, in which no fault was found, as events (docs.anthropic.com, "Streaming
 * messages").
 */
export function synthesizeMessagesStream({ content, usage, ...message }: Json): Uint8Array | HostError {
  const synthesis = new StreamSynthesis();
  const emit = (type: string, more: Json) => synthesis.emit(type, { type, ...more });
  const { stop_reason = null, stop_sequence = null, stop_details, container, context_management } = message;
  const used = asObject(usage);
  emit("message_start", {
    message: {
      ...message,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: used === null ? undefined : { ...used, output_tokens: 0 },
    },
  });
  for (const [index, value] of (content as readonly unknown[]).entries()) {
    const { start, deltas } = eventsOf(asObject(value) ?? {});
    emit("content_block_start", { index, content_block: start });
    for (const delta of deltas) emit("content_block_delta", { index, delta });
    emit("content_block_stop", { index });
  }
  emit("message_delta", {
    delta: { stop_reason, stop_sequence, stop_details, container },
    context_management,
    usage: used ?? undefined,
  });
  emit("message_stop", {});
  return synthesis.bytes();
}

/** How a block begins, and what is added to it. Claude Code empties whatever a text or a call begins with. */
function eventsOf(block: Json): { readonly start: Json; readonly deltas: readonly Json[] } {
  const { text, thinking, signature, input } = block;
  if (block.type === "text") {
    const citations = Array.isArray(block.citations) ? block.citations : [];
    const cited = citations.map((citation) => ({ type: "citations_delta", citation }));
    const start = { ...block, text: "", ...(cited.length > 0 ? { citations: [] } : {}) };
    return { start, deltas: [...deltasOf("text_delta", "text", text), ...cited] };
  }
  if (block.type === "thinking") {
    const signed = deltasOf("signature_delta", "signature", signature);
    return {
      start: { ...block, thinking: "", signature: "" },
      deltas: [...deltasOf("thinking_delta", "thinking", thinking), ...signed],
    };
  }
  if (input === undefined || input === null) return { start: block, deltas: [] };
  return {
    start: { ...block, input: {} },
    deltas: deltasOf("input_json_delta", "partial_json", JSON.stringify(input)),
  };
}

const deltasOf = (type: string, member: string, text: unknown): readonly Json[] =>
  typeof text === "string" && text !== "" ? [{ type, [member]: text }] : [];
