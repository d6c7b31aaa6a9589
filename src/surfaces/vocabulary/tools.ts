import { asObject, asText, type Json, parseObject } from "../json/json.ts";
import type { CustomTool } from "./conversation.ts";

/**
 * Tools of Responses may live in a namespace, as Codex's do; the other languages have one flat list. There a
 * tool is called `<namespace>__<name>`, and its calls get their two names back.
 */
export function flatName(namespace: unknown, name: string): string {
  if (typeof namespace !== "string" || namespace === "") return name;
  return shortName(`${namespace}__${name}`);
}

/**
 * A name as every host takes it: Anthropic's may be twice as long, and Claude Code makes such from those of
 * MCP servers.
 */
export const shortName = (name: string): string =>
  // The end of a long name is what tells tools apart; a sum stands for what is cut.
  name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - SUM_LENGTH - 1)}_${sumOf(name)}`;

/** The tools of a client of Messages whose names were cut, by their short names. */
export function longNames(tools: unknown): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  if (!Array.isArray(tools)) return names;
  for (const tool of tools) {
    const name = asObject(tool)?.name;
    if (typeof name === "string" && name.length > MAX_NAME) names.set(shortName(name), name);
  }
  return names;
}

/**
 * The lists of tools in a request of Responses: its own, and those that items of its input add (Codex sends
 * all of its tools so to OpenAI's newest models).
 */
export function toolLists({ tools, input }: Json): { readonly path: string; readonly tools: unknown }[] {
  const lists = [{ path: "tools", tools }];
  if (!Array.isArray(input)) return lists;
  for (const [at, value] of input.entries()) {
    const item = asObject(value);
    if (item !== null && ADDING.has(item.type)) lists.push({ path: `input[${at}].tools`, tools: item.tools });
  }
  return lists;
}

/** Items of an input that add tools; a search adds those that it found. */
const ADDING = new Set<unknown>(["additional_tools", "tool_search_output"]);

export const offeredTools = (request: Json): NamedTool[] =>
  toolLists(request).flatMap(({ tools }) => namedTools(tools));

export interface NamedTool {
  readonly flat: string;
  readonly name: string;
  readonly namespace: string | null;
  readonly custom: boolean;
}

/** The tools that a client of OpenAI's languages offers, by the names that a host knows them by. */
export function namedTools(tools: unknown, namespace: string | null = null): NamedTool[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((value): NamedTool[] => {
    const tool = asObject(value) ?? {};
    const { type } = tool;
    if (type !== "function" && type !== "custom" && type !== "namespace") return [];
    // Chat nests the name, Responses does not.
    const { name } = asObject(tool[type]) ?? tool;
    if (typeof name !== "string") return [];
    if (type === "namespace") return namespace === null ? namedTools(tool.tools, name) : [];
    return [{ flat: flatName(namespace, name), name, namespace, custom: type === "custom" }];
  });
}

/** A call under the names that the client knows. */
export function callName(flat: string, tools: readonly NamedTool[]): Json {
  const tool = tools.find((one) => one.flat === flat);
  return tool === undefined || tool.namespace === null
    ? { name: flat }
    : { name: tool.name, namespace: tool.namespace };
}

/** OpenAI allows no longer ones. */
const MAX_NAME = 64;
const SUM_LENGTH = 8;

/** FNV-1a, 32 bits. */
function sumOf(text: string): string {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return (sum >>> 0).toString(16).padStart(SUM_LENGTH, "0");
}

/**
 * A freeform tool where a host only calls functions: a function whose one argument is the text. The description
 * gives the model the grammar, if there is one, which no host then enforces.
 */
export const INPUT_SCHEMA = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input, as plain text." } },
  required: ["input"],
  additionalProperties: false,
} as const;

export function wrappedDescription({ description, format }: CustomTool): string {
  const text = description ?? "";
  if (format?.type !== "grammar") return text;
  return `${text}\n\nThe input must follow this ${asText(format.syntax)} grammar:\n${asText(format.definition)}`;
}

export const wrappedInput = (input: string): string => JSON.stringify({ input });

/** The text in a call's arguments; the arguments themselves where the model did not keep to the schema. */
export function unwrappedInput(argumentsText: string): string {
  const given = parseObject(argumentsText);
  if (typeof given?.input === "string") return given.input;
  return given !== null && Object.keys(given).length === 0 ? "" : argumentsText;
}
