import type { About } from "../../api/about.ts";
import { STATUS } from "../../api/status.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { type Refusal, refuse } from "../../errors/refusal.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, HttpExchange } from "../endpoint.ts";
import { operation } from "../operation.ts";
import { ok } from "../reply.ts";
import { DailyFigures } from "./daily-figures.ts";
import { errorsPage } from "./errors-page.ts";
import { guide } from "./guide.ts";
import { memoize } from "./memoize.ts";
import { closedModelsPage, modelsPage } from "./models-page.ts";
import { type HtmlPage, icon, makeAppPage, page } from "./page.ts";
import { RouteFigures } from "./route-figures.ts";
import { statusAnswer, statusPage } from "./status-page.ts";

/** What a person who opens the address sees, and what a supervisor asks. */
export function pageEndpoints(deps: HttpDeps): Endpoint[] {
  const errors = errorsPage();
  const daily = new DailyFigures(deps);
  const routes = new RouteFigures(deps);
  const models = modelsOf(deps);
  const { clock } = deps.keyDeps;
  const status = memoize(() => statusNow(deps, daily, routes), STATUS_MS, clock);
  const statusJson = memoize(() => answerNow(deps, routes), STATUS_MS, clock);
  return [
    { method: "GET", path: "/", about: PAGES.greeting, handle: () => plainText(greeting(deps)) },
    {
      method: "GET",
      path: "/llms.txt",
      about: PAGES.guide,
      handle: () => plainText(guide(deps.settings())),
    },
    { method: "GET", path: "/healthz", about: PAGES.health, handle: () => plainText("ok\n") },
    {
      method: "GET",
      path: "/readyz",
      about: PAGES.readiness,
      handle: () => readiness(deps.unready()),
    },
    { method: "GET", path: "/favicon.ico", about: PAGES.icon, handle: icon },
    { method: "GET", path: "/docs/errors", about: PAGES.errors, handle: () => page(errors) },
    {
      method: "GET",
      path: "/status",
      about: PAGES.status,
      handle: async () => page(await status()),
    },
    operation("GET /status.json", STATUS, async () => ok(await statusJson())),
    { method: "GET", path: "/models", about: PAGES.models, handle: () => page(models()) },
    {
      method: "GET",
      path: "/dashboard",
      about: PAGES.dashboard,
      handle: () => app("dashboard", "Dashboard", deps),
    },
    { method: "GET", path: "/admin", about: PAGES.admin, handle: () => app("admin", "Administration", deps) },
    {
      method: "GET",
      path: "/dashboard/:file",
      about: PAGES.file,
      handle: appFile,
    },
  ];
}

/** Made anew when the configuration was read again, and every few seconds: anybody may ask for it. */
function modelsOf({ settings, catalog, routeState, keyDeps }: HttpDeps): () => HtmlPage {
  const closed = closedModelsPage();
  let made: { readonly of: Catalog; readonly at: number; readonly page: HtmlPage } | null = null;
  return () => {
    const { baseUrl, catalogIsPublic } = settings();
    if (!catalogIsPublic) return closed;
    const now = keyDeps.clock.now();
    const of = catalog();
    if (made === null || made.of !== of || now - made.at > MODELS_MS || now < made.at)
      made = { of, at: now, page: modelsPage(of, routeState, baseUrl) };
    return made.page;
  };
}

const MODELS_MS = 5_000;

const STATUS_MS = 1_000;

async function statusNow(deps: HttpDeps, daily: DailyFigures, routes: RouteFigures): Promise<HtmlPage> {
  const { catalog, routeState, hostReports, keyDeps } = deps;
  const [sums, figures] = await Promise.all([daily.sums(), routes.of()]);
  const report = { now: keyDeps.clock.now(), sums, hosts: hostReports(), figures };
  return statusPage(catalog(), routeState, report);
}

async function answerNow({ catalog, routeState, keyDeps }: HttpDeps, routes: RouteFigures) {
  const report = { now: keyDeps.clock.now(), figures: await routes.of() };
  return statusAnswer(catalog(), routeState, report);
}

/** The page itself holds nothing: what it shows, it asks for with the credential that its reader enters. */
async function app(name: "dashboard" | "admin", title: string, { apps }: HttpDeps): Promise<Response> {
  const { script, style } = await apps.entry(name);
  return page(makeAppPage(title, { script: `dashboard/${script}`, style: `dashboard/${style}` }));
}

async function appFile({ params }: HttpExchange, { apps }: HttpDeps): Promise<Response | Refusal> {
  const file = await apps.file(params.file ?? "");
  if (file === null) {
    return refuse(
      "invalid_request",
      "The dashboard has no such file. Reload the page: it may come from an older version.",
    );
  }
  return new Response(file.bytes, {
    headers: {
      "content-type": file.type,
      // The name holds the content's hash.
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
    },
  });
}

const readiness = (unready: string | null): Response =>
  unready === null ? plainText("ready\n") : plainText(`not ready: ${unready}\n`, 503);

const plainText = (text: string, status = 200): Response =>
  new Response(text, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
  });

function greeting(deps: HttpDeps): string {
  const { baseUrl, dashboardUrl } = deps.settings();
  return `Text generation gateway

Create a key:   curl -X POST ${baseUrl}/v1/keys
Base URL:       ${baseUrl}/v1
For agents:     ${baseUrl}/llms.txt
Dashboard:      ${dashboardUrl}
Models:         ${baseUrl}/models
API reference:  ${baseUrl}/docs/api, ${baseUrl}/openapi.json
Errors:         ${baseUrl}/docs/errors
`;
}

const PAGES = {
  greeting: { summary: "Lists the addresses to start from", who: [], answers: { 200: ["text/plain"] } },
  guide: {
    summary: "Tells an agent the way from this address to a paid answer",
    who: [],
    answers: { 200: ["text/plain"] },
  },
  health: {
    summary: "Says that the process can serve (liveness)",
    who: [],
    answers: { 200: ["text/plain"] },
  },
  readiness: {
    summary: "Says whether requests should be sent here (readiness)",
    details:
      "It is 503 while the gateway starts, cannot record anything, or has been told to stop; the body says which.",
    who: [],
    answers: { 200: ["text/plain"], 503: ["text/plain"] },
  },
  icon: { summary: "The icon for browsers", who: [], answers: { 200: ["image/svg+xml"] } },
  errors: { summary: "The errors reference", who: [], answers: { 200: ["text/html"] } },
  status: { summary: "The public status page of models and hosts", who: [], answers: { 200: ["text/html"] } },
  models: {
    summary: "The models with what they take, their limits and prices, as a page",
    details: "Shown without a key where the operator says `catalog: public`.",
    who: [],
    answers: { 200: ["text/html"] },
  },
  dashboard: { summary: "The dashboard", who: [], answers: { 200: ["text/html"] } },
  admin: {
    summary: "The operator's page",
    details: "It asks for the admin token and shows nothing without it.",
    who: [],
    answers: { 200: ["text/html"] },
  },
  file: {
    summary: "A file of the dashboard",
    who: [],
    answers: { 200: ["text/javascript", "text/css"] },
  },
} as const satisfies Record<string, About>;
