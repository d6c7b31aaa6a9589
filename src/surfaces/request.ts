import type { SurfaceName } from "../catalog/catalog.ts";
import { type Refusal, refuse, refused } from "../errors/refusal.ts";
import { isCachedFor1h } from "./cache-time.ts";
import { asObject } from "./json.ts";
import { MAX_DEPTH, type Member, readMembers } from "./json-members.ts";
import { sizePrompt } from "./prompt.ts";
import type { GenerationRequest, HostTarget } from "./surface.ts";
import { mayHoldSeals, withoutSeals } from "./translation/seal.ts";

/**
 * A request body of any of the three languages: one scan for its members, one parse. What decides over money and routing
 * must read the same here and at the host, so the members that do may be spelt once, and plainly.
 */
export function readBody(bytes: Uint8Array, surface: SurfaceName): Body | Refusal {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const members = readMembers(body);
  if (members === "too_deep")
    return refuse("invalid_request", `The body is nested deeper than ${MAX_DEPTH} levels.`);
  const parsed = members === "not_an_object" ? null : parse(body);
  if (parsed === null || members === "not_an_object") {
    return refuse("invalid_request", "The body must be one JSON object in UTF-8.");
  }
  const unsure = ambiguous(members);
  if (unsure !== null) return unsure;
  // With a list alone, as OpenRouter's clients may send, its first is the one that is asked for.
  const model = parsed.model ?? (Array.isArray(parsed.models) ? parsed.models[0] : undefined);
  if (typeof model !== "string" || model === "") return invalid("model", "must be a non-empty string");
  const dearer = DEARER.find(([name, values]) => values.includes(parsed[name]));
  if (dearer !== undefined)
    return invalid(dearer[0], "asks for a service that costs more than the model's price here: leave it out");
  const stream = parsed.stream ?? false;
  if (typeof stream !== "boolean") return invalid("stream", "must be true or false");
  return { surface, body, members, json: parsed, model, stream };
}

export interface Body {
  readonly surface: SurfaceName;
  readonly body: Buffer;
  readonly members: readonly Member[];
  readonly json: Readonly<Record<string, unknown>>;
  readonly model: string;
  readonly stream: boolean;
}

/** The request as the rest of the gateway sees it. */
export function toRequest(read: Body, maxOutputTokens: number | null, choices: number): PassedRequest {
  const { models, provider, route, fallbacks } = read.json;
  const { bound, estimate, mediaTokens, hasFiles, unseen } = sizePrompt(read.body, read.json);
  return {
    ...read,
    maxOutputTokens,
    choices,
    promptBound: bound,
    promptEstimate: estimate,
    mediaTokens,
    promptHasFiles: hasFiles,
    promptCachedFor1h: isCachedFor1h(read.body, read.json),
    promptUnseen: unseen,
    overrides: { models, provider, route, fallbacks },
  };
}

/** What is still asked about a request once its answer has begun. */
export const withoutPrompt = (request: GenerationRequest): GenerationRequest => ({
  surface: request.surface,
  body: NO_BYTES,
  json: {},
  model: request.model,
  stream: request.stream,
  maxOutputTokens: request.maxOutputTokens,
  choices: request.choices,
  promptBound: request.promptBound,
  promptEstimate: request.promptEstimate,
  mediaTokens: request.mediaTokens,
  promptHasFiles: request.promptHasFiles,
  promptCachedFor1h: request.promptCachedFor1h,
  promptUnseen: request.promptUnseen,
  overrides: {},
});

const NO_BYTES = new Uint8Array();

/** A request together with where its members stand. */
export interface PassedRequest extends GenerationRequest {
  readonly body: Buffer;
  readonly members: readonly Member[];
}

/** A positive whole number, absent, or null. */
export function readCeiling(json: Readonly<Record<string, unknown>>, name: string): number | null | Refusal {
  const value = json[name];
  if (value === undefined || value === null) return null;
  return isCount(value, MAX_CEILING) ? value : invalid(name, "must be a whole number of at least 1");
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
  const at = messages.findIndex((message) => asObject(message) === null);
  return at === -1 ? null : invalid(`messages[${at}]`, "must be an object");
}

export const invalid = (param: string, what: string): Refusal =>
  refuse("invalid_request", `\`${param}\` ${what}.`, { param });

/** The larger of the ceilings that were named: the hold must cover whichever the host obeys. */
export function largest(...ceilings: (number | null | Refusal)[]): number | null | Refusal {
  let most: number | null = null;
  for (const ceiling of ceilings) {
    if (refused(ceiling)) return ceiling;
    if (ceiling !== null) most = Math.max(most ?? 0, ceiling);
  }
  return most;
}

/** Routing overrides are the gateway's to read; hosts never see them. */
const OVERRIDES_DROPPED: ReadonlyMap<string, null> = new Map(
  ["models", "provider", "route", "fallbacks"].map((name) => [name, null]),
);

/** What changes in a body that is passed on: the overrides go, the host's name for the model and its way of answering come. */
export function passedChanges(request: GenerationRequest, target: HostTarget): Map<string, string | null> {
  const changes = new Map<string, string | null>(OVERRIDES_DROPPED);
  changes.set("model", JSON.stringify(target.model));
  if (target.stream !== request.stream) changes.set("stream", String(target.stream));
  return changes;
}

/** Thoughts that another language sealed are nothing to this host: what is left out is told. */
export function leaveOutSeals(
  { body, json }: PassedRequest,
  member: "messages" | "input",
  changes: Map<string, string | null>,
): readonly string[] {
  if (!mayHoldSeals(body)) return [];
  changes.set(member, JSON.stringify(withoutSeals(json[member])));
  return ["reasoning"];
}

/**
 * Services that hosts charge above their prices for: holds and charges know one price of a model (OpenAI "Priority
 * processing", Anthropic "Fast mode").
 */
const DEARER: readonly (readonly [name: string, values: readonly unknown[]])[] = [
  ["service_tier", ["priority", "fast"]],
  ["speed", ["fast"]],
];

/** Members by which money and routing are decided, in any of the languages. */
const CONTROLLED = new Set([
  "model",
  "models",
  "provider",
  "route",
  "fallbacks",
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
  "service_tier",
  "speed",
  "store",
  "background",
  "previous_response_id",
  "conversation",
]);

const MAX_CEILING = 100_000_000;
const MAX_CHOICES = 128;
/** A body with more members is no request of any client. */
const MAX_MEMBERS = 256;

function ambiguous(members: readonly Member[]): Refusal | null {
  if (members.length > MAX_MEMBERS)
    return refuse("invalid_request", `The body has more than ${MAX_MEMBERS} fields.`);
  const seen = new Set<string>();
  for (const { name, escaped } of members) {
    if (!CONTROLLED.has(name)) continue;
    if (escaped) return invalid(name, "must be spelt without escapes");
    if (seen.has(name)) return invalid(name, "is given twice");
    seen.add(name);
  }
  return null;
}

function parse(body: Buffer): Record<string, unknown> | null {
  try {
    return asObject(JSON.parse(UTF8.decode(body)));
  } catch {
    return null;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const isCount = (value: unknown, most: number): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most;
