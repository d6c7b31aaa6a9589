import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import { asObject, isPresent, type Json } from "../json/json.ts";
import type { GenerationRequest, HostTarget } from "../surface.ts";
import { inlineTools } from "./own-tools.ts";

/**
 * Refuses what stands for something that a host keeps in the operator's account: a file, a container, a prompt,
 * an earlier item. All customers share that account, so an id, guessed or seen elsewhere, would open what is
 * another's; and nobody here has seen what it adds to the prompt. `quirks.account_references` allows them.
 * Arguments of tools and their schemas are the client's own words, and are not looked into.
 */
export function accountReference(
  { surface, outline: json }: Pick<GenerationRequest, "surface" | "outline">,
  { quirks }: Pick<HostTarget, "quirks">,
): Refusal | null {
  if (quirks.accountReferences === true) return null;
  const reference =
    standsInWhole(json, surface === "responses") ??
    (surface === "responses"
      ? standsInItems(json.input)
      : standsInList(json.messages, "messages", inMessage)) ??
    standsInList(json.tools, "tools", inTool) ??
    standsInInlineTools(json);
  return reference === null
    ? null
    : refuse(
        "invalid_request",
        `\`${reference}\` refers to something that the host keeps in the operator's account or on its own machine: send the content itself.`,
        { param: reference },
      );
}

function standsInInlineTools(json: Json): string | null {
  for (const { path, tool } of inlineTools(json)) {
    const member = inTool(tool);
    if (member !== null) return `${path}${member}`;
  }
  return null;
}

function standsInWhole(json: Json, mayNamePrompt: boolean): string | null {
  if (mayNamePrompt && isPresent(json.prompt)) return "prompt";
  // Anthropic bills a profile of the operator's account, or the account itself.
  const bills = asObject(json.billing_policy)?.bill_to ?? "self";
  if (bills !== "self") return "billing_policy.bill_to";
  for (const name of REFERRING) if (isPresent(json[name])) return name;
  const google = asObject(asObject(json.extra_body)?.google);
  return isPresent(google?.cached_content) ? "extra_body.google.cached_content" : null;
}

/** Ids of OpenAI, Anthropic, Azure (“On your data”), OpenRouter and LiteLLM. */
export const REFERRING: readonly string[] = [
  "prompt_id",
  "preset",
  "data_sources",
  "dataSources",
  "vector_store_ids",
  "file_ids",
  "container",
  "container_id",
  "assistant_id",
  "thread_id",
  "user_profile_id",
  "workspace_id",
];

function standsInItems(input: unknown): string | null {
  return standsInList(input, "input", (item) => (isBareId(item) ? ".id" : inPart(item)));
}

/**
 * `{type, id}` stands for an item that was made before (OpenAI, “Item reference”), and an image that is to be
 * changed. A search that was made says no more of itself.
 */
function isBareId(item: Json): boolean {
  if (!isPresent(item.id) || item.type === "web_search_call") return false;
  for (const name in item) if (!OF_A_REFERENCE.has(name)) return false;
  return true;
}

const OF_A_REFERENCE = new Set(["id", "type", "status"]);

/** An answer that was spoken before can be named instead of repeated. */
const inMessage = (message: Json): string | null =>
  isPresent(asObject(message.audio)?.id) ? ".audio.id" : inParts(message.content, ".content");

function inPart(part: Json): string | null {
  for (const name of IDS) if (isPresent(part[name])) return `.${name}`;
  const { file, source, content, output } = part;
  if (isPresent(asObject(file)?.file_id)) return ".file.file_id";
  return (
    inSource(asObject(source)) ??
    elsewhere(part) ??
    inParts(content, ".content") ??
    (Array.isArray(output) ? inParts(output, ".output") : within(asObject(output), ".output"))
  );
}

const IDS = ["file_id", "container_id", "vector_store_id", "skill_id"];

function inSource(source: Json | null): string | null {
  if (source === null) return null;
  if (isPresent(source.file_id) || source.type === "file") return ".source.file_id";
  return isElsewhere(source.url) ? ".source.url" : inParts(source.content, ".source.content");
}

/** Addresses that only the host can open: of its own disk (vLLM's `file:`), bucket or account. */
function elsewhere(part: Json): string | null {
  for (const name of ADDRESSES) {
    const value = part[name];
    if (value === undefined) continue;
    if (isElsewhere(value)) return `.${name}`;
    if (isElsewhere(asObject(value)?.url)) return `.${name}.url`;
  }
  return null;
}

const ADDRESSES = ["image_url", "video_url", "audio_url", "file_url", "document_url", "input_audio"];
const isElsewhere = (url: unknown): boolean =>
  typeof url === "string" && SCHEME.test(url) && !PUBLIC_SCHEME.test(url);
const SCHEME = /^\s*[a-z][a-z0-9+.-]*:/i;
const PUBLIC_SCHEME = /^\s*(https?|data):/i;

function inTool(tool: Json): string | null {
  if (tool.type === "function") return null;
  const { container, input_image_mask: mask, environment, vector_store_ids: stores } = tool;
  if (typeof container === "string") return ".container";
  if (isPresent(stores)) return ".vector_store_ids";
  return (
    within(tool, "") ??
    within(asObject(container), ".container") ??
    within(asObject(mask), ".input_image_mask") ??
    within(asObject(environment), ".environment") ??
    standsInList(tool.tools, ".tools", inTool)
  );
}

function within(parent: Json | null, path: string): string | null {
  if (parent === null) return null;
  for (const name of TOOL_IDS) if (isPresent(parent[name])) return `${path}.${name}`;
  return null;
}

const TOOL_IDS = [...IDS, "file_ids", "skills"];

const inParts = (parts: unknown, path: string): string | null =>
  typeof parts === "string" ? null : standsInList(parts, path, inPart);

/** The place of the first reference in a list of objects, as a path. */
function standsInList(list: unknown, path: string, inOne: (one: Json) => string | null): string | null {
  if (!Array.isArray(list)) return null;
  for (let at = 0; at < list.length; at++) {
    const one = asObject(list[at]);
    const reference = one === null ? null : inOne(one);
    if (reference !== null) return `${path}[${at}]${reference}`;
  }
  return null;
}
