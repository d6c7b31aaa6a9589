import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

/**
 * Tokens of a prompt by OpenAI's o200k vocabulary: exact for its models up to a few tokens of framing a message, and near
 * for others. It takes about a second for ten million characters, so it runs in a thread of its own and only where the byte
 * bound leaves a doubt.
 */
export function countPromptTokens(json: Readonly<Record<string, unknown>>): number {
  let tokens = FRAMING_PER_PROMPT;
  for (const turns of [json.messages, json.input])
    if (Array.isArray(turns)) tokens += turns.length * FRAMING_PER_MESSAGE;
  for (const text of promptTexts(json)) tokens += countTokens(text, ALLOW_ALL);
  return tokens;
}

/** Members of the three languages that the model reads. */
const PROMPT_MEMBERS = ["messages", "input", "instructions", "system", "tools", "response_format", "text"];

/** Special tokens in a prompt are text like any other. */
const ALLOW_ALL = { disallowedSpecial: new Set<string>() };
const FRAMING_PER_PROMPT = 3;
const FRAMING_PER_MESSAGE = 4;
const MAX_DEPTH = 128;

function* promptTexts(json: Readonly<Record<string, unknown>>): Generator<string> {
  for (const name of PROMPT_MEMBERS) {
    const value = json[name];
    // Tools and schemas are shown to the model as JSON.
    if (name === "tools" || name === "response_format" || name === "text") {
      if (value !== undefined) yield JSON.stringify(value);
    } else yield* texts(value, 0);
  }
}

function* texts(value: unknown, depth: number): Generator<string> {
  if (depth > MAX_DEPTH) return;
  if (typeof value === "string") {
    if (!value.startsWith("data:")) yield value;
  } else if (Array.isArray(value)) {
    for (const item of value) yield* texts(item, depth + 1);
  } else if (typeof value === "object" && value !== null) {
    const { data, file_data, type, ...rest } = value as Record<string, unknown>;
    for (const item of Object.values(rest)) yield* texts(item, depth + 1);
  }
}
