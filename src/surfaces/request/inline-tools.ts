import { asObject, type Json } from "../json/json.ts";

/**
 * Tools that a request of Messages defines in the middle of its conversation, with their paths (Anthropic,
 * `tool_addition` with a `tool_definition`): what holds for `tools` holds for them.
 */
export function inlineTools({ messages }: Json): readonly InlineTool[] {
  const found: InlineTool[] = [];
  if (!Array.isArray(messages)) return found;
  for (const [at, value] of messages.entries()) {
    const message = asObject(value);
    if (message?.role !== "system" || !Array.isArray(message.content)) continue;
    for (const [number, block] of message.content.entries()) {
      const { type, tool } = asObject(block) ?? {};
      const definition = type === "tool_addition" ? asObject(asObject(tool)?.definition) : null;
      if (definition !== null)
        found.push({ path: `messages[${at}].content[${number}].tool.definition`, tool: definition });
    }
  }
  return found;
}

interface InlineTool {
  readonly path: string;
  readonly tool: Json;
}
