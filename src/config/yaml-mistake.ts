import type { ErrorCode, YAMLError } from "yaml";

/** What is wrong with a text that is no YAML, as a sentence; the words of the parser where we have none. */
export function yamlMistake({ code, message }: Pick<YAMLError, "code" | "message">): string {
  if (message.startsWith("Missing closing")) return "the quote that opens here is never closed";
  if (message.startsWith("Sequence item without")) return SENTENCES.BAD_INDENT!;
  const bracket = /^Flow .* end with a ([\]}])/.exec(message)?.[1];
  if (bracket !== undefined)
    return `a list or map in brackets opens before this and is not closed with ${bracket}, or this line is not indented deeper than its name`;
  const sentence = SENTENCES[code];
  return sentence ?? `this is not well-formed YAML: ${message}`;
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  BAD_ALIAS: "a value that begins with * or & has to be in quotes",
  BAD_DQ_ESCAPE: "in double quotes, a backslash begins an escape: write two of them, or use single quotes",
  BAD_INDENT: "this line is not indented like the other lines of its list or map",
  BAD_SCALAR_START: "a value that begins with this character has to be in quotes",
  BLOCK_AS_IMPLICIT_KEY: "a value that has a colon and a space in it has to be in quotes",
  DUPLICATE_KEY: "this name stands twice in its map: keep one",
  MULTILINE_IMPLICIT_KEY: "a name has to be followed by a colon on its own line",
  MULTIPLE_DOCS: "the file has several documents (---): keep one",
  TAB_AS_INDENT: "this line is indented with a tab: use spaces",
};
