import type { Model, Route } from "../catalog/catalog.ts";
import { isModelId } from "../catalog/model-name.ts";
import { type Price, RATE_LINES, ratesAt } from "../catalog/price.ts";
import { NANO_PER_USD } from "../units/usd.ts";
import type { Config } from "./config.ts";
import { priceRow } from "./price-settings.ts";
import { isRouteOf, type ListedModel, malformed, priceOf, type SyncedModel } from "./synced-models.ts";

/** What becomes of one row of a model list, or of a model on offer that a list lacks. */
export interface ListedChange {
  readonly model: string;
  readonly host: string;
  /** `kept`: the configuration file lists the model. `refused`: it cannot be sold as the list has it. */
  readonly change: "new" | "changed" | "unchanged" | "kept" | "refused" | "gone";
  /** What is different, as `price.input: 3 → 2.5`. */
  readonly differences: readonly string[];
  /** Why it is applied only if it is accepted by name; or why it is refused. */
  readonly doubts: readonly string[];
  /** What to apply. */
  readonly row: SyncedModel | null;
}

/**
 * Compares a model list with what is on offer. A mistake in a list would sell below cost, or above what customers
 * expect, so what resembles one waits until the operator accepts it by name.
 */
export function checkModelList(config: Config, rows: readonly unknown[]): ListedChange[] {
  const names = rows.map((row) => nameOf(row));
  const changes = rows.map((row, at): ListedChange => {
    const { model, host } = names[at]!;
    const refuse = (why: string): ListedChange => ({
      model,
      host,
      change: "refused",
      differences: [],
      doubts: [why],
      row: null,
    });
    const problem = malformed(row);
    if (problem !== null) return refuse(problem);
    const isTwice = names.filter((one) => one.model === model && one.host === host).length > 1;
    return isTwice ? refuse("the list has it more than once") : checkRow(config, row as ListedModel, refuse);
  });
  return [...changes, ...goneModels(config, changes)];
}

const UNNAMED = "(a row without an id)";

function nameOf(row: unknown): { readonly model: string; readonly host: string } {
  const { id, host } = (row ?? {}) as Partial<Record<string, unknown>>;
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
  return { model: text(id) ?? UNNAMED, host: text(host) ?? "" };
}

function checkRow(config: Config, row: ListedModel, refuse: (why: string) => ListedChange): ListedChange {
  const { catalog, modelsOfFile } = config;
  if (!isModelId(row.id)) return refuse("its id is not <author>/<name>, with an author other than `gateway`");
  if (!catalog.hosts.has(row.host))
    return refuse(`there is no host ${row.host} here: ${[...catalog.hosts.keys()].join(", ")}`);
  const offered = catalog.models.get(row.id) ?? null;
  const route = offered?.routes.find((one) => isRouteOf(row, one)) ?? null;
  const full = completed(row, offered, route);
  if (typeof full === "string") return refuse(full);
  const own = { model: row.id, host: row.host, row: full };
  const differences =
    route === null
      ? [...newLines(full), ...(offered === null ? limitsOf(full) : [])]
      : differencesOf(offered!, route, full);
  if (modelsOfFile.has(row.id)) return { ...own, change: "kept", differences, doubts: [], row: null };
  if (route !== null && differences.length === 0)
    return { ...own, change: "unchanged", differences, doubts: [], row: null };
  const doubts = [...priceWarnings(offered, route, full), ...limitDoubts(offered, full)];
  return { ...own, change: route === null ? "new" : "changed", differences, doubts };
}

/** With what is on offer, where the list says nothing; or what is missing. */
function completed(row: ListedModel, offered: Model | null, route: Route | null): SyncedModel | string {
  const price = row.price ?? (route?.price == null ? undefined : priceRow(route.price));
  const contextLength = row.context_length ?? offered?.contextLength;
  if (price === undefined) return "the list has no price for it: add the model with a price, by a file";
  if (contextLength === undefined) return "the list does not say how long its prompts may be";
  const maxOutputTokens = Math.min(
    row.max_output_tokens ?? offered?.maxOutputTokens ?? contextLength,
    contextLength,
  );
  const full = { ...row, price, context_length: contextLength, max_output_tokens: maxOutputTokens };
  const { input, output } = priceOf(full);
  return input === 0 && output === 0
    ? "its price is 0: free models are routes with `free: true` in the file"
    : full;
}

/** For each kind and step, both prices: in nano-dollars per million tokens, null where there is none. */
function linesOf(before: Price, after: Price) {
  const steps = [before, after].flatMap(({ above = [] }) => above.map(({ prompt }) => prompt));
  return [0, ...new Set(steps)]
    .sort((a, b) => a - b)
    .flatMap((step) => {
      const [was, becomes] = [ratesAt(before, step + 1), ratesAt(after, step + 1)];
      return Object.entries(RATE_LINES).map(([line, of]) => ({
        name: step === 0 ? `price.${line}` : `price.${line} above ${step}`,
        was: of(was),
        becomes: of(becomes),
      }));
    });
}

const usdOf = (nano: number | null): string => (nano === null ? "none" : String(nano / NANO_PER_USD));

/** What a model costs that was not on offer at that host. */
function newLines(full: SyncedModel): string[] {
  const price = priceOf(full);
  return linesOf(price, price).flatMap(({ name, becomes }) =>
    becomes === null ? [] : [`${name}: ${usdOf(becomes)}`],
  );
}

const limitsOf = ({ context_length: context, max_output_tokens: output }: SyncedModel): string[] => [
  `context_length: ${context}`,
  `max_output_tokens: ${output}`,
];

function differencesOf(offered: Model, route: Route, full: SyncedModel): string[] {
  const prices =
    route.price === null
      ? []
      : linesOf(route.price, priceOf(full)).filter(({ was, becomes }) => was !== becomes);
  const limits = isFirst(offered, full)
    ? [
        ["context_length", offered.contextLength, full.context_length] as const,
        ["max_output_tokens", offered.maxOutputTokens, full.max_output_tokens] as const,
      ]
    : [];
  return [
    ...prices.map(({ name, was, becomes }) => `${name}: ${usdOf(was)} → ${usdOf(becomes)}`),
    ...limits.flatMap(([name, was, becomes]) => (was === becomes ? [] : [`${name}: ${was} → ${becomes}`])),
  ];
}

/** The first host's row says how long prompts and answers of a model may be. */
const isFirst = ({ routes }: Model, full: ListedModel): boolean =>
  routes[0] !== undefined && isRouteOf(full, routes[0]);

/** A price that differs this much from the present one is more often a slipped decimal than a new price. */
const SUSPECT_FACTOR = 10;
/** No model on sale costs that much; in USD per million tokens. */
const SUSPECT_USD = 1_000;

function priceWarnings(offered: Model | null, route: Route | null, full: SyncedModel): string[] {
  const price = priceOf(full);
  const zero = (["input", "output", "cacheRead", "cacheWrite"] as const).filter((line) => price[line] === 0);
  const known = route?.price ?? offered?.price ?? null;
  const before = known ?? price;
  const doubts = linesOf(before, price).flatMap(({ name, was, becomes }) => {
    if (was !== null && becomes === null) return [`${name} is lost: ${usdOf(was)} → none`];
    if (was === null || becomes === null) return [];
    const isFar = was !== becomes && Math.max(was, becomes) >= SUSPECT_FACTOR * Math.min(was, becomes);
    if (isFar)
      return [`${name} differs by a factor of ${SUSPECT_FACTOR} or more: ${usdOf(was)} → ${usdOf(becomes)}`];
    return becomes > SUSPECT_USD * NANO_PER_USD
      ? [`${name} is above ${SUSPECT_USD} USD: ${usdOf(becomes)}`]
      : [];
  });
  const lostSteps = (before.above?.length ?? 0) > 0 && price.above === undefined;
  return [
    ...zero.flatMap((line) => (known !== null && known[line] === 0 ? [] : [`price.${line} is 0`])),
    ...(lostSteps ? ["the higher price of long prompts is lost"] : []),
    ...new Set(doubts),
  ];
}

function limitDoubts(offered: Model | null, full: SyncedModel): string[] {
  if (offered === null) return [];
  const { contextLength, maxOutputTokens } = offered;
  const shorter = full.context_length < contextLength;
  if (!isFirst(offered, full))
    return shorter
      ? [`this host takes ${full.context_length} tokens, and the model is offered with ${contextLength}`]
      : [];
  return [
    ...(shorter ? [`context_length shrinks: ${contextLength} → ${full.context_length}`] : []),
    ...(full.max_output_tokens < maxOutputTokens
      ? [`max_output_tokens shrinks: ${maxOutputTokens} → ${full.max_output_tokens}`]
      : []),
  ];
}

/** Priced models of the hosts in the list that it does not have. They stay on offer: who takes them out, says so in the file. */
function goneModels({ catalog }: Config, listed: readonly ListedChange[]): ListedChange[] {
  const hosts = new Set(listed.flatMap(({ change, host }) => (change === "refused" ? [] : [host])));
  const has = new Set(listed.map(({ model, host }) => `${host} ${model}`));
  return [...catalog.models.values()].flatMap(({ id, routes }) =>
    routes.flatMap(({ host, free }) =>
      free || !hosts.has(host.id) || has.has(`${host.id} ${id}`)
        ? []
        : [{ model: id, host: host.id, change: "gone" as const, differences: [], doubts: [], row: null }],
    ),
  );
}
