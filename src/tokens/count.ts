import { walkPrompt } from "./media.ts";

/**
 * Tokens of a prompt in a vocabulary: exact for its models up to a few tokens of framing a message, and near
 * for others; images and files are not counted. Ten million characters take one to five seconds, so it runs in
 * a thread of its own and only where the byte bound leaves a doubt.
 */
export function countPromptTokens(json: Readonly<Record<string, unknown>>, counter: TokenCounter): number {
  let tokens = FRAMING_PER_PROMPT;
  for (const turns of [json.messages, json.input])
    if (Array.isArray(turns)) tokens += turns.length * FRAMING_PER_MESSAGE;
  // Each is a message whose role is not said.
  for (const content of [typeof json.input === "string" ? json.input : null, json.instructions, json.system])
    if (content !== undefined && content !== null) tokens += FRAMING_PER_MESSAGE + 1;
  const text = (words: string) => void (tokens += counter.count(words));
  walkPrompt(json, { text, media() {}, tools: (tools) => text(JSON.stringify(tools)) });
  for (const name of SHOWN_AS_JSON) if (json[name] !== undefined) text(JSON.stringify(json[name]));
  return tokens;
}

export interface TokenCounter {
  /** Special tokens in a text are text like any other. */
  count(text: string): number;
}

/** Tools and schemas are shown to the model as JSON; so are tools that items of an input add. */
const SHOWN_AS_JSON = ["tools", "response_format", "text"];
/**
 * OpenAI's models count the mark of a message's beginning, those of its text's beginning and end, and the beginning
 * of the answer. The role is a text like any other.
 */
const FRAMING_PER_PROMPT = 3;
const FRAMING_PER_MESSAGE = 3;
