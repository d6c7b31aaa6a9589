import { TextCollector, type TextEvents } from "../events/sole-text.ts";
import { asObject } from "../json/json.ts";
import { addText } from "../passing/reply.ts";

/** Events of text alone: a `content_block_delta` without a signature, which grows with each event that has one. */
export const MESSAGES_TEXTS: TextEvents = {
  soleText({ type, index, delta: given }) {
    const delta = asObject(given);
    if (type !== "content_block_delta" || delta === null || "signature" in delta) return null;
    const texts = new TextCollector();
    const block = typeof index === "number" ? index : 0;
    for (const text of [delta.text, delta.thinking, delta.partial_json]) texts.add(text, block);
    return texts.sole;
  },
  significant: null,
  number: null,
};

export function addBlock(texts: string[], block: Record<string, unknown> | null): void {
  if (block === null) return;
  for (const text of [block.text, block.thinking, block.name]) addText(texts, text);
  if (block.input !== undefined) addText(texts, JSON.stringify(block.input));
}
