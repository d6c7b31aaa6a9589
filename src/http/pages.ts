import { dashboardPage } from "./dashboard-page.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoint } from "./endpoint.ts";
import { errorsPage } from "./errors-page.ts";
import { page } from "./page.ts";
import { statusPage } from "./status-page.ts";

/** What a person who opens the address sees, and what a supervisor asks. */
export function pageEndpoints(deps: HttpDeps): Endpoint[] {
  const errors = errorsPage();
  return [
    { method: "GET", path: "/", handle: () => plainText(greeting(deps)) },
    { method: "GET", path: "/healthz", handle: () => plainText("ok\n") },
    {
      method: "GET",
      path: "/readyz",
      handle: () => (deps.ready() ? plainText("ready\n") : plainText("not ready\n", 503)),
    },
    { method: "GET", path: "/docs/errors", handle: () => page(errors) },
    { method: "GET", path: "/status", handle: () => page(statusPage(deps.catalog(), deps.roads)) },
    { method: "GET", path: "/dashboard", handle: () => page(dashboardPage(deps.settings().baseUrl)) },
  ];
}

const plainText = (text: string, status = 200): Response =>
  new Response(text, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
  });

function greeting(deps: HttpDeps): string {
  const { baseUrl, dashboardUrl } = deps.settings();
  return `Text generation gateway

Create a key:   curl -X POST ${baseUrl}/v1/keys
API address:    ${baseUrl}/v1
Dashboard:      ${dashboardUrl}
Errors:         ${baseUrl}/docs/errors
`;
}
