import {
  ABILITIES,
  CONTEXTS,
  findModels,
  MODEL_FILTERS,
  type ModelQuery,
  SORTS,
} from "../../api/find-models.ts";
import { FIRST_CALLS } from "../../api/first-calls.ts";
import type { RouteAvailability } from "../../catalog/availability.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { AUTO_PREFIX, FREE_SUFFIX } from "../../catalog/model-name.ts";
import { perMillion, rough } from "../../units/numbers.ts";
import { type CatalogEntry, catalogEntries } from "../catalog-entries.ts";
import { escapeHtml, type HtmlPage, makePage } from "./page.ts";

/**
 * What can be called and for how much, for people who compare gateways before they have a key. It works without a script: a
 * click selects a whole id, and the form asks for the page again, so that an address shows what was found. A row is
 * made once, because anybody may ask as often as they like.
 */
export class ModelsPages {
  private readonly entries: readonly CatalogEntry[];
  private readonly rows: ReadonlyMap<string, string>;
  private readonly whole: HtmlPage;

  constructor(
    private readonly catalog: Catalog,
    routeState: RouteAvailability,
    private readonly baseUrl: string,
  ) {
    this.entries = catalogEntries(catalog, routeState);
    this.rows = new Map(this.entries.map((entry) => [entry.id, row(entry)]));
    this.whole = this.listOf(ALL);
  }

  list(query: ModelQuery): HtmlPage {
    return Object.values(query).every((value) => value === "") ? this.whole : this.listOf(query);
  }

  /** Null where there is no such model. */
  one(id: string): HtmlPage | null {
    const entry = this.entries.find((one) => one.id === id);
    return entry === undefined ? null : modelPage(entry, this.baseUrl);
  }

  private listOf(query: ModelQuery): HtmlPage {
    const { entries, rows, baseUrl } = this;
    const found = findModels(entries, query);
    return makePage(
      "Models",
      STYLE,
      `<h1>Models</h1>
<p class="lead">${leadOf(entries.length)} Send an id as <code>model</code> to <code class="id">${escapeHtml(baseUrl)}/v1</code>. Prices are in dollars per million tokens.</p>
${entries.length === 0 ? "" : form(query)}
${found.length === entries.length ? "" : `<p class="soft" role="status">${found.length === 0 ? "No model matches" : `${found.length} of ${entries.length} models match`}. <a href="models">Show all</a></p>`}
<div class="list">
${found.map(({ id }) => rows.get(id)).join("\n")}
</div>
${routes(this.catalog)}`,
      "",
      { hasForm: true },
    );
  }
}

const ALL: ModelQuery = { search: "", context: "", price: "", can: "", sort: "" };

/** The filters of an address; what is too long to be one is left out. */
export const modelQueryOf = (query: URLSearchParams): ModelQuery =>
  Object.fromEntries(
    MODEL_FILTERS.map((name) => [name, (query.get(name) ?? "").slice(0, MAX_FILTER)]),
  ) as ModelQuery;

const MAX_FILTER = 100;

const form = (query: ModelQuery): string => `<form class="find" action="models" method="get" role="search">
<label>Search<input type="search" name="search" value="${escapeHtml(query.search)}" placeholder="Name or id"></label>
${choice("Context at least", "context", CONTEXTS, query)}
<label>Input at most<input name="price" inputmode="decimal" value="${escapeHtml(query.price)}" placeholder="$"></label>
${choice("Can", "can", ABILITIES, query)}
${choice("Sort by", "sort", SORTS, query)}
<button>Find</button>
</form>`;

const choice = (
  label: string,
  name: keyof ModelQuery,
  options: readonly (readonly [string, string])[],
  query: ModelQuery,
): string =>
  `<label>${label}<select name="${name}">${options
    .map(
      ([value, words]) =>
        `<option value="${value}"${query[name] === value ? " selected" : ""}>${words}</option>`,
    )
    .join("")}</select></label>`;

/** One model: its limits and prices, and calls that are ready to be copied. */
function modelPage(entry: CatalogEntry, baseUrl: string): HtmlPage {
  const { id, name, free, input_modalities, supported_parameters, available } = entry;
  const facts = [
    ...factsOf(entry),
    ["Reads", input_modalities.join(", ")],
    ["Tools", supported_parameters.includes("tools") ? "yes" : "not known"],
    ["State", available ? "available" : "not available now"],
  ];
  return makePage(
    name,
    STYLE,
    `<p class="crumb"><a href="../../models">Models</a></p>
<h1>${escapeHtml(name)}</h1>
<p><code class="id" data-copied="id">${escapeHtml(id)}</code></p>
${free ? `<p>Free of charge as <code class="id">${escapeHtml(id + FREE_SUFFIX)}</code>, while free requests are left.</p>` : ""}
<dl class="card">${facts.map(definition).join("")}</dl>
<h2 class="part">Call it</h2>
<p class="soft">KEY stands for your key: <a href="../../dashboard">the dashboard</a> makes one.</p>
${Object.values(FIRST_CALLS)
  .map(
    (client) =>
      `<h3>${client.name}</h3><pre tabindex="0" aria-label="${client.name}" data-copied="call">${escapeHtml(client.write(baseUrl, id))}</pre>`,
  )
  .join("\n")}`,
    "../../",
    { script: COPY },
  );
}

/** Browsers give pages the clipboard on https and on this machine only; elsewhere there is no button. */
const COPY = `if (navigator.clipboard) for (const shown of document.querySelectorAll("[data-copied]")) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.setAttribute("aria-label", "Copy the " + shown.dataset.copied);
  button.onclick = () => navigator.clipboard.writeText(shown.textContent).then(() => { button.textContent = "Copied"; });
  shown.after(button);
}`;

/** Where the operator shows the catalogue only to those who have a key. */
export const closedModelsPage = (root = ""): HtmlPage =>
  makePage(
    "Models",
    STYLE,
    `<h1>Models</h1>
<p class="lead">This gateway shows its models to those who have a key: in its <a href="${root}dashboard#/models">dashboard</a>, and at <code>GET /v1/models</code>. A first key is free of charge, and needs no account.</p>`,
    root,
  );

function row(entry: CatalogEntry): string {
  const { id, name, free, available } = entry;
  const freeId = `${id}${FREE_SUFFIX}`;
  return `<article>
<div class="what"><h2><a href="models/${escapeHtml(id)}">${escapeHtml(name)}</a></h2><code class="id">${escapeHtml(id)}</code>${free ? `<code class="id">${escapeHtml(freeId)}</code>` : ""}</div>
<dl>${factsOf(entry).map(definition).join("")}</dl>
<p class="tags">${tagsOf(entry)}${free ? '<span class="tag good-tag">Free</span>' : ""}${available ? "" : '<span class="tag bad-tag">Not available</span>'}</p>
</article>`;
}

const factsOf = ({ price, context_length, max_output_tokens }: CatalogEntry): string[][] => [
  ["Input", priceOf(price?.input)],
  ["Output", priceOf(price?.output)],
  ["Cached", priceOf(price?.cache_read)],
  ...(price?.above ?? []).map(({ prompt, input, output }) => [
    `Prompts above ${rough(prompt)}`,
    `${perMillion(input)} in, ${perMillion(output)} out`,
  ]),
  ["Context", rough(context_length)],
  ["Max output", rough(max_output_tokens)],
];

const definition = ([term, fact]: readonly string[]): string => `<div><dt>${term}</dt><dd>${fact}</dd></div>`;

const tagsOf = ({ input_modalities: inputs, supported_parameters: parameters }: CatalogEntry): string =>
  [inputs.join(", "), ...["tools", "reasoning"].filter((ability) => parameters.includes(ability))]
    .map((words) => `<span class="tag">${words}</span>`)
    .join(" ");

function routes({ auto }: Catalog): string {
  if (auto.size === 0) return "";
  const rows = [...auto].map(
    ([variant, ids]) =>
      `<article><div class="what"><code class="id">${escapeHtml(AUTO_PREFIX + variant)}</code></div><p class="ids">${ids.map((id) => `<code>${escapeHtml(id)}</code>`).join(" ")}</p></article>`,
  );
  return `<h2 class="part">Automatic routes</h2>
<p class="soft">Each stands for the first of its models that can serve a request.</p>
<div class="list">${rows.join("\n")}</div>`;
}

const leadOf = (models: number): string =>
  models === 0
    ? "No models are served yet."
    : models === 1
      ? "One model is served here."
      : `${models} models are served here.`;

/** A model without a price is served by its free route alone. */
const priceOf = (price: number | undefined): string => (price === undefined ? "–" : perMillion(price));

const STYLE = `
.find { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 8.5rem), 1fr)); gap: .8rem; align-items: end; margin-top: 1.4rem; }
.find label { display: grid; gap: .3rem; font-size: .88rem; font-weight: 550; min-width: 0; }
.find input, .find select, button { font: inherit; color: inherit; min-height: 2.5rem; padding: .4rem .7rem; border: 1px solid var(--edge); border-radius: 10px; background: var(--card); min-width: 0; }
.find input, .find select { font-weight: 400; font-size: .95rem; }
button { cursor: pointer; font-weight: 550; }
.find button { background: var(--accent); color: var(--on-accent); border-color: transparent; }
pre { overflow-x: auto; margin: .4rem 0; padding: .9rem 1rem; border-radius: 10px; background: var(--tint); font: .85rem / 1.5 var(--mono); }
pre + button, .id + button { min-height: 2rem; padding: .1rem .8rem; font-size: .85rem; }
.id + button { margin-left: .6rem; }
h3 { margin-top: 1.4rem; }
.crumb a::before { content: "‹ "; }
.crumb a { color: var(--soft); }
dl.card { grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); }
article h2 a { color: inherit; text-decoration: none; }
article h2 a:hover { text-decoration: underline; }
.tag { display: block; border-radius: 99px; background: var(--tint); color: var(--soft); font-weight: 550; padding: .05rem .6rem; font-size: .8rem; }
.good-tag { background: var(--wash); color: var(--good); }
.bad-tag { background: var(--bad-wash); color: var(--bad); }
.list { margin-top: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow); }
article { display: grid; grid-template-columns: minmax(12rem, 1fr) 26.5rem minmax(9rem, .8fr); gap: .5rem 1.6rem; align-items: center; padding: 1rem 1.4rem; border-top: 1px solid var(--line); }
article:first-child { border-top: 0; }
article h2 { font-size: 1rem; }
.what { min-width: 0; }
.what .id { display: block; width: fit-content; max-width: 100%; color: var(--soft); }
.id { user-select: all; overflow-wrap: anywhere; }
.lead .id { color: var(--ink); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(4.6rem, 1fr)); gap: .3rem .6rem; margin: 0; font-size: .9rem; font-variant-numeric: tabular-nums; }
dt { color: var(--soft); font-size: .8rem; }
dd { margin: 0; }
.tags { margin: 0; display: flex; flex-wrap: wrap; gap: .35rem; justify-content: end; }
.tags .tag:first-letter { text-transform: uppercase; }
.part { margin-top: 2.4rem; }
.ids { grid-column: span 2; margin: 0; color: var(--soft); }
@media (max-width: 900px) {
  article { grid-template-columns: minmax(0, 1fr); padding: 1rem 1.1rem; }
  .ids { grid-column: auto; }
  .tags { justify-content: start; }
}
`;
