import type { Catalog } from "../../catalog/catalog.ts";
import { type CatalogEntry, catalogEntries, type RouteAvailability } from "../../catalog/entry.ts";
import { AUTO_PREFIX, FREE_SUFFIX } from "../../catalog/model-name.ts";
import { perMillion, rough } from "../../units/numbers.ts";
import { escapeHtml, type HtmlPage, makePage } from "./page.ts";

/**
 * What can be called and for how much, for whoever compares gateways before having a key: the rows of
 * `GET /v1/catalog` in their order. It works without a script: a click selects a whole id, and the choice of
 * what is shown is a rule of the style.
 */
export function modelsPage(catalog: Catalog, routeState: RouteAvailability, baseUrl: string): HtmlPage {
  const entries = catalogEntries(catalog, routeState);
  const shown = FILTERS.filter(({ of }) => entries.some(of) && !entries.every(of));
  return makePage(
    "Models",
    STYLE + shown.map(({ name }) => ruleOf(name)).join(""),
    `<h1>Models</h1>
<p class="lead">${leadOf(entries.length)} Send an id as <code>model</code> to <code class="id">${escapeHtml(baseUrl)}/v1</code>. Prices are in dollars per million tokens.</p>
${shown.length === 0 ? "" : choices(shown)}
<div class="list">
${entries.map(row).join("\n")}
</div>
${routes(catalog)}`,
  );
}

/** Where the operator shows the catalogue only to those who have a key. */
export const closedModelsPage = (): HtmlPage =>
  makePage(
    "Models",
    STYLE,
    `<h1>Models</h1>
<p class="lead">This gateway shows its models to those who have a key: in its <a href="dashboard#/models">dashboard</a>, and at <code>GET /v1/models</code>. A first key is free of charge, and needs no account.</p>`,
  );

interface ModelFilter {
  readonly name: string;
  readonly label: string;
  readonly of: (entry: CatalogEntry) => boolean;
}

const FILTERS: readonly ModelFilter[] = [
  { name: "free", label: "Free", of: ({ free }) => free },
  { name: "images", label: "Takes images", of: takes("image") },
  { name: "files", label: "Takes files", of: takes("file") },
  { name: "audio", label: "Takes audio", of: takes("audio") },
  { name: "tools", label: "Tools", of: ({ supported_parameters: all }) => all.includes("tools") },
  { name: "reasoning", label: "Reasoning", of: ({ supported_parameters: all }) => all.includes("reasoning") },
];

function takes(modality: CatalogEntry["input_modalities"][number]): ModelFilter["of"] {
  return ({ input_modalities: all }) => all.includes(modality);
}

const choices = (filters: readonly ModelFilter[]): string =>
  `<fieldset class="choices"><legend class="unseen">Show</legend>${[{ name: "all", label: "All" }, ...filters]
    .map(
      ({ name, label }, at) =>
        `<label><input type="radio" name="show" id="${name}"${at === 0 ? " checked" : ""}><span>${label}</span></label>`,
    )
    .join("")}</fieldset>`;

/** Hides, while the filter is chosen, the rows that it is not about. */
const ruleOf = (name: string): string =>
  `.reading:has(#${name}:checked) article:not(.${name}) { display: none; }\n`;

function row(entry: CatalogEntry): string {
  const { id, name, price, free, available, context_length, max_output_tokens } = entry;
  const classes = FILTERS.filter(({ of }) => of(entry)).map((filter) => filter.name);
  const facts = [
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
  const freeId = `${id}${FREE_SUFFIX}`;
  return `<article class="${classes.join(" ")}">
<div class="what"><h2>${escapeHtml(name)}</h2><code class="id">${escapeHtml(id)}</code>${free ? `<code class="id">${escapeHtml(freeId)}</code>` : ""}</div>
<dl>${facts.map(([term, fact]) => `<div><dt>${term}</dt><dd>${fact}</dd></div>`).join("")}</dl>
<p class="tags">${tagsOf(entry, classes)}${free ? '<span class="tag good-tag">Free</span>' : ""}${available ? "" : '<span class="tag bad-tag">Not available</span>'}</p>
</article>`;
}

const tagsOf = ({ input_modalities: inputs }: CatalogEntry, classes: readonly string[]): string =>
  [inputs.join(", "), ...["tools", "reasoning"].filter((ability) => classes.includes(ability))]
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
.choices { display: flex; flex-wrap: wrap; gap: .4rem; margin: 1.4rem 0 0; padding: 0; border: 0; }
.choices label { position: relative; }
.choices input { position: absolute; opacity: 0; }
.choices span, .tag { display: block; padding: .15rem .75rem; border-radius: 99px; background: var(--tint); color: var(--soft); font-size: .85rem; font-weight: 550; }
.choices span { cursor: pointer; }
.choices input:checked + span { background: var(--accent); color: var(--on-accent); }
.choices input:focus-visible + span { outline: 2px solid var(--accent); outline-offset: 2px; }
.tag { padding: .05rem .6rem; font-size: .8rem; }
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
