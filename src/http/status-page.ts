import type { Catalog, Host } from "../catalog/catalog.ts";
import { type CatalogEntry, catalogEntries, type RoadConditions } from "../catalog/entry.ts";
import { escapeHtml, makePage, type Page } from "./page.ts";

/** For the public: which models are served right now, and whether their hosts answer. */
export function statusPage(catalog: Catalog, roads: RoadConditions): Page {
  const entries = catalogEntries(catalog, roads);
  const down = entries.filter(({ available }) => !available).length;
  const summary =
    entries.length === 0
      ? "No models are configured."
      : down === 0
        ? "All models are available."
        : `${down} of ${entries.length} models are not available right now.`;
  return makePage(
    "Status",
    STYLE,
    `<header><h1>Status</h1><p class="lead">${summary}</p></header>
<h2>Models</h2>
<div class="scroll"><table>
<thead><tr><th>Model</th><th>Context</th><th>Now</th></tr></thead>
<tbody>
${entries.map(modelRow).join("\n")}
</tbody>
</table></div>
<h2>Hosts</h2>
<div class="scroll"><table>
<thead><tr><th>Host</th><th>Languages</th><th>Now</th></tr></thead>
<tbody>
${[...catalog.hosts.values()].map((host) => hostRow(host, answers(host, catalog, roads))).join("\n")}
</tbody>
</table></div>`,
  );
}

const modelRow = ({ id, name, context_length, available }: CatalogEntry): string =>
  `<tr><td>${escapeHtml(name)}<br><code>${escapeHtml(id)}</code></td><td>${context_length.toLocaleString("en")}</td><td>${mark(available)}</td></tr>`;

const hostRow = ({ id, speaks }: Host, usable: boolean): string =>
  `<tr><td><code>${escapeHtml(id)}</code></td><td>${speaks.join(", ")}</td><td>${mark(usable)}</td></tr>`;

/** A host that no model uses is not known to fail. */
function answers(host: Host, catalog: Catalog, roads: RoadConditions): boolean {
  for (const { routes } of catalog.models.values()) {
    for (const route of routes) if (route.host.id === host.id) return roads.usable(route);
  }
  return true;
}

const mark = (good: boolean): string =>
  good ? `<span class="good">available</span>` : `<span class="bad">not available</span>`;

const STYLE = `
h2 { margin: 2rem 0 .5rem; }
.good { color: var(--good); }
.bad { color: var(--bad); }
`;
