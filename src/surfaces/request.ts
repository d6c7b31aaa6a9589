import { isUtf8 } from "node:buffer";
import type { SurfaceName } from "../catalog/catalog.ts";
import { assert } from "../units/assert.ts";
import { withoutByteOrderMark } from "../units/byte-order-mark.ts";
import { invalid, type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { NO_BYTES, textOf } from "./json/bytes.ts";
import { asObject, type Json } from "./json/json.ts";
import { JsonCursor } from "./json/json-cursor.ts";
import { hasMoreValues } from "./json/json-scan.ts";
import { Outline } from "./json/outline.ts";
import { accountReference, REFERRING } from "./request/account-references.ts";
import { BodyChanges } from "./request/body-changes.ts";
import { namedRetentions } from "./request/cache-time.ts";
import { leaveOutOwnTools } from "./request/own-tools.ts";
import { type SearchedJson, sizePrompt } from "./request/prompt.ts";
import { costlierService, leaveOutUnpriced, UNPRICED_NAMES } from "./request/unpriced-fields.ts";
import { leaveOutUnsafe } from "./request/unsafe-members.ts";
import type { GenerationRequest, HostBody, HostTarget, RequestSize } from "./surface.ts";

/**
 * Reads a request body of any of the three languages: one scan for its members, one parse. Members that
 * decide about money and routing must mean the same here and at the host, so they may appear only once, and
 * without escapes in their names. In bodies from `outlinedFrom` bytes on, long texts of the conversation are parsed only
 * where somebody reads them.
 */
export function readRequestBody(
  sent: Uint8Array,
  surface: SurfaceName,
  outlinedFrom = OUTLINED_BYTES,
): Body | Refusal {
  const body = withoutByteOrderMark(sent);
  const outlined = body.length < outlinedFrom ? null : outlinedBody(body, surface);
  const parsed = outlined ?? parsedBody(body);
  if (refused(parsed)) return parsed;
  const { json, outline, list, searched } = parsed;
  // With only a list, as OpenRouter's clients may send, its first entry is the model requested.
  const model = json.model ?? (Array.isArray(json.models) ? json.models[0] : undefined);
  if (typeof model !== "string" || model === "") return invalid("model", "must be a non-empty string");
  const costlier = costlierService(json);
  if (costlier !== null)
    return invalid(costlier, "asks for a service that costs more than the model's price here: leave it out");
  const promptRetentions = namedRetentions(searched, outline);
  if (refused(promptRetentions)) return promptRetentions;
  const { auto_cache: marks = null } = json;
  if (marks !== null && typeof marks !== "boolean") return invalid("auto_cache", "must be true or false");
  const stream = json.stream ?? false;
  if (typeof stream !== "boolean") return invalid("stream", "must be true or false");
  return { surface, body, json, outline, list, searched, model, stream, promptRetentions };
}

type ParsedBody = SearchedJson & Pick<GenerationRequest, "list">;

/** A body that was read; `searched` is valid until the request is made of it, or the next body is read. */
export type Body = Pick<GenerationRequest, "surface" | "body" | "model" | "stream" | "promptRetentions"> &
  ParsedBody;

/** The request as the rest of the gateway sees it. */
export function toRequest(read: Body, maxOutputTokens: number | null, choices: number): GenerationRequest {
  const { surface, body, json, outline, list, model, stream } = read;
  const { models, provider, route, fallbacks } = json;
  const size = sizeRequest(body.length, read, read.promptRetentions);
  OUTLINE.letGo();
  return {
    surface,
    body,
    json,
    outline,
    list,
    model,
    requestedModel: model,
    stream,
    maxOutputTokens,
    choices,
    ...size,
    overrides: { models, provider, route, fallbacks },
  };
}

/** The parts of a body that decide what it may cost, in any of the languages. */
const sizeRequest = (
  bytes: number,
  { json, outline, searched }: SearchedJson,
  promptRetentions: RequestSize["promptRetentions"],
): RequestSize => ({
  ...sizePrompt(bytes, { json, outline, searched }),
  answersInAudio: isSpoken(json),
  promptRetentions,
});

/** The same of bytes that were written here, out of a body that was read. */
export function sizeWritten(bytes: Uint8Array, json: Json): RequestSize {
  const named = namedRetentions(bytes, json);
  assert(!refused(named), "a body was written that names a retention which is refused");
  return sizeRequest(bytes.length, { json, outline: json, searched: bytes }, named);
}

/** What is still needed of a request once its answer has started. */
export const withoutPrompt = (request: GenerationRequest): GenerationRequest => ({
  ...request,
  body: NO_BYTES,
  json: NOTHING,
  outline: NOTHING,
  list: null,
  overrides: NOTHING,
});

const NOTHING = {};

/** As OpenAI's chat has it asked for ("Audio and speech"). */
const isSpoken = ({ audio, modalities }: Readonly<Record<string, unknown>>): boolean =>
  (audio !== undefined && audio !== null) || (Array.isArray(modalities) && modalities.includes("audio"));

/**
 * The largest of these members, each of which is a positive whole number, absent, or null: the hold must cover whichever
 * the host obeys.
 */
export function readCeiling(
  json: Readonly<Record<string, unknown>>,
  ...names: readonly string[]
): number | null | Refusal {
  let largest: number | null = null;
  for (const name of names) {
    const value = json[name] ?? null;
    if (value === null) continue;
    if (!isCount(value, MAX_CEILING)) return invalid(name, `must be a whole number from 1 to ${MAX_CEILING}`);
    largest = Math.max(largest ?? 0, value);
  }
  return largest;
}

export function readChoices(json: Readonly<Record<string, unknown>>): number | Refusal {
  const { n } = json;
  if (n === undefined || n === null) return 1;
  return isCount(n, MAX_CHOICES) ? n : invalid("n", `must be a whole number from 1 to ${MAX_CHOICES}`);
}

export function checkMessages({ messages }: Body["outline"]): Refusal | null {
  if (!Array.isArray(messages) || messages.length === 0)
    return invalid("messages", "must be a non-empty array");
  const tooMany = checkCount("messages", messages);
  if (tooMany !== null) return tooMany;
  for (let at = 0; at < messages.length; at++)
    if (asObject(messages[at]) === null) return invalid(`messages[${at}]`, "must be an object");
  return null;
}

/**
 * Three million empty messages fit into 10 MB, and reading them for a host of another language took seconds.
 */
export const checkCount = (name: "messages" | "input", { length }: readonly unknown[]): Refusal | null =>
  length > MAX_MESSAGES ? invalid(name, `has ${length} entries; at most ${MAX_MESSAGES} are allowed`) : null;

/** The gateway's to read; hosts never see them. */
const OVERRIDES = ["models", "provider", "route", "fallbacks", "auto_cache"];

/**
 * The changes in a body that is passed on: overrides are removed, and what the operator's account must not be asked
 * for; the host's name for the model, and whether to stream, are put in.
 */
export function passedChanges(request: GenerationRequest, target: HostTarget): BodyChanges | Refusal {
  const { json, stream } = request;
  const changes = new BodyChanges();
  for (const name of OVERRIDES) if (json[name] !== undefined) changes.set(name, handedOver(name, target));
  changes.set("model", JSON.stringify(target.model));
  leaveOutUnpriced(request, changes);
  if (target.stream !== stream) changes.set("stream", String(target.stream));
  // Refused without a stream.
  if (!target.stream && json.stream_options !== undefined) changes.set("stream_options", null);
  leaveOutUnsafe(request, target, changes);
  return leaveOutOwnTools(request, target, changes) ?? accountReference(request, target) ?? changes;
}

/** Some hosts act on `fallbacks` by themselves; null: the member is removed. */
const handedOver = (name: string, { fallbacks }: HostTarget): string | null =>
  name === "fallbacks" && fallbacks !== undefined ? JSON.stringify(fallbacks) : null;

/** The body that a host of the client's own language is sent. */
export function passedBody({ body, list }: GenerationRequest, changes: BodyChanges): HostBody {
  const { omitted } = changes;
  const bytes = omitted.length === 0 ? null : changes.contentOf(body);
  const content = bytes === null ? null : () => ({ bytes, size: sizeWritten(bytes, parse(bytes)!) });
  return { parts: changes.partsOf(body, list), omitted, content };
}

/** Members by which money and routing are decided, in any of the languages. */
const CONTROLLED: readonly string[] = [
  "model",
  "models",
  "provider",
  "route",
  "fallbacks",
  "auto_cache",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "n",
  "messages",
  "input",
  "system",
  "tools",
  "store",
  "background",
  "previous_response_id",
  "conversation",
  "thread",
  "web_search_options",
  "search_parameters",
  "plugins",
  "mcp_servers",
  "prompt",
  ...REFERRING,
  "audio",
  "modalities",
  "cache_control",
  "prompt_cache_options",
  ...UNPRICED_NAMES,
];

/** Anthropic's own limit ("Create a message"). */
const MAX_MESSAGES = 100_000;
const MAX_CEILING = 100_000_000;
const MAX_CHOICES = 128;
/** A body with more members is no request of any client. */
const MAX_MEMBERS = 256;

/**
 * Parsing takes as long as there are values, not bytes: nearly a second for 10 MB of members, a tenth of that
 * for so many.
 */
const MAX_VALUES = 250_000;
/** Smaller bodies cannot have many more. */
const LARGE_BYTES = 1024 * 1024;

/** The body read whole; decisions about outlined ones are compared with it in tests. */
function parsedBody(body: Uint8Array): ParsedBody | Refusal {
  if (body.length > LARGE_BYTES && hasMoreValues(body, MAX_VALUES))
    return refuse("invalid_request", `The body has more than ${MAX_VALUES} JSON values.`);
  const unsure = ambiguous(body);
  if (unsure !== null) return unsure;
  const json = parse(body);
  return json === null ? noObject(body) : { json, outline: json, list: null, searched: body };
}

/** Null for a body that is refused, or that has no long conversation: it is read whole. */
function outlinedBody(body: Uint8Array, surface: SurfaceName): ParsedBody | null {
  if (!isUtf8(body)) return null;
  const listName = surface === "responses" ? "input" : "messages";
  let [from, to] = [-1, -1];
  OUTLINE.begin(body);
  const found = visitMembers(body, "body", CONTROLLED, CURSOR, {
    skips(name, at) {
      if (name !== listName) return -1;
      from = at;
      to = OUTLINE.passList(at, MAX_DEPTH);
      return to;
    },
  });
  const { isDone } = CURSOR;
  CURSOR.letGo();
  const { turns } = OUTLINE;
  const searched = OUTLINE.end();
  if (found !== null || !isDone || to === -1) return null;
  if (body.length > LARGE_BYTES && hasMoreValues(searched, MAX_VALUES)) return null;
  const outline = parse(searched);
  if (outline === null) return null;
  const json = { ...outline };
  let parsed: unknown;
  Object.defineProperty(json, listName, {
    enumerable: true,
    get: () => (parsed ??= JSON.parse(textOf(body, from, to))),
  });
  return { json, outline, list: { from, to, turns }, searched };
}

/** One for all bodies, because each is read without a wait. */
const OUTLINE = new Outline();
/** Shorter bodies are parsed as fast as they are outlined. */
const OUTLINED_BYTES = 16 * 1024;

function ambiguous(body: Uint8Array): Refusal | null {
  const found = visitMembers(body, "body", CONTROLLED, CURSOR);
  const { isTooDeep, isDone } = CURSOR;
  CURSOR.letGo();
  if (found !== null) return found;
  if (isTooDeep) return refuse("invalid_request", `The body is nested deeper than ${MAX_DEPTH} levels.`);
  return isDone ? null : noObject(body);
}

/** Deeper nesting than any client sends; a recursive parser elsewhere might not survive more. */
const MAX_DEPTH = 128;

/** One for all bodies, because each is looked through without a wait. */
const CURSOR = new JsonCursor(MAX_DEPTH);

/**
 * Looks through the members of what a client sent, as far as the cursor can. Members in `names` must mean the same to all
 * readers, so each may appear only once, and without escapes in its name.
 */
export function visitMembers(
  sent: Uint8Array,
  what: "body" | "event",
  names: readonly string[],
  cursor: JsonCursor,
  { skips, pass }: MemberVisitor = {},
): Refusal | null {
  const seen: string[] = [];
  let count = 0;
  cursor.begin(sent, 0, sent.length);
  cursor.enterObject();
  while (cursor.nextMember()) {
    const { escapedName, at: valueStart } = cursor;
    if (escapedName !== null && names.includes(escapedName))
      return invalid(escapedName, "must be written without escapes");
    const name = nameAmong(names, cursor);
    if (name !== null) {
      if (seen.includes(name)) return invalid(name, "is given twice");
      seen.push(name);
    }
    if (++count > MAX_MEMBERS)
      return refuse("invalid_request", `The ${what} has more than ${MAX_MEMBERS} fields.`);
    const end = skips === undefined ? -1 : skips(name, valueStart);
    if (end === -1) cursor.skip();
    else cursor.at = end;
    pass?.(name, valueStart);
  }
  return null;
}

/** Sees the members, with their names if they are among `names`, and where their values start. */
interface MemberVisitor {
  /** Where the value ends, if it is skipped here; -1: the cursor skips it. */
  skips?(name: string | null, valueStart: number): number;
  /** The cursor is just behind the member. */
  pass?(name: string | null, valueStart: number): void;
}

function nameAmong(names: readonly string[], cursor: JsonCursor): string | null {
  for (const name of names) if (cursor.isNamed(name)) return name;
  return null;
}

function noObject(body: Uint8Array): Refusal {
  const packed = PACKED.some((beginning) => beginning.every((byte, at) => body[at] === byte));
  return refuse(
    "invalid_request",
    packed
      ? "The body is compressed: name how in `Content-Encoding` (gzip, br or zstd), once."
      : "The body must be one JSON object in UTF-8.",
  );
}

/** How gzip, zlib at its four levels (`deflate`) and zstd begin. */
const PACKED = [
  [0x1f, 0x8b],
  [0x78, 0x01],
  [0x78, 0x5e],
  [0x78, 0x9c],
  [0x78, 0xda],
  [0x28, 0xb5, 0x2f, 0xfd],
];

function parse(body: Uint8Array): Record<string, unknown> | null {
  try {
    return asObject(JSON.parse(UTF8.decode(body)));
  } catch {
    return null;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const isCount = (value: unknown, most: number): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most;
