import { BEGINNING, type TextMoment } from "../../tokens/answer-text.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import { asObject, type Json, type MutableJson } from "../json/json.ts";
import type { AnswerMetadata, Hop, Writers } from "../surface.ts";
import { addBlock } from "./text-events.ts";

/** A `fallback` block, which stands where one model gave way to the next (`BetaFallbackBlock`); null for what is none. */
export function hopOf(block: Json, at: TextMoment): Hop | null {
  const from = asObject(block.from)?.model;
  const to = asObject(block.to)?.model;
  return typeof from === "string" && typeof to === "string" ? { from, to, at } : null;
}

/** With the public names of both models. */
export function renameHop(block: MutableJson, { from, to }: Hop, writers: Writers, idOf: IdOf): void {
  block.from = { ...asObject(block.from), model: idOf({ first: from, hops: [] }) };
  block.to = { ...asObject(block.to), model: idOf({ ...writers, hops: upTo(to, writers) }) };
}

type IdOf = NonNullable<AnswerMetadata["idOf"]>;

const upTo = (to: string, { hops }: Writers): readonly Hop[] =>
  hops.slice(0, hops.findIndex((hop) => hop.to === to) + 1);

/** Who wrote a whole message, whose hops get public names if there are any. */
export function readWriters(message: MutableJson, idOf: IdOf): Writers {
  const { model, content } = message;
  const blocks = Array.isArray(content) ? content.map(asObject) : [];
  const writers = { first: typeof model === "string" ? model : null, hops: [] as Hop[] };
  let estimate = 0;
  for (const block of blocks) {
    const hop = block?.type === "fallback" ? hopOf(block, { ...BEGINNING, estimate }) : null;
    if (hop !== null) {
      writers.hops.push(hop);
      renameHop(block!, hop, writers, idOf);
    }
    const texts: string[] = [];
    addBlock(texts, block);
    for (const text of texts) estimate += estimateTokens(text);
  }
  return writers;
}
