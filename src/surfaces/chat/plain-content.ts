import { asObject, type MutableJson } from "../json/json.ts";
import { forEachPart } from "./answer-reader.ts";

/**
 * Mistral's thinking models answer with a list of texts and thoughts, which OpenAI's clients print as
 * “[object Object]”. Texts become one, and thoughts `reasoning_content`. A list that holds anything else, such as
 * pictures, stays as it is. Tells whether it changed the message, or the delta.
 */
export function makeContentPlain(message: MutableJson | null): boolean {
  const content = message?.content;
  if (!Array.isArray(content) || !content.every((part) => WORDS.has(asObject(part)?.type))) return false;
  const words = { text: "", reasoning: "" };
  forEachPart(content, (kind, text) => {
    if (typeof text === "string") words[kind] += text;
  });
  message!.content = words.text;
  if (words.reasoning !== "" && message!.reasoning_content === undefined)
    message!.reasoning_content = words.reasoning;
  return true;
}

/** References are numbers of documents that the client does not have. */
const WORDS = new Set<unknown>(["text", "thinking", "reference"]);
