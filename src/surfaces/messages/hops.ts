import { BEGINNING, type TextMoment } from "../../tokens/answer-text.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import { asObject, type Json } from "../json/json.ts";
import type { Hop, Writers } from "../surface.ts";
import { addBlock } from "./written.ts";

/** A `fallback` block, which stands where one model gave way to the next (`BetaFallbackBlock`); null for what is none. */
export function hopOf(block: Json, at: TextMoment): Hop | null {
  const from = asObject(block.from)?.model;
  const to = asObject(block.to)?.model;
  return typeof from === "string" && typeof to === "string" ? { from, to, at } : null;
}

/** Who wrote a whole message. */
export function writersOf({ model, content }: Json): Writers {
  const hops: Hop[] = [];
  let estimate = 0;
  for (const value of Array.isArray(content) ? content : []) {
    const block = asObject(value);
    const hop = block?.type === "fallback" ? hopOf(block, { ...BEGINNING, estimate }) : null;
    if (hop !== null) hops.push(hop);
    const texts: string[] = [];
    addBlock(texts, block);
    for (const text of texts) estimate += estimateTokens(text);
  }
  return { first: typeof model === "string" ? model : null, hops };
}
