import type { EntryAnswer } from "./catalog.ts";

/** How models are found: the dashboard's page, and the public one, which has no script. */
export const MODEL_FILTERS = ["search", "context", "price", "can", "sort"] as const;
export type ModelQuery = Readonly<Record<(typeof MODEL_FILTERS)[number], string>>;

type Findable = Pick<
  EntryAnswer,
  "id" | "name" | "context_length" | "price" | "free" | "supported_parameters" | "input_modalities"
>;

export const CONTEXTS = [
  ["", "Any"],
  ["32000", "32k"],
  ["128000", "128k"],
  ["200000", "200k"],
  ["1000000", "1M"],
] as const;

export const ABILITIES = [
  ["", "Anything"],
  ["tools", "Call tools"],
  ["image", "Read images"],
  ["tools image", "Call tools and read images"],
  ["file", "Read files"],
  ["audio", "Hear audio"],
  ["reasoning", "Reason"],
  ["free", "Be used free of charge"],
] as const;

export const SORTS = [
  ["", "As configured"],
  ["input", "Input price"],
  ["output", "Output price"],
  ["context", "Longest context"],
] as const;

/** The models that match, in the order that was chosen: by price the cheapest first, by context the longest. */
export function findModels<M extends Findable>(models: readonly M[], query: ModelQuery): readonly M[] {
  const found = models.filter(matches(query));
  const measure = MEASURES.get(query.sort);
  return measure === undefined ? found : found.toSorted((a, b) => measure(a) - measure(b));
}

/** A map, because the address has the name: every object has some, such as `valueOf`. */
const MEASURES: ReadonlyMap<string, (model: Findable) => number> = new Map([
  ["input", ({ price }) => price?.input ?? Number.POSITIVE_INFINITY],
  ["output", ({ price }) => price?.output ?? Number.POSITIVE_INFINITY],
  ["context", ({ context_length }) => -context_length],
]);

function matches({ search, context, price, can }: ModelQuery): (model: Findable) => boolean {
  const searched = search.trim().toLowerCase();
  const abilities = can.split(" ").filter((ability) => ABILITY_NAMES.has(ability));
  return (model) =>
    `${model.id} ${model.name}`.toLowerCase().includes(searched) &&
    !(model.context_length < Number(context)) &&
    (!(Number(price) > 0) || (model.price?.input ?? 0) <= Number(price)) &&
    abilities.every((ability) => hasAbility(model, ability));
}

const ABILITY_NAMES = new Set(ABILITIES.flatMap(([abilities]) => abilities.split(" ")).filter(Boolean));

function hasAbility({ supported_parameters, input_modalities, free, price }: Findable, ability: string) {
  if (ability === "tools" || ability === "reasoning") return supported_parameters.includes(ability);
  if (ability === "free") return free || (price !== null && price.input === 0 && price.output === 0);
  return input_modalities.some((one) => one === ability);
}
