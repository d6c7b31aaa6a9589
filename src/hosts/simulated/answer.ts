/**
 * What the simulated host says, before it is put into a wire language: the caller's last words behind a
 * greeting, or a call of the tool that the caller forces. Its tokens are words, cut at `TOKEN_CHARACTERS`,
 * and are counted the same way in prompts and answers, so that the usage it reports is true.
 */
export interface SimulatedAnswer {
  readonly model: string;
  /** Unguessable part of the answer's ids. */
  readonly id: string;
  readonly createdS: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The token ceiling ended it. */
  readonly cut: boolean;
  readonly said: SimulatedContent;
  /** The text stands for the conversation. */
  readonly isSummary: boolean;
}

export type SimulatedContent =
  | { readonly kind: "text"; readonly words: readonly string[] }
  | {
      readonly kind: "tool";
      readonly name: string;
      /** JSON, or free text where the tool is freeform; in the pieces that it is streamed in. */
      readonly pieces: readonly string[];
      readonly freeform: boolean;
    };

/** What one of the wire languages read from a request. */
export interface SimulatedRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly maxOutputTokens: number | null;
  /** All the text of the prompt, to be counted. */
  readonly prompt: readonly string[];
  /** The last thing that a user or a tool said to the model. */
  readonly lastWords: string;
  /** The tool that must be called. */
  readonly tool: ForcedTool | null;
  /** A summary is wanted in the place of an answer. */
  readonly wantsSummary?: boolean;
}

export interface ForcedTool {
  readonly name: string;
  /** JSON schema of the arguments; null for a freeform tool. */
  readonly schema: unknown;
}

const GREETING = "Hello from the simulated host! You said: ";
const TOKEN_CHARACTERS = 16;

export function simulatedAnswer(
  asked: SimulatedRequest,
  mostTokens: number,
  id: string,
  nowMs: number,
): SimulatedAnswer {
  const ceiling = Math.min(asked.maxOutputTokens ?? mostTokens, mostTokens);
  const { tool, lastWords } = asked;
  const freeform = tool !== null && tool.schema === null;
  const text =
    tool === null
      ? GREETING + (lastWords === "" ? "nothing at all." : lastWords)
      : freeform
        ? lastWords
        : JSON.stringify(sample(tool.schema, lastWords, 0));
  const { words, cut } = firstWords(text, ceiling);
  return {
    model: asked.model,
    id,
    createdS: Math.floor(nowMs / 1000),
    inputTokens: asked.prompt.reduce((sum, part) => sum + countWords(part), 0),
    outputTokens: words.length,
    cut,
    isSummary: asked.wantsSummary === true,
    said:
      tool === null ? { kind: "text", words } : { kind: "tool", name: tool.name, pieces: words, freeform },
  };
}

/** By code point, so that no character is cut in two; spaces belong to the word that follows. */
const WORD = new RegExp(`\\s*\\S{1,${TOKEN_CHARACTERS}}|\\s+$`, "gu");

function firstWords(text: string, most: number): { words: string[]; cut: boolean } {
  const words: string[] = [];
  for (const [word] of text.matchAll(WORD)) {
    if (words.length === most) return { words, cut: true };
    words.push(word);
  }
  return { words, cut: false };
}

function countWords(text: string): number {
  let count = 0;
  for (const _ of text.matchAll(WORD)) count++;
  return count;
}

const SCHEMA_DEPTH_MAX = 8;
const SCHEMA_PROPERTIES_MAX = 64;

/** The smallest value that a JSON schema describes, with the caller's words where it wants a text. */
function sample(schema: unknown, words: string, depth: number): unknown {
  const rules = record(schema);
  if (depth > SCHEMA_DEPTH_MAX) return null;
  if ("const" in rules) return rules.const;
  if (Array.isArray(rules.enum) && rules.enum.length > 0) return rules.enum[0];
  if (Array.isArray(rules.anyOf) && rules.anyOf.length > 0) return sample(rules.anyOf[0], words, depth + 1);
  switch (Array.isArray(rules.type) ? rules.type[0] : rules.type) {
    case "string":
      return words;
    case "number":
    case "integer":
      return typeof rules.minimum === "number" ? rules.minimum : 0;
    case "boolean":
      return false;
    case "null":
      return null;
    case "array":
      return [];
    default:
      return sampleObject(rules, words, depth);
  }
}

function sampleObject(rules: Readonly<Record<string, unknown>>, words: string, depth: number): object {
  const properties = record(rules.properties);
  const required = Array.isArray(rules.required) ? rules.required : Object.keys(properties);
  const entries = required
    .slice(0, SCHEMA_PROPERTIES_MAX)
    .map((name) => [String(name), sample(properties[String(name)], words, depth + 1)]);
  return Object.fromEntries(entries);
}

export const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The texts inside a message's content, whichever of the three languages wrote it. */
export function textsOf(content: unknown, depth = 0): string[] {
  if (typeof content === "string") return [content];
  if (depth > SCHEMA_DEPTH_MAX) return [];
  return list(content).flatMap((part) => {
    const { text, content: inner } = record(part);
    return typeof text === "string" ? [text] : textsOf(inner, depth + 1);
  });
}

/** By a user or a tool: what an agent instructs the model with may stand behind the user's words. */
export const isSaid = (message: unknown): boolean =>
  !["assistant", "system", "developer"].includes(String(record(message).role));

export const ceilingOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
