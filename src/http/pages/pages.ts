import { STATUS } from "../../api/status.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import { RELEASE } from "../../units/version.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { type HttpExchange, queryOf } from "../exchange.ts";
import { operation } from "../operation.ts";
import { errorsPage } from "./errors-page.ts";
import { dailySums, routeFigures } from "./figures.ts";
import { guide } from "./guide.ts";
import { memoize } from "./memoize.ts";
import { closedModelsPage, ModelsPages, modelQueryOf } from "./models-page.ts";
import { icon, makeAppPage, openDocument, page } from "./page.ts";
import { type DayReport, type RouteStatus, statusAnswer, statusPage } from "./status-page.ts";

/** What a person who opens the address sees, and what a supervisor asks. */
export function pageEndpoints(deps: HttpDeps): Endpoint[] {
  const errors = errorsPage();
  const models = modelsOf(deps);
  const closed = closedModelsPage();
  const onePage = ({ author, name }: HttpExchange["params"]) => {
    const pages = models();
    const one = pages === null ? closedModelsPage("../../") : pages.one(`${author}/${name}`);
    return one === null ? refuse("unknown_model", NO_SUCH_MODEL) : page(one);
  };
  const sums = dailySums(deps);
  const figures = routeFigures(deps);
  const { config, health, clock, lifecycle } = deps;
  const report = async <Shown>(show: (catalog: Catalog, routes: RouteStatus, day: DayReport) => Shown) => {
    const [day, speeds] = await Promise.all([sums(), figures()]);
    const hosts = health.report(config.catalog);
    return show(config.catalog, health, { now: clock.now(), sums: day, hosts, figures: speeds });
  };
  const statusNow = memoize(() => report(statusPage), STATUS_MS, clock);
  const statusJsonNow = memoize(() => report(statusAnswer), STATUS_MS, clock);
  return [
    openDocument("/", "text/plain", "Lists the addresses to start from", () => plainText(greeting(deps))),
    openDocument("/llms.txt", "text/plain", "Tells an agent the way from this address to a paid answer", () =>
      plainText(guide(deps.config.settings)),
    ),
    openDocument("/healthz", "text/plain", "Says that the process can serve (liveness)", () =>
      plainText(`ok\nversion ${RELEASE}, schema ${deps.config.schema}\n`),
    ),
    openDocument(
      "/readyz",
      "text/plain",
      "Says whether requests should be sent here (readiness)",
      () => readiness(lifecycle.unready()),
      { details: READINESS, answers: { 200: ["text/plain"], 503: ["text/plain"] } },
    ),
    openDocument("/favicon.ico", "image/svg+xml", "The icon for browsers", icon),
    openDocument("/docs/errors", "text/html", "The errors reference", () => page(errors)),
    openDocument("/status", "text/html", "The public status page of models and hosts", async () =>
      page(await statusNow()),
    ),
    operation("GET /status.json", STATUS, async () => await statusJsonNow()),
    openDocument(
      "/models",
      "text/html",
      "The models with what they take, their limits and prices, as a page",
      ({ request }) => page(models()?.list(modelQueryOf(queryOf(request))) ?? closed),
      { details: "Shown without a key where the operator says `catalog: public`." },
    ),
    openDocument(
      "/models/:author/:name",
      "text/html",
      "One model with its limits, its prices and calls that are ready to be copied, as a page",
      ({ params }) => onePage(params),
    ),
    openDocument("/dashboard", "text/html", "The dashboard", () => app("dashboard", "Dashboard", deps)),
    openDocument("/admin", "text/html", "The operator's page", () => app("admin", "Administration", deps), {
      details: "It asks for the admin token and shows nothing without it.",
    }),
    openDocument("/dashboard/:file", "text/javascript", "A file of the dashboard", appFile, {
      answers: { 200: ["text/javascript", "text/css"] },
    }),
  ];
}

const STATUS_MS = 1_000;

/** Made again when the configuration was read again, and every few seconds; null where they are not public. */
function modelsOf({ config, health, clock }: HttpDeps): () => ModelsPages | null {
  let made: { readonly of: Catalog; readonly at: number; readonly pages: ModelsPages } | null = null;
  return () => {
    const { baseUrl, catalogIsPublic } = config.settings;
    if (!catalogIsPublic) return null;
    const now = clock.now();
    const of = config.catalog;
    if (made === null || made.of !== of || now - made.at > MODELS_MS || now < made.at)
      made = { of, at: now, pages: new ModelsPages(of, health, baseUrl) };
    return made.pages;
  };
}

const NO_SUCH_MODEL = "No such model is served here. See the page /models.";

const MODELS_MS = 5_000;

/** The page itself holds nothing: what it shows, it asks for with the credential that its reader enters. */
async function app(name: "dashboard" | "admin", title: string, { apps }: HttpDeps): Promise<Response> {
  const { script, style } = await apps.entry(name);
  return page(makeAppPage(title, { script: `dashboard/${script}`, style: `dashboard/${style}` }));
}

async function appFile({ params, deps }: HttpExchange): Promise<Response | Refusal> {
  const file = await deps.apps.file(params.file ?? "");
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
  const { baseUrl, dashboardUrl } = deps.config.settings;
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

const READINESS =
  "It is 503 while the gateway starts, cannot record anything, or is stopping; the body says which.";
