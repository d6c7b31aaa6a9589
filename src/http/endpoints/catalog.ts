import { nameableIds, suggestion } from "../../catalog/closest-id.ts";
import { type CatalogEntry, catalogEntries, catalogEntry } from "../../catalog/entry.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { modelsBehind, unknownId, unknownModel } from "../../routing/naming.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { invalidField, readCount } from "../fields.ts";
import { bearerOrApiKeyOf, identify } from "../identity.ts";
import { ok, type Reply } from "../reply.ts";
import { CATALOG, MAX_MODELS } from "./catalog-schemas.ts";

/**
 * What can be called: as the gateway describes it, and as OpenAI's and Anthropic's clients expect it.
 * Contract §4.
 */
export const catalogEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/v1/catalog", anyOrigin: true, about: CATALOG.catalog, handle: catalog },
  { method: "GET", path: "/v1/models", anyOrigin: true, about: CATALOG.models, handle: models },
  { method: "GET", path: "/v1/models/:id", anyOrigin: true, about: CATALOG.model, handle: model },
  // An id holds a slash, which some clients escape and others do not.
  {
    method: "GET",
    path: "/v1/models/:id/:name",
    anyOrigin: true,
    about: CATALOG.modelByParts,
    handle: model,
  },
];

async function catalog(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  return ok({ object: "list", data: catalogEntries(deps.catalog(), deps.roads) });
}

async function models(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const stranger = await strangerTo(exchange, deps);
  if (stranger !== null) return stranger;
  const page = pageOf(catalogEntries(deps.catalog(), deps.roads), queryOf(exchange.request));
  if (refused(page)) return page;
  const data = page.entries.map(modelView);
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return ok({ object: "list", data, has_more: page.hasMore, first_id, last_id });
}

/** As Anthropic's clients ask for one; the whole list for OpenAI's, which know no pages. */
function pageOf(
  all: readonly CatalogEntry[],
  query: URLSearchParams,
): { readonly entries: readonly CatalogEntry[]; readonly hasMore: boolean } | Refusal {
  const limit = readCount(query, "limit", all.length, MAX_MODELS);
  if (refused(limit)) return limit;
  const [after, before] = [query.get("after_id"), query.get("before_id")];
  if (after !== null && before !== null)
    return invalidField("before_id", "Send either `after_id` or `before_id`.");
  const at = all.findIndex(({ id }) => id === (after ?? before));
  if (at === -1 && (after ?? before) !== null) {
    const param = after === null ? "before_id" : "after_id";
    return invalidField(param, `\`${param}\` must be the id of a model in the list.`);
  }
  const rest = before === null ? all.slice(at + 1) : all.slice(0, at);
  const entries = before === null ? rest.slice(0, limit) : rest.slice(-limit);
  return { entries, hasMore: entries.length < rest.length };
}

async function model(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const stranger = await strangerTo(exchange, deps);
  if (stranger !== null) return stranger;
  const { id, name } = exchange.params;
  const wanted = name === undefined ? id! : `${id}/${name}`;
  const catalog = deps.catalog();
  const suggest = (unknown: string) => suggestion(unknown, nameableIds(catalog), deps.settings().baseUrl);
  const unknown = unknownId(wanted, catalog);
  if (unknown !== null) return unknownModel(unknown, suggest);
  const behind = modelsBehind(wanted, catalog).map((one) => catalogEntry(one, deps.roads));
  if (behind.length === 0) return unknownModel(wanted, suggest);
  const [only] = behind;
  return ok(modelView(only!.id === wanted ? only! : together(wanted, behind)));
}

/** Of any that may serve: what holds whichever of them does. */
const together = (id: string, behind: readonly CatalogEntry[]): Shown => ({
  id,
  name: id,
  context_length: Math.min(...behind.map(({ context_length }) => context_length)),
  max_output_tokens: Math.min(...behind.map(({ max_output_tokens }) => max_output_tokens)),
});

async function strangerTo(exchange: Exchange, deps: HttpDeps): Promise<Refusal | null> {
  const who = await identify(exchange, deps, bearerOrApiKeyOf);
  return refused(who) ? who : null;
}

type Shown = Pick<CatalogEntry, "id" | "name" | "context_length" | "max_output_tokens">;

/**
 * Members of both clients' model, side by side. When a model was made is not known: both allow the epoch for
 * that. What a model can do is not known either, and Anthropic's clients allow null for that.
 */
const modelView = (entry: Shown) => ({
  id: entry.id,
  object: "model" as const,
  created: 0,
  owned_by: entry.id.split("/", 1)[0]!,
  type: "model" as const,
  display_name: entry.name,
  created_at: "1970-01-01T00:00:00Z",
  context_length: entry.context_length,
  max_output_tokens: entry.max_output_tokens,
  max_input_tokens: entry.context_length,
  max_tokens: entry.max_output_tokens,
  capabilities: null,
  line: null,
  lifecycle: "active" as const,
  deprecated_at: null,
  retires_at: null,
});
