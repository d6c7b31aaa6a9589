import type { HttpDeps, HttpSettings } from "../deps.ts";
import { type Endpoint, isServed } from "../endpoint.ts";
import { apiPage } from "./api-page.ts";
import { apiDocument } from "./openapi.ts";
import { type HtmlPage, openDocument, page } from "./page.ts";

/** The document of the endpoints that are served, these two among them, for programs and for people. */
export function apiDocEndpoints(others: readonly Endpoint[], deps: HttpDeps): Endpoint[] {
  let made: Made | null = null;
  const current = (): Made => {
    const { settings } = deps.config;
    if (made?.of !== settings) {
      const document = apiDocument(
        [...others, ...docs].filter((one) => isServed(one, deps)),
        settings.baseUrl,
      );
      made = { of: settings, json: JSON.stringify(document), page: apiPage(document) };
    }
    return made;
  };
  const docs: Endpoint[] = [
    openDocument(
      "/openapi.json",
      "application/json",
      "This document",
      () => new Response(current().json, { headers: { "content-type": "application/json" } }),
    ),
    openDocument("/docs/api", "text/html", "This document as a page", () => page(current().page)),
  ];
  return docs;
}

/** Anybody may ask for them, so they are only made again after a reload. */
interface Made {
  readonly of: HttpSettings;
  readonly json: string;
  readonly page: HtmlPage;
}
