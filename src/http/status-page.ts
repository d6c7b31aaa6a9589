import type { Catalog } from "../catalog/catalog.ts";
import { type CatalogEntry, catalogEntries, type RoadConditions } from "../catalog/entry.ts";
import type { HostReport } from "../routing/health.ts";
import { escapeHtml, makePage, type Page } from "./page.ts";

/** For the public: which models are served right now, and whether their hosts answer. */
export function statusPage(catalog: Catalog, roads: RoadConditions, hosts: readonly HostReport[]): Page {
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
<thead><tr><th>Host</th><th>Languages</th><th>First token</th><th>Throughput</th><th>Attempts served</th><th>Now</th></tr></thead>
<tbody>
${hosts.map((host) => hostRow(host, catalog)).join("\n")}
</tbody>
</table></div>`,
  );
}

const modelRow = ({ id, name, context_length, available }: CatalogEntry): string =>
  `<tr><td>${escapeHtml(name)}<br><code>${escapeHtml(id)}</code></td><td>${context_length.toLocaleString("en")}</td><td>${mark(available)}</td></tr>`;

function hostRow(
  { id, state, firstTokenMs, tokensPerSecond, served, failed }: HostReport,
  catalog: Catalog,
): string {
  const cells = [
    `<code>${escapeHtml(id)}</code>`,
    catalog.hosts.get(id)?.speaks.join(", ") ?? "",
    firstTokenMs === null ? "–" : `${Math.round(firstTokenMs)} ms`,
    tokensPerSecond === null ? "–" : `${Math.round(tokensPerSecond)} tokens/s`,
    served + failed === 0 ? "–" : `${Math.floor((1_000 * served) / (served + failed)) / 10}%`,
    STATES[state],
  ];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
}

const STATES = {
  closed: `<span class="good">available</span>`,
  degraded: `<span class="bad">available, but for some models</span>`,
  half_open: `<span class="bad">being tried again</span>`,
  open: `<span class="bad">not available</span>`,
} satisfies Record<HostReport["state"], string>;

const mark = (good: boolean): string =>
  good ? `<span class="good">available</span>` : `<span class="bad">not available</span>`;

const STYLE = `
h2 { margin: 2rem 0 .5rem; }
.good { color: var(--good); }
.bad { color: var(--bad); }
`;
