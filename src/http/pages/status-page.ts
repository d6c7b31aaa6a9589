import type { AnswerTo } from "../../api/about.ts";
import type { STATUS } from "../../api/status.ts";
import { type RouteAvailability, servingRoutes } from "../../catalog/availability.ts";
import type { Catalog, Model, Route } from "../../catalog/catalog.ts";
import type { HostReport, RouteRecord } from "../../routing/health.ts";
import type { HostSum, ModelSum, StretchSum, UsageSums } from "../../store/usage/usage-sums.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { type CatalogEntry, catalogEntries } from "../catalog-entries.ts";
import { type RouteFigure, STATUS_STRETCH_MS, STATUS_STRETCHES } from "./figures.ts";
import { escapeHtml, type HtmlPage, makePage } from "./page.ts";

/**
 * For the public: which models are served right now, whether their hosts answer, and how both did over the
 * last day. Shares only, no numbers of requests: how much a gateway is used is its operator's business.
 */
export function statusPage(catalog: Catalog, routeState: RouteStatus, day: DayReport): HtmlPage {
  const { sums, now } = day;
  const { entries, states } = modelStates(catalog, routeState, day);
  const hosts = new Map(sums?.hosts.map((sum) => [sum.host, sum]));
  return makePage(
    "Status",
    STYLE,
    `<header class="banner ${bannerKind(states)}">
<h1>${summary(states)}</h1>
<p>The last 24 hours, updated ${isoTime(now).slice(11, 16)} UTC. A bar is an hour, from left to right: <span class="key"><i class="fine"></i> ${FINE_WORDS}</span> <span class="key"><i class="some"></i> some failed</span> <span class="key"><i class="most"></i> many failed</span> <span class="key"><i></i> no requests</span></p>
</header>
${modelSections(catalog, routeState, day, { entries, states })}
<section aria-labelledby="hosts"><h2 id="hosts">Hosts</h2>
<div class="list">
${day.hosts
  .filter(({ id }) => catalog.hosts.get(id)?.paused !== true)
  .map((report) => hostRow(report, catalog, hosts.get(report.id)))
  .join("\n")}
</div></section>`,
  );
}

/** What fails comes first, and what nobody has used is only named: a page of hundreds of models is still read. */
function modelSections(
  catalog: Catalog,
  routeState: RouteStatus,
  day: DayReport,
  { entries, states }: ReturnType<typeof modelStates>,
): string {
  const sums = new Map(day.sums?.models.map((sum) => [sum.model, sum]));
  const inState = (state: ModelState) => entries.filter((_, at) => states[at] === state);
  const rowsOf = (state: ModelState) =>
    inState(state).map((entry) => {
      const shown = { name: state, since: failingSince(entry, catalog, routeState, day.hosts) };
      const figures = day.figures(catalog.models.get(entry.id)!);
      return modelRow(entry, shown, sums.get(entry.id), hoursOf(entry.id, day), figures);
    });
  const rows = (["open", "half_open", "closed"] as const).flatMap(rowsOf);
  const more = rows.slice(MAX_ROWS);
  const unused = inState("unused");
  return `<section aria-labelledby="models"><h2 id="models">Models</h2>
${listOf(rows.slice(0, MAX_ROWS))}
${more.length === 0 ? "" : folded(`${COUNT.format(more.length)} more models`, listOf(more))}
${unused.length === 0 ? "" : folded(`${COUNT.format(unused.length)} ${unused.length === 1 ? "model" : "models"} not used yet`, names(unused), rows.length === 0 && unused.length <= MAX_ROWS)}
</section>`;
}

/** Rows that are shown at once. */
const MAX_ROWS = 50;

const listOf = (rows: readonly string[]): string =>
  rows.length === 0 ? "" : `<div class="list">\n${rows.join("\n")}\n</div>`;

const folded = (title: string, content: string, isOpen = false): string =>
  `<details${isOpen ? " open" : ""}><summary>${title}</summary>${content}</details>`;

const names = (entries: readonly CatalogEntry[]): string =>
  `<ul class="list names">${entries.map(({ id, name }) => `<li>${escapeHtml(name)} <code>${escapeHtml(id)}</code></li>`).join("\n")}</ul>`;

/** The same for programs. */
export function statusAnswer(
  catalog: Catalog,
  routeState: RouteStatus,
  day: DayReport,
): AnswerTo<typeof STATUS> {
  const { entries, states } = modelStates(catalog, routeState, day);
  const { now, figures } = day;
  return {
    object: "status",
    as_of: isoTime(now),
    models: entries.map(({ id }, at) => ({
      id,
      state: STATE_NAMES[states[at]!],
      hosts: figures(catalog.models.get(id)!).map(({ host, firstTokenMs, tokensPerSecond }) => ({
        host,
        first_token_ms: firstTokenMs,
        tokens_per_second: tokensPerSecond,
      })),
    })),
  };
}

function modelStates(catalog: Catalog, routeState: RouteStatus, { sums, figures }: DayReport) {
  const entries = catalogEntries(catalog, routeState);
  const used = new Set(sums?.models.map(({ model }) => model));
  const isUsed = (id: string) =>
    used.has(id) || figures(catalog.models.get(id)!).some(({ attempts }) => attempts > 0);
  const states = entries.map((entry): ModelState => {
    const state = modelState(entry, catalog, routeState);
    return state === "open" || isUsed(entry.id) ? state : "unused";
  });
  return { entries, states };
}

export interface RouteStatus extends RouteAvailability {
  /** It has rested after failures, and served nobody since. */
  unproven(route: Route): boolean;
  record(route: Route): Pick<RouteRecord, "lastFailure"> | null;
}

export interface DayReport {
  readonly now: EpochMs;
  /** Null when the receipts could not be read yet. */
  readonly sums: UsageSums | null;
  /** What routing knows of the hosts at this moment. */
  readonly hosts: readonly HostReport[];
  /** How fast a model is at each of its hosts. */
  readonly figures: (model: Model) => readonly RouteFigure[];
}

/** Unused: nobody knows whether its hosts would answer. */
type ModelState = "closed" | "unused" | "half_open" | "open";

const STATE_NAMES = {
  closed: "available",
  unused: "not_used_yet",
  half_open: "being_tried_again",
  open: "unavailable",
} as const;

/** A model whose hosts have all failed and not been seen to work since is not called available. */
function modelState(
  { id, available }: CatalogEntry,
  { models }: Catalog,
  routeState: RouteStatus,
): ModelState {
  if (!available) return "open";
  return servingRoutes(models.get(id)!, routeState).every((route) => routeState.unproven(route))
    ? "half_open"
    : "closed";
}

const bannerKind = (states: readonly ModelState[]): string =>
  states.some((state) => state === "open" || state === "half_open")
    ? "troubled"
    : states.includes("closed")
      ? "fine"
      : "unknown";

function summary(states: readonly ModelState[]): string {
  if (states.length === 0) return "No models are configured.";
  const counted = (state: ModelState) => states.filter((one) => one === state).length;
  if (counted("closed") === states.length) return "All models are available.";
  if (counted("unused") === states.length) return "No model has been used yet.";
  const parts = (["open", "half_open", "closed", "unused"] as const).flatMap((state) => {
    const count = counted(state);
    return count === 0 ? [] : [`${COUNT.format(count)} ${STATES[state][1]}`];
  });
  return `${COUNT.format(states.length)} ${states.length === 1 ? "model" : "models"}: ${parts.join(", ")}.`;
}

const COUNT = new Intl.NumberFormat("en");

function modelRow(
  { id, name }: CatalogEntry,
  state: ShownState,
  sum: ModelSum | undefined,
  hours: readonly Hour[],
  figures: readonly RouteFigure[],
): string {
  return `<article>
<div class="what"><h3>${escapeHtml(name)}</h3><code>${escapeHtml(id)}</code></div>
<div class="hours" role="img" aria-label="${success(sum)} over the last day">${hours.map(cell).join("")}</div>
<dl><div><dt>Success</dt><dd>${sum === undefined ? "–" : percent(sum.failed, sum.requests)}</dd></div>
<div><dt>First token</dt><dd>${firstToken(sum)}</dd></div></dl>
${mark(state)}
${figures.length > 1 ? `<ul>${figures.map(routeItem).join("")}</ul>` : ""}
</article>`;
}

const routeItem = ({ host, firstTokenMs, tokensPerSecond }: RouteFigure): string =>
  `<li>${escapeHtml(host)} <span class="soft">${firstTokenMs === null ? "–" : time(firstTokenMs)} · ${throughput(tokensPerSecond)}</span></li> `;

const throughput = (tokensPerSecond: number | null): string =>
  tokensPerSecond === null ? "–" : `${COUNT.format(Math.round(tokensPerSecond))} tokens/s`;

/** Over the last day, or since the start where no receipt tells of the day. */
function hostRow(
  { id, state, firstTokenMs, tokensPerSecond, failingSince, ...since }: HostReport,
  catalog: Catalog,
  sum?: HostSum,
): string {
  const { attempts, failed } = sum ?? { attempts: since.served + since.failed, failed: since.failed };
  const facts = [
    ["First token", firstTokenMs === null ? "–" : time(firstTokenMs)],
    ["Throughput", throughput(tokensPerSecond)],
    ["Answered", attempts === 0 ? "–" : percent(failed, attempts)],
  ];
  return `<article>
<div class="what"><h3>${escapeHtml(id)}</h3> <span class="soft">${catalog.hosts.get(id)?.speaks.join(", ") ?? ""}</span></div>
<dl class="wide">${facts.map(([name, fact]) => `<div><dt>${name}</dt> <dd>${fact}</dd></div> `).join("")}</dl>
${mark({ name: attempts === 0 && state === "closed" ? "unused" : state, since: failingSince })}
</article>`;
}

const STATES = {
  closed: ["fine", "available"],
  unused: ["unknown", "not used yet"],
  degraded: ["some", "available, except for some models"],
  half_open: ["some", "waiting for a request after failures"],
  open: ["most", "not available"],
} as const satisfies Record<HostReport["state"] | "unused", readonly [string, string]>;

interface Hour {
  readonly start: number;
  readonly sum: StretchSum | undefined;
}

function hoursOf(model: string, { sums: day, now }: DayReport): Hour[] {
  const sums = new Map(day?.stretches.filter((sum) => sum.name === model).map((sum) => [sum.start, sum]));
  const last = now - (now % STATUS_STRETCH_MS);
  return Array.from({ length: STATUS_STRETCHES }, (_, index) => {
    const start = last - (STATUS_STRETCHES - 1 - index) * STATUS_STRETCH_MS;
    return { start, sum: sums.get(start) };
  });
}

function cell({ start, sum }: Hour): string {
  const hour = `${isoTime(start as EpochMs).slice(11, 13)}:00 UTC`;
  if (sum === undefined) return `<i title="${hour}: no requests"></i>`;
  const share = sum.failed / sum.requests;
  const kind = share <= FINE ? "fine" : share <= TROUBLED ? "some" : "most";
  return `<i class="${kind}" title="${hour}: ${percent(sum.failed, sum.requests)} succeeded"></i>`;
}

/** Shares of failed requests up to which an hour is painted as fine, and as troubled. */
const FINE = 0.01;
const FINE_WORDS = "99% succeeded";
const TROUBLED = 0.2;

const success = (sum: ModelSum | undefined): string =>
  sum === undefined ? "no requests" : `${percent(sum.failed, sum.requests)} of requests succeeded`;

/** Rounded down: 99.96% is not a hundred. */
const percent = (failed: number, of: number): string => `${Math.floor(((of - failed) * 1_000) / of) / 10}%`;

function firstToken(sum: ModelSum | undefined): string {
  const { firstTokenMsP50: half = null, firstTokenMsP95: most = null } = sum ?? {};
  if (half === null || most === null) return "–";
  return `${time(half)} <span class="soft">· 95% within ${time(most)}</span>`;
}

const time = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`);

function mark({ name, since }: ShownState): string {
  const [kind, words] = STATES[name];
  const isFailing = since !== null && (name === "open" || name === "half_open" || name === "degraded");
  const start = isFailing ? `<small>since ${minuteOf(since)}</small>` : "";
  return `<span class="mark ${kind}">${words}${start}</span>`;
}

interface ShownState {
  readonly name: keyof typeof STATES;
  /** When failures began that no answer has followed. */
  readonly since: EpochMs | null;
}

const minuteOf = (at: EpochMs): string => `${isoTime(at).slice(0, 16).replace("T", " ")} UTC`;

/** A model fails since the last of its routes began to, each by itself or with its host. */
function failingSince(
  { id }: CatalogEntry,
  { models }: Catalog,
  routeState: RouteStatus,
  hosts: readonly HostReport[],
): EpochMs | null {
  const whole = new Map(hosts.map((host) => [host.id, host.failingSince]));
  const starts = models
    .get(id)!
    .routes.map((route) => routeState.record(route)?.lastFailure?.since ?? whole.get(route.host.id) ?? 0);
  const latest = Math.max(0, ...starts);
  return latest === 0 ? null : (latest as EpochMs);
}

const STYLE = `
.banner { padding: 1.6rem 1.8rem; border-radius: 16px; margin-bottom: 2.4rem; }
.banner h1 { font-size: 1.5rem; }
.banner p { margin: .3rem 0 0; color: var(--soft); }
.banner .key { white-space: nowrap; margin-left: .6rem; }
.banner .key i { display: inline-block; width: .6rem; height: .9rem; vertical-align: -.12rem; margin-right: .2rem; }
.key i, .hours i { border-radius: 3px; background: var(--tint); }
.key i:not([class]) { box-shadow: inset 0 0 0 1px var(--edge); }
.banner.unknown { background: var(--tint); }
.banner.fine { background: var(--wash); }
.banner.troubled { background: var(--warn-wash); }
section { margin-top: 2.2rem; }
.list { margin-top: .8rem; background: var(--card); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow); }
article { display: grid; grid-template-columns: minmax(10rem, 1.3fr) 12rem minmax(12rem, 1fr) 11rem; gap: .6rem 1.6rem; align-items: center; padding: 1rem 1.4rem; }
article + article { border-top: 1px solid var(--line); }
h3 { font-size: 1rem; }
.what code, .what span { color: var(--soft); font-size: .85rem; }
.hours { display: flex; gap: 2px; height: 1.9rem; }
.hours i { flex: 1; }
:is(.hours, .key) .fine { background: var(--series-1); }
:is(.hours, .key) .some { background: var(--series-2); }
:is(.hours, .key) .most { background: var(--bad); }
summary { margin-top: 1rem; font-weight: 550; cursor: pointer; }
.names { grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: .3rem 1.6rem; padding: 1rem 1.4rem !important; }
ul.names { display: grid; }
.names code { color: var(--soft); overflow-wrap: anywhere; }
ul { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; margin: 0; padding: 0; list-style: none; font-size: .85rem; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)); gap: .3rem 1rem; margin: 0; font-size: .9rem; font-variant-numeric: tabular-nums; }
dl.wide { grid-column: span 2; }
dt { color: var(--soft); font-size: .8rem; }
dd { margin: 0; }
.mark { justify-self: end; text-align: right; font-size: .88rem; font-weight: 550; }
.mark small { display: block; font-weight: 400; }
.mark.fine { color: var(--good); }
.mark.some { color: var(--warn); }
.mark.most { color: var(--bad); }
.mark.unknown { color: var(--soft); }
.mark::before { content: ""; display: inline-block; width: .55rem; height: .55rem; margin-right: .5rem; border-radius: 50%; background: currentColor; }
@media (max-width: 480px) { article { padding: 1rem; } .mark { justify-self: start; text-align: left; } .what, .mark { grid-column: 1 / -1 !important; grid-row: auto !important; } }
@media (max-width: 900px) {
  article { grid-template-columns: 1fr auto; }
  .what { grid-row: 1; }
  .mark { grid-row: 1; grid-column: 2; }
  .hours, dl, dl.wide { grid-column: 1 / -1; }
}
`;
