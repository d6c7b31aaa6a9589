import type { SurfaceName } from "../../catalog/catalog.ts";
import { invalid, type Refusal } from "../../units/errors/refusal.ts";
import { asObject, type Json } from "../json/json.ts";
import type { GenerationRequest, HostTarget } from "../surface.ts";
import type { BodyChanges } from "./body-changes.ts";

/**
 * Tools that hosts run themselves and charge for by the call, the session or the image, next to the tokens:
 * holds and charges know tokens only. They are only passed to a host whose operator has said that its fees
 * need not be counted (`quirks.own_tools`). Codex offers a search by itself in every request, so that one is
 * left out: the model answers without it.
 */
export function leaveOutOwnTools(
  { json, surface }: Pick<GenerationRequest, "json" | "surface">,
  { quirks }: Pick<HostTarget, "quirks">,
  changes: BodyChanges,
): Refusal | null {
  if (quirks.ownTools === true) return null;
  for (const name of FEE_MEMBERS)
    if (json[name] !== undefined && json[name] !== null) return invalid(name, FEE);
  const inline = surface === "messages" ? inlineTools(json).find(({ tool }) => hasFee(tool)) : undefined;
  if (inline !== undefined) return invalid(`${inline.path}.type`, FEE);
  if (!Array.isArray(json.tools) || !json.tools.some(hasFee)) return null;
  const needed = firstNeeded(json.tools, surface);
  if (needed !== -1) return invalid(`tools[${needed}].type`, FEE);
  const left = json.tools.filter((tool) => !hasFee(tool));
  changes.leaveOut("tools", left.length === 0 ? null : JSON.stringify(left), [SEARCH]);
  return null;
}

/** The same of tools that items of a Responses input add. The input that is left, or why it is refused. */
export function withoutAddedOwnTools(
  input: readonly unknown[],
  { quirks }: Pick<HostTarget, "quirks">,
  omitted: Set<string>,
): readonly unknown[] | Refusal {
  if (quirks.ownTools === true || !input.some((item) => hasFeeAmong(asObject(item)?.tools))) return input;
  const left: unknown[] = [];
  for (const [at, value] of input.entries()) {
    const item = asObject(value);
    const tools = item?.tools;
    if (!hasFeeAmong(tools)) {
      left.push(value);
      continue;
    }
    const needed = firstNeeded(tools, "responses");
    if (needed !== -1) return invalid(`input[${at}].tools[${needed}].type`, FEE);
    left.push({ ...item, tools: tools.filter((tool) => !hasFee(tool)) });
  }
  omitted.add(SEARCH);
  return left;
}

const firstNeeded = (tools: readonly unknown[], surface: SurfaceName): number =>
  tools.findIndex((tool) => hasFee(tool) && !(surface === "responses" && SEARCHES.has(asObject(tool)?.type)));

const hasFeeAmong = (tools: unknown): tools is readonly unknown[] =>
  Array.isArray(tools) && tools.some(hasFee);

const SEARCH = "tools[].web_search";

const FEE = "asks for a tool of the host's own, which costs more than the model's price here: leave it out";

/** Searches that Codex offers by itself; a model does without them. */
export const SEARCHES = new Set<unknown>(["web_search", "web_search_2025_08_26", "web_search_preview"]);

const FEE_MEMBERS = ["web_search_options", "search_parameters", "plugins"];
const FEE_TOOLS =
  /^(web_search|file_search|code_interpreter|code_execution|image_generation|browser_search|advisor|x_search|collections_search|attachment_search|google_|openrouter:)/;

function hasFee(tool: unknown): boolean {
  const { type, environment, tools } = asObject(tool) ?? {};
  if (typeof type !== "string") return false;
  if (type === "namespace") return hasFeeAmong(tools);
  // A shell runs where the client says: at the host, it takes a container.
  const environmentType = asObject(environment)?.type;
  return (
    FEE_TOOLS.test(type) || (typeof environmentType === "string" && environmentType.startsWith("container"))
  );
}

/**
 * Tools that a request of Messages defines in the middle of its conversation, with their paths (Anthropic,
 * `tool_addition` with a `tool_definition`): what holds for `tools` holds for them.
 */
export function inlineTools({ messages }: Json): readonly InlineTool[] {
  const found: InlineTool[] = [];
  if (!Array.isArray(messages)) return found;
  for (const [at, value] of messages.entries()) {
    const message = asObject(value);
    if (message?.role !== "system" || !Array.isArray(message.content)) continue;
    for (const [number, block] of message.content.entries()) {
      const { type, tool } = asObject(block) ?? {};
      const definition = type === "tool_addition" ? asObject(asObject(tool)?.definition) : null;
      if (definition !== null)
        found.push({ path: `messages[${at}].content[${number}].tool.definition`, tool: definition });
    }
  }
  return found;
}

interface InlineTool {
  readonly path: string;
  readonly tool: Json;
}
