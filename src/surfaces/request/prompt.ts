import { estimatePrompt } from "../../tokens/estimate.ts";
import { walkPrompt } from "../../tokens/media.ts";
import { containsOne } from "../json/bytes.ts";
import { asObject, type Json } from "../json/json.ts";
import type { PromptSize } from "../surface.ts";
import { toolLists } from "../vocabulary/tools.ts";

/**
 * Sizes a prompt without tokenizing it. Every vocabulary in use is built on bytes, so no text has more tokens
 * than UTF-8 bytes, and the JSON around it only adds. Images and audio are not text: each counts at a bound
 * of its own. Embedded files have no bound until they are read.
 */
export function sizePrompt(bytes: number, { json, outline, searched }: SearchedJson): PromptSize {
  const all = { characters: 0, tokens: 0, mediaTokens: 0, hasFiles: false, unseen: isServedMore(outline) };
  let audioTokens: number | null = null;
  if (containsOne(searched, MEDIA_MARKS))
    walkPrompt(json, {
      text() {},
      media({ characters, tokens, files, unseen, audio }) {
        all.characters += characters;
        all.tokens += tokens;
        if (files.length === 0) all.mediaTokens += tokens;
        else all.hasFiles = true;
        all.unseen ||= unseen;
        if (audio) audioTokens = (audioTokens ?? 0) + tokens;
      },
    });
  const textBytes = Math.max(0, bytes - all.characters);
  const textEstimate = estimatePrompt(textBytes);
  const estimate = textEstimate + all.tokens;
  return {
    promptBound: textBytes + all.mediaTokens,
    promptEstimate: estimate,
    promptTextEstimate: textEstimate,
    mediaTokens: all.mediaTokens,
    promptHasFiles: all.hasFiles,
    promptWithoutAudio: audioTokens === null ? null : estimate - audioTokens,
    promptUnseen: all.unseen,
  };
}

/** A request as it was parsed, with its bytes. */
export interface SearchedJson {
  readonly json: Json;
  /** The same, but for long texts of the conversation that may be cut. */
  readonly outline: Json;
  /** The bytes of the outline: all names and short texts are in them, as they are spelt. */
  readonly searched: Uint8Array;
}

/** The last one is how a name may be written so that it is not found by its letters. */
const MEDIA_MARKS = ["image", '"document"', '"file"', "input_file", "input_audio", "\\u00"].map((mark) =>
  Buffer.from(mark),
);

/**
 * Searches, files, templates, summaries and agents of the host's own are read next to the prompt and billed as
 * that.
 */
function isServedMore(json: Readonly<Record<string, unknown>>): boolean {
  for (const name of SERVED_MEMBERS) if (json[name] !== undefined && json[name] !== null) return true;
  const edits = asObject(json.context_management)?.edits;
  if (Array.isArray(edits) && edits.some(isCompaction)) return true;
  return Array.isArray(json.input)
    ? toolLists(json).some(({ tools }) => hasServed(tools))
    : hasServed(json.tools);
}

const hasServed = (tools: unknown): boolean =>
  Array.isArray(tools) && tools.some((tool) => isServed(asObject(tool)?.type));

function isCompaction(edit: unknown): boolean {
  const type = asObject(edit)?.type;
  return typeof type === "string" && type.startsWith("compact");
}

const SERVED_MEMBERS = [
  "prompt",
  "mcp_servers",
  "web_search_options",
  "plugins",
  "compaction",
  "multi_agent",
];
const SERVED_TOOLS =
  /^(web_search|web_fetch|file_search|code_interpreter|code_execution|mcp|browser_search|openrouter:)/;

const isServed = (type: unknown): boolean => typeof type === "string" && SERVED_TOOLS.test(type);
