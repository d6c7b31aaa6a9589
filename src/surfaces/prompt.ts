import { EMBEDDED_CHARACTERS_PER_TOKEN, estimatePrompt, IMAGE_TOKENS } from "../tokens/estimate.ts";

/**
 * How large a prompt is, without tokenizing it. Every vocabulary in use is built on bytes, so no text has more tokens than
 * UTF-8 bytes; the JSON around it only adds. Images, files and audio are not text: each counts at its own bound.
 */
export function sizePrompt(body: Buffer, json: Readonly<Record<string, unknown>>): PromptSize {
  if (!MEDIA_MARKS.some((mark) => body.includes(mark))) {
    return { bound: body.length, estimate: estimatePrompt(body.length) };
  }
  const media: Media = { embeddedCharacters: 0, tokens: 0 };
  // Every form in which the three languages carry media is an object somewhere in the prompt.
  for (const root of [json.messages, json.input, json.system]) addMedia(root, media, 0);
  const textBytes = Math.max(0, body.length - media.embeddedCharacters);
  return { bound: textBytes + media.tokens, estimate: estimatePrompt(textBytes) + media.tokens };
}

export interface PromptSize {
  /** Never below the tokens of the text for any byte-level vocabulary. */
  readonly bound: number;
  readonly estimate: number;
}

interface Media {
  /** Base64, which is no text. */
  embeddedCharacters: number;
  tokens: number;
}

const MEDIA_MARKS = ["image", '"document"', '"file"', "input_file", "input_audio"].map((mark) =>
  Buffer.from(mark),
);

/** Media sit within a few levels of a message. */
const MAX_MEDIA_DEPTH = 12;

function addMedia(value: unknown, media: Media, depth: number): void {
  if (typeof value !== "object" || value === null || depth > MAX_MEDIA_DEPTH) return;
  if (Array.isArray(value)) {
    for (const item of value) addMedia(item, media, depth + 1);
    return;
  }
  const part = value as Record<string, unknown>;
  switch (part.type) {
    case "image_url":
    case "input_image":
    case "image":
      media.tokens += IMAGE_TOKENS;
      media.embeddedCharacters += embedded(part.image_url) + embedded(part.source);
      return;
    case "file":
    case "input_file":
    case "document":
    case "input_audio": {
      const characters =
        embedded(part) + embedded(part.file) + embedded(part.source) + embedded(part.input_audio);
      media.embeddedCharacters += characters;
      media.tokens += Math.ceil(characters / EMBEDDED_CHARACTERS_PER_TOKEN);
      return;
    }
    default:
      for (const item of Object.values(part)) addMedia(item, media, depth + 1);
  }
}

/** Length of base64 in the members that carry it, or of a data URL. */
function embedded(value: unknown): number {
  if (typeof value === "string") return value.startsWith("data:") ? value.length : 0;
  if (typeof value !== "object" || value === null) return 0;
  const { data, url, file_data, type } = value as Record<string, unknown>;
  // A plain-text document of Anthropic's language is text, whatever its field is called.
  const base64 = type === "text" ? 0 : length(data);
  return base64 + length(file_data) + (typeof url === "string" && url.startsWith("data:") ? url.length : 0);
}

const length = (value: unknown): number => (typeof value === "string" ? value.length : 0);
