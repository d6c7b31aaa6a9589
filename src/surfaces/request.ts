import type { SurfaceName } from "../catalog/catalog.ts";
import { withoutByteOrderMark } from "../units/byte-order-mark.ts";
import { invalid, type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { NO_BYTES } from "./json/bytes.ts";
import { asObject } from "./json/json.ts";
import { JsonCursor } from "./json/json-cursor.ts";
import { hasMoreValues } from "./json/json-scan.ts";
import { accountReference, REFERRING } from "./request/account-references.ts";
import { BodyChanges } from "./request/body-changes.ts";
import { isCachedFor1h } from "./request/cache-time.ts";
import { leaveOutOwnTools } from "./request/own-tools.ts";
import { sizePrompt } from "./request/prompt.ts";
import { dearerService, leaveOutUnheld, UNHELD_NAMES } from "./request/unpriced-fields.ts";
import { leaveOutUnsafe } from "./request/unsafe-members.ts";
import type { GenerationRequest, HostBody, HostTarget, RequestSize } from "./surface.ts";

/**
 * Reads a request body of any of the three languages: one scan for its members, one parse. Members that
 * decide about money and routing must mean the same here and at the host, so they may appear only once, and
 * without escapes in their names.
 */
export function readBody(sent: Uint8Array, surface: SurfaceName): Body | Refusal {
  const body = withoutByteOrderMark(sent);
  if (body.length > LARGE_BYTES && hasMoreValues(body, MAX_VALUES))
    return refuse("invalid_request", `The body has more than ${MAX_VALUES} JSON values.`);
  const unsure = ambiguous(body);
  if (unsure !== null) return unsure;
  const json = parse(body);
  if (json === null) return noObject(body);
  // With only a list, as OpenRouter's clients may send, its first entry is the model requested.
  const model = json.model ?? (Array.isArray(json.models) ? json.models[0] : undefined);
  if (typeof model !== "string" || model === "") return invalid("model", "must be a non-empty string");
  const dearer = dearerService(json);
  if (dearer !== null)
    return invalid(dearer, "asks for a service that costs more than the model's price here: leave it out");
  const { auto_cache: marks = null } = json;
  if (marks !== null && typeof marks !== "boolean") return invalid("auto_cache", "must be true or false");
  const stream = json.stream ?? false;
  if (typeof stream !== "boolean") return invalid("stream", "must be true or false");
  return { surface, body, json, model, stream };
}

export type Body = Pick<GenerationRequest, "surface" | "body" | "json" | "model" | "stream">;

/** The request as the rest of the gateway sees it. */
export function toRequest(read: Body, maxOutputTokens: number | null, choices: number): GenerationRequest {
  const { surface, body, json, model, stream } = read;
  const { models, provider, route, fallbacks } = json;
  return {
    surface,
    body,
    json,
    model,
    modelAsked: model,
    stream,
    maxOutputTokens,
    choices,
    ...sizeRequest(body, json),
    overrides: { models, provider, route, fallbacks },
  };
}

/** What of a body decides what it may cost, in any of the languages. */
export const sizeRequest = (body: Uint8Array, json: Readonly<Record<string, unknown>>): RequestSize => ({
  ...sizePrompt(body, json),
  answersInAudio: isSpoken(json),
  promptCachedFor1h: isCachedFor1h(body, json),
});

/** What is still needed of a request once its answer has started. */
export const withoutPrompt = (request: GenerationRequest): GenerationRequest => ({
  ...request,
  body: NO_BYTES,
  json: NOTHING,
  overrides: NOTHING,
});

const NOTHING = {};

/** As OpenAI's chat has it asked for ("Audio and speech"). */
const isSpoken = ({ audio, modalities }: Readonly<Record<string, unknown>>): boolean =>
  (audio !== undefined && audio !== null) || (Array.isArray(modalities) && modalities.includes("audio"));

/** A positive whole number, absent, or null. */
export function readCeiling(json: Readonly<Record<string, unknown>>, name: string): number | null | Refusal {
  const value = json[name];
  if (value === undefined || value === null) return null;
  return isCount(value, MAX_CEILING)
    ? value
    : invalid(name, `must be a whole number from 1 to ${MAX_CEILING}`);
}

export function readChoices(json: Readonly<Record<string, unknown>>): number | Refusal {
  const { n } = json;
  if (n === undefined || n === null) return 1;
  return isCount(n, MAX_CHOICES) ? n : invalid("n", `must be a whole number from 1 to ${MAX_CHOICES}`);
}

export function checkMessages(json: Readonly<Record<string, unknown>>): Refusal | null {
  const { messages } = json;
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

type Ceiling = number | null | Refusal;

/** The larger of the ceilings that were named, because the hold must cover whichever the host obeys. */
export function larger(one: Ceiling, other: Ceiling): Ceiling {
  if (one === null || refused(other)) return refused(one) ? one : other;
  return other === null || refused(one) ? one : Math.max(one, other);
}

/** The gateway's to read; hosts never see them. */
const OVERRIDES = ["models", "provider", "route", "fallbacks", "auto_cache"];

/**
 * The changes in a body that is passed on: overrides are removed, and what the operator's account must not be asked
 * for; the host's name for the model, and whether to stream, are put in.
 */
export function passedChanges(request: GenerationRequest, target: HostTarget): BodyChanges | Refusal {
  const { json, stream } = request;
  const changes = new BodyChanges();
  for (const name of OVERRIDES) if (json[name] !== undefined) changes.set(name, null);
  changes.set("model", JSON.stringify(target.model));
  leaveOutUnheld(request, changes);
  if (target.stream !== stream) changes.set("stream", String(target.stream));
  // Refused without a stream.
  if (!target.stream && json.stream_options !== undefined) changes.set("stream_options", null);
  leaveOutUnsafe(request, target, changes);
  return leaveOutOwnTools(request, target, changes) ?? accountReference(request, target) ?? changes;
}

/** The body that a host of the client's own language is sent. */
export function passedBody({ body }: GenerationRequest, changes: BodyChanges): HostBody {
  const { omitted } = changes;
  const bytes = omitted.length === 0 ? null : changes.contentOf(body);
  const content = bytes === null ? null : () => ({ bytes, size: sizeRequest(bytes, parse(bytes)!) });
  return { bytes: changes.applyTo(body), omitted, content };
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
  ...UNHELD_NAMES,
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

function ambiguous(body: Uint8Array): Refusal | null {
  const found = lookThrough(body, "body", CONTROLLED, CURSOR);
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
 * Looks through the members of what a client sent, as far as the cursor can. Those of `names` must mean the same to
 * whoever reads them, so each may appear only once, and without escapes in its name. `pass` is told of each member
 * that the cursor is just behind: its name, if it is one of these, and where its value begins.
 */
export function lookThrough(
  sent: Uint8Array,
  what: "body" | "event",
  names: readonly string[],
  cursor: JsonCursor,
  pass?: (name: string | null, valueStart: number) => void,
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
    cursor.skip();
    pass?.(name, valueStart);
  }
  return null;
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
