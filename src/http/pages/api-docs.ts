import type { Feature } from "../../api/about.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, isServed } from "../endpoint.ts";
import { apiPage } from "./api-page.ts";
import { apiDocument } from "./openapi.ts";
import { type HtmlPage, openDocument, page } from "./page.ts";

/** The document of the endpoints that are served, these two among them, for programs and for people. */
export function apiDocEndpoints(others: readonly Endpoint[], deps: HttpDeps): Endpoint[] {
  let made: Made | null = null;
  const current = (): Made => {
    const { baseUrl, features } = deps.config.settings;
    if (made?.baseUrl !== baseUrl || made.features !== features) {
      const served = [...others, ...docs].filter((endpoint) => isServed(endpoint, deps));
      made = { baseUrl, features, ...makeDocs(baseUrl, served) };
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
  readonly baseUrl: string;
  readonly features: ReadonlySet<Feature>;
  readonly json: string;
  readonly page: HtmlPage;
}

function makeDocs(baseUrl: string, endpoints: readonly Endpoint[]): Pick<Made, "json" | "page"> {
  const document = apiDocument(endpoints, baseUrl);
  return { json: JSON.stringify(document), page: apiPage(document) };
}
