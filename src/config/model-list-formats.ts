import { parse } from "yaml";
import { MODALITIES } from "../catalog/catalog.ts";

/**
 * The forms in which lists of models come: rows of `gateway.yaml`, OpenRouter's list with its prices, and providers' own
 * lists, which have none. What is read here may be anything: the gateway checks each row before it uses it.
 */
export function readModelList(text: string, of: ListOf): ListedRows | string {
  const list = parsed(text);
  if (typeof list === "string") return list;
  const { models, add_models: added, data } = list as Record<string, unknown>;
  const rows = models ?? added;
  if (Array.isArray(rows)) return joined(rows.map((row) => fileRows(row)));
  if (!Array.isArray(data))
    return "it has neither `models`, as gateway.yaml has them, nor `data`, as providers list them";
  if (of.host === null) return "it does not say which host it is of: name it with --host";
  return joined(data.map((row) => providersRow(row, of.host!, of.idOf)));
}

interface ListOf {
  /** Whose list it is, where its rows do not say. */
  readonly host: string | null;
  /** What the gateway calls this model of the host; null for one that is not on offer. */
  readonly idOf: (model: string) => string | null;
}

export interface ListedRows {
  readonly rows: readonly object[];
  /** Models that no row can be made of, and why. */
  readonly refused: readonly RefusedRow[];
}

interface RefusedRow {
  readonly model: string;
  readonly why: string;
}

type ListMembers = Readonly<Record<string, unknown>>;

/** YAML of which a few lines name a billion nodes is not read. */
const MAX_ALIASES = 100;

function parsed(text: string): object | string {
  try {
    const isJson = /^\s*[[{]/.test(text);
    const value: unknown = isJson ? JSON.parse(text) : parse(text, { maxAliasCount: MAX_ALIASES });
    return typeof value === "object" && value !== null ? value : "it is neither JSON nor YAML with members";
  } catch (error) {
    return `it cannot be read: ${error instanceof Error ? error.message.split("\n")[0] : error}`;
  }
}

const isRefused = (row: object): row is RefusedRow => "why" in row;

function joined(all: readonly (readonly object[])[]): ListedRows {
  const rows = all.flat();
  return { rows: rows.filter((row) => !isRefused(row)), refused: rows.filter(isRefused) };
}

/** A row of `models`: one for each of its hosts. */
function fileRows(row: unknown): object[] {
  if (!isObject(row)) return [{ model: "(a row)", why: "it is not an object" }];
  const { id, name, context_length, max_output_tokens, price, inputs, tools, reasoning } = row;
  const routes = Array.isArray(row.routes) ? row.routes.filter(isObject) : [];
  if (routes.length === 0) return [{ model: String(id), why: "it has no routes" }];
  return routes.map((route) =>
    given({
      id,
      host: route.host,
      model: route.model,
      name,
      context_length,
      max_output_tokens,
      price: route.price ?? price,
      inputs,
      tools,
      reasoning,
    }),
  );
}

/** A row of a provider's own list, by the members that one of them has. */
function providersRow(row: unknown, host: string, idOf: ListOf["idOf"]): object[] {
  if (!isObject(row) || typeof row.id !== "string") return [{ model: "(a row)", why: "it has no `id`" }];
  const { id: model } = row;
  const id = idOf(model) ?? (model.includes("/") ? model.toLowerCase() : `${host}/${model.toLowerCase()}`);
  if (isObject(row.pricing)) return openRouterRow(row, row.pricing, { id, host, model });
  const context_length =
    row.max_input_tokens ?? row.context_window ?? row.max_context_length ?? row.context_length;
  const max_output_tokens = row.max_tokens ?? row.max_completion_tokens;
  // A null is a provider's way to say nothing.
  const listed = {
    name: row.display_name,
    context_length: context_length ?? undefined,
    max_output_tokens: max_output_tokens ?? undefined,
  };
  return [given({ id, host, model, ...listed })];
}

interface ListedAs {
  readonly id: string;
  readonly host: string;
  readonly model: string;
}

/** Null for rows that are no text models of their own: variants such as `:free`, and models that paint or speak. */
function openRouterRow(row: ListMembers, pricing: ListMembers, listedAs: ListedAs): object[] {
  const { architecture, top_provider: top, supported_parameters: parameters } = row;
  const { input_modalities: inputs, output_modalities: outputs } = isObject(architecture) ? architecture : {};
  if (listedAs.model.includes(":") || (Array.isArray(outputs) && String(outputs) !== "text")) return [];
  const price = openRouterPrice(pricing);
  if (typeof price === "string") return [{ model: listedAs.id, why: price }];
  const { context_length: ofTop, max_completion_tokens: ceiling } = isObject(top) ? top : {};
  const context_length =
    typeof ofTop === "number" ? Math.min(Number(row.context_length), ofTop) : row.context_length;
  const has = (name: string) => (Array.isArray(parameters) ? parameters.includes(name) : undefined);
  return [
    given({
      ...listedAs,
      name: row.name,
      context_length,
      max_output_tokens: ceiling ?? undefined,
      price,
      inputs: Array.isArray(inputs) ? MODALITIES.filter((one) => inputs.includes(one)) : undefined,
      tools: has("tools"),
      reasoning: has("reasoning"),
    }),
  ];
}

/** OpenRouter's keys by the lines of our prices. What it charges for a request, or for what runs there, has no line. */
const KEYS = {
  input: ["prompt"],
  // Thoughts are counted with the answer.
  output: ["completion", "internal_reasoning"],
  cache_read: ["input_cache_read"],
  cache_write: ["input_cache_write"],
  cache_write_1h: ["input_cache_write_1h"],
  audio_input: ["audio"],
  audio_output: ["audio_output"],
} as const;

const CONDITIONS = ["min_prompt_tokens", "utc_start", "utc_end"];

/** In USD per million tokens; or why it cannot be one. */
function openRouterPrice(pricing: ListMembers): object | string {
  const { overrides = [], ...base } = pricing;
  if (!Array.isArray(overrides) || !overrides.every(isObject)) return "`pricing.overrides` is not a list";
  const unknown = overrides.flatMap((one) => Object.keys(one)).find((key) => !isKnown(key));
  if (unknown !== undefined)
    return `an override of its price depends on \`${unknown}\`, which is not known here`;
  for (const [key, value] of [base, ...overrides].flatMap((one) => Object.entries(one))) {
    const isPrice = !CONDITIONS.includes(key) && isKnown(key) && key !== "discount";
    if (isPrice && !isAmount(value))
      return `pricing.${key} is ${JSON.stringify(value)}, and should be USD per token`;
    if (key === "request" && Number(value) > 0)
      return `it costs ${value} USD a request, which prices here do not have`;
  }
  const starts = new Set(
    overrides.flatMap(({ min_prompt_tokens: min }) => (min === undefined ? [] : Number(min))),
  );
  if (![...starts].every((min) => Number.isSafeInteger(min) && min > 1))
    return "`min_prompt_tokens` is not a number of tokens";
  const above = [...starts]
    .sort((a, b) => a - b)
    // Inclusive there; our steps are what is more than so many tokens.
    .map((min) => ({ prompt: min - 1, ...linesAt(base, overrides, min) }));
  return { ...linesAt(base, overrides, 0), ...(above.length === 0 ? {} : { above }) };
}

const isKnown = (key: string): boolean =>
  CONDITIONS.includes(key) ||
  Object.values(KEYS).some((keys) => (keys as readonly string[]).includes(key)) ||
  ["request", "image", "image_output", "image_token", "web_search", "input_audio_cache", "discount"].includes(
    key,
  );

const isAmount = (value: unknown): boolean =>
  (typeof value === "string" ? /^\d+(\.\d+)?(e-?\d+)?$/i.test(value) : typeof value === "number") &&
  Number.isFinite(Number(value)) &&
  Number(value) >= 0;

/** Later overrides win; of hours, the most expensive holds all day. */
function linesAt(base: ListMembers, overrides: readonly ListMembers[], prompt: number): object {
  const reached = overrides.filter(({ min_prompt_tokens: min = 0 }) => Number(min) <= prompt);
  const isHourly = ({ utc_start: start, utc_end: end }: ListMembers) =>
    start !== undefined || end !== undefined;
  const always = reached.filter((one) => !isHourly(one));
  const amount = (key: string): number | null => {
    const value = always.findLast((one) => one[key] !== undefined)?.[key] ?? base[key];
    const hourly = reached
      .filter(isHourly)
      .flatMap((one) => (one[key] === undefined ? [] : Number(one[key])));
    return value === undefined && hourly.length === 0 ? null : Math.max(Number(value ?? 0), ...hourly);
  };
  const highest = (keys: readonly string[]): number | undefined => {
    const amounts = keys.flatMap((key) => amount(key) ?? []);
    return amounts.length === 0 ? undefined : perMillion(Math.max(...amounts));
  };
  const lines = Object.entries(KEYS).map(([line, keys]) => [line, highest(keys)] as const);
  const {
    input = 0,
    cache_write: write,
    ...others
  } = Object.fromEntries(lines) as Record<string, number | undefined>;
  // Where a list names no surcharge for writes, they are billed as any input.
  return given({ input, ...others, cache_write: write === undefined ? undefined : Math.max(write, input) });
}

const NANO = 1e9;
const TOKENS = 1e6;

const perMillion = (usdPerToken: number): number => Math.round(usdPerToken * TOKENS * NANO) / NANO;

const isObject = (value: unknown): value is ListMembers =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Without what is undefined. */
const given = (members: ListMembers): ListMembers =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
