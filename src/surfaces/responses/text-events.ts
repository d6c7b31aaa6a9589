import type { TextEvents } from "../events/sole-text.ts";

/** Events whose `delta` the model wrote. */
export const RESPONSES_TEXTS: TextEvents = {
  soleText({ type, delta, output_index: item, content_index: part, summary_index: paragraph }) {
    return isWritten(type) && typeof delta === "string" && delta !== ""
      ? { text: delta, channel: channelOf(item, part ?? paragraph) }
      : null;
  },
  significant: new Set(["type", "delta", "output_index", "content_index", "summary_index"]),
  number: "sequence_number",
};

export const isWritten = (type: unknown): boolean => WRITTEN.has(type);

/** Audio and code of built-in tools are billed by the host's own report. */
const WRITTEN: ReadonlySet<unknown> = new Set([
  "response.output_text.delta",
  "response.reasoning_text.delta",
  "response.reasoning_summary_text.delta",
  "response.refusal.delta",
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.audio.transcript.delta",
  "response.code_interpreter_call_code.delta",
  "response.mcp_call_arguments.delta",
]);

export const channelOf = (item: unknown, part: unknown): number =>
  (typeof item === "number" ? item : 0) * PARTS_OF_AN_ITEM + (typeof part === "number" ? part : 0);

const PARTS_OF_AN_ITEM = 1_024;
