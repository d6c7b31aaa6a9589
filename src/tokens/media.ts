/**
 * Tells text in a prompt from everything else. The same walk serves the bound that is held for a prompt and
 * the exact count of its text, so nothing falls between the two: whatever is not certainly an image or a file
 * is text.
 */
export function walkPrompt(json: Readonly<Record<string, unknown>>, visitor: PromptVisitor): void {
  for (const name of TURNS) walk(json[name], { shows: true, carries: false, depth: 0 }, visitor);
}

export interface PromptVisitor {
  text(text: string): void;
  /** Tools that an item of an input adds; where this is absent, their texts are passed one by one. */
  tools?(tools: unknown): void;
  /** An image at its bound, or base64 of a file. */
  media(media: Media): void;
}

interface Media {
  /** Base64, which is no text. */
  readonly characters: number;
  /** An upper bound; for a file, an estimate. */
  readonly tokens: number;
  /**
   * Files embedded as base64 or data URLs; only reading them tells how many tokens they have (see
   * tokens/files).
   */
  readonly files: readonly string[];
  /** A file that the host fetches itself, whose size is not known here. */
  readonly unseen: boolean;
  /** Audio, or a file of it. */
  readonly audio: boolean;
}

/** Where the three languages have what was said. */
const TURNS = ["messages", "input", "instructions", "system"];

interface MediaContext {
  /**
   * A host looks for media here, and not for instance in the arguments of a call, which it shows to the model
   * as text.
   */
  readonly shows: boolean;
  /** Inside a part that is media: here its base64 may be. */
  readonly carries: boolean;
  readonly depth: number;
}

function walk(value: unknown, context: MediaContext, visitor: PromptVisitor): void {
  const { shows, carries, depth } = context;
  if (typeof value === "string") visitor.text(value);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return;
  if (Array.isArray(value)) {
    for (const item of value) walk(item, { ...context, depth: depth + 1 }, visitor);
    return;
  }
  const part = value as Record<string, unknown>;
  const kind = shows && !carries ? kindOf(part) : null;
  if (kind !== null) visitor.media(mediaOf(part, kind));
  for (const [name, item] of Object.entries(part)) {
    if (name === "tools" && visitor.tools !== undefined) {
      visitor.tools(item);
      continue;
    }
    if ((kind !== null || carries) && isEmbedded(part, name)) continue;
    // Models do not get the kind of a part by that name.
    if (name === "type" && typeof item === "string" && PART_TYPES.has(item)) continue;
    const inside = { shows: shows && NESTING.has(name), carries: kind !== null && CARRIERS.has(name) };
    walk(item, { ...inside, depth: depth + 1 }, visitor);
  }
}

const MAX_DEPTH = 128;
const NESTING = new Set(["content", "output", "source"]);
const CARRIERS = new Set(["image_url", "source", "file", "input_audio"]);
const IMAGES = new Set(["image_url", "input_image", "image"]);
const FILES = new Set(["file", "input_file", "document", "input_audio"]);
const PART_TYPES = new Set([
  ...IMAGES,
  ...FILES,
  "text",
  "input_text",
  "output_text",
  "message",
  "function",
  "function_call",
  "function_call_output",
  "tool_use",
  "tool_result",
  "thinking",
  "reasoning",
  "ephemeral",
  "base64",
]);

function kindOf({ type }: Record<string, unknown>): "image" | "file" | null {
  if (typeof type !== "string") return null;
  return IMAGES.has(type) ? "image" : FILES.has(type) ? "file" : null;
}

function mediaOf(part: Record<string, unknown>, kind: "image" | "file"): Media {
  const embedded: string[] = [];
  let unseen = false;
  for (const carrier of [part, ...[...CARRIERS].map((name) => part[name])]) {
    if (typeof carrier !== "object" || carrier === null) continue;
    const members = carrier as Record<string, unknown>;
    for (const name of EMBEDDING) if (isEmbedded(members, name)) embedded.push(members[name] as string);
    if (kind === "file") unseen ||= REFERRING.some((name) => isReference(members, name));
  }
  const characters = embedded.reduce((sum, { length }) => sum + length, 0);
  const tokens = kind === "image" ? IMAGE_TOKENS : Math.ceil(characters / EMBEDDED_CHARACTERS_PER_TOKEN);
  const files =
    kind === "image" ? [] : embedded.filter((data) => part.type !== "input_audio" || !AUDIO.test(data));
  const audio = part.type === "input_audio" || embedded.some((data) => CALLED_AUDIO.test(data));
  return { characters, tokens, files, unseen, audio };
}

/**
 * WAV and MP3, as they begin in base64: a quarter of a token a character is far above what hosts count for
 * their seconds.
 */
const AUDIO = /^(data:[^,]*,)?(UklGR|SUQz|\/[/+])/;

const CALLED_AUDIO = /^data:audio\//i;

const EMBEDDING = ["data", "file_data", "url", "image_url"];
const REFERRING = ["url", "file_url", "file_id", "file_data"];

/**
 * Base64, or a data URL. A plain-text document of Anthropic's language is text, whatever its field is called.
 */
function isEmbedded(part: Record<string, unknown>, name: string): boolean {
  const value = part[name];
  if (typeof value !== "string") return false;
  if (name === "data") return part.type !== "text";
  if (name === "url" || name === "image_url") return value.startsWith("data:");
  // Some hosts take an address in its place.
  return name === "file_data" && !value.startsWith("http");
}

const isReference = (part: Record<string, unknown>, name: string): boolean =>
  typeof part[name] === "string" && part[name] !== "" && !isEmbedded(part, name);

/**
 * Tokens that one image may cost at most: the highest figure that the providers document for a single image
 * at full detail, rounded up.
 */
export const IMAGE_TOKENS = 5_000;

/**
 * Files and audio embedded as base64: so many characters to a token, for rate limits and where a host reports
 * no usage. A page of a PDF is some 3,000 tokens and seldom below 20 kB; a dense one exceeds this many times.
 */
const EMBEDDED_CHARACTERS_PER_TOKEN = 4;
