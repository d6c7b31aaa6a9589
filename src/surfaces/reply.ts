import { estimateTokens } from "../tokens/estimate.ts";
import { textOf } from "./bytes.ts";
import { parseObject } from "./json.ts";

/** Null for what is no JSON object. */
export const parseReply = (body: Uint8Array): Record<string, unknown> | null =>
  parseObject(textOf(body, 0, body.length));

/** What the model wrote in a whole answer, counted cheaply. */
export function counted(texts: readonly string[]): { countedTokens: number; texts(): readonly string[] } {
  let tokens = 0;
  for (const text of texts) tokens += estimateTokens(text);
  return { countedTokens: Math.ceil(tokens), texts: () => texts };
}

export function addText(texts: string[], text: unknown): void {
  if (typeof text === "string" && text !== "") texts.push(text);
}
