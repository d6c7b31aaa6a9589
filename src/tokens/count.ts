import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { walkPrompt } from "./media.ts";

/**
 * Tokens of a prompt by OpenAI's o200k vocabulary: exact for its models up to a few tokens of framing a
 * message, and near for others; images and files are not counted. It takes about a second for ten million
 * characters, so it runs in a thread of its own and only where the byte bound leaves a doubt.
 */
export function countPromptTokens(json: Readonly<Record<string, unknown>>): number {
  let tokens = FRAMING_PER_PROMPT;
  for (const turns of [json.messages, json.input])
    if (Array.isArray(turns)) tokens += turns.length * FRAMING_PER_MESSAGE;
  const text = (words: string) => {
    for (const piece of pieces(words)) tokens += countTokens(piece, ALLOW_ALL);
  };
  walkPrompt(json, { text, media() {}, tools: (tools) => text(JSON.stringify(tools)) });
  for (const name of SHOWN_AS_JSON) if (json[name] !== undefined) text(JSON.stringify(json[name]));
  return tokens;
}

/** Tools and schemas are shown to the model as JSON; so are tools that items of an input add. */
const SHOWN_AS_JSON = ["tools", "response_format", "text"];

/** Special tokens in a prompt are text like any other. */
const ALLOW_ALL = { disallowedSpecial: new Set<string>() };
const FRAMING_PER_PROMPT = 3;
const FRAMING_PER_MESSAGE = 4;

/**
 * The text, cut where a run of letters, of spaces or of other signs is longer than any word. The time that a
 * run takes grows with the square of its length: twenty seconds for eighty kilobytes of one letter. A cut
 * adds a token at most.
 */
function* pieces(text: string): Generator<string> {
  let start = 0;
  let run = 0;
  let before = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const kind = kindOf(code);
    run = kind === before ? run + 1 : 1;
    before = kind;
    const isHalf = code >= 0xd800 && code < 0xdc00;
    if (run < LONGEST_RUN || isHalf) continue;
    yield text.slice(start, at + 1);
    start = at + 1;
    run = 0;
  }
  if (start < text.length) yield start === 0 ? text : text.slice(start);
}

const LONGEST_RUN = 256;

/** 0 spaces, 1 letters and everything outside ASCII, 2 other signs. */
function kindOf(code: number): number {
  if (code <= 0x20) return 0;
  const lower = code | 0x20;
  return code >= 0x80 || (lower >= 0x61 && lower <= 0x7a) ? 1 : 2;
}
