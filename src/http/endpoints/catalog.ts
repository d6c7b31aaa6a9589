import { CATALOG, MAX_MODELS } from "../../api/catalog.ts";
import type { Model } from "../../catalog/catalog.ts";
import { suggestion } from "../../catalog/closest-id.ts";
import { catalogEntries } from "../../catalog/entry.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { asksOpenTier, idMeantBy, modelsBehind, unknownModel } from "../../routing/naming.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { invalidField, readCount } from "../fields.ts";
import { bearerOf, bearerOrApiKeyOf, identify, isAnonymous } from "../identity.ts";
import { ok, type Reply } from "../reply.ts";
import { modelView, namedModel, together } from "./model-view.ts";

/**
 * What can be called: as the gateway describes it, and as OpenAI's, Anthropic's and OpenRouter's clients
 * expect it. Contract §4.
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
  const stranger = await strangerTo(exchange, deps, bearerOf);
  if (stranger !== null) return stranger;
  return ok({ object: "list", data: catalogEntries(deps.catalog(), deps.routeState) });
}

async function models(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const stranger = await strangerTo(exchange, deps);
  if (stranger !== null) return stranger;
  const { baseUrl } = deps.settings();
  const all = [...deps.catalog().models.values()];
  const page = pageOf(all, queryOf(exchange.request));
  if (refused(page)) return page;
  const data = page.models.map((one) => modelView(namedModel(one, deps.routeState), baseUrl));
  return ok({
    object: "list",
    data,
    has_more: page.hasMore,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    links: { next: page.next === null ? null : `${baseUrl}/v1/models?${page.next}` },
    total_count: all.length,
  });
}

interface Page {
  readonly models: readonly Model[];
  readonly hasMore: boolean;
  /** The query of the page behind this one. */
  readonly next: string | null;
}

/**
 * As Anthropic's clients ask for one, by ids, or OpenRouter's, by offset; the whole list for OpenAI's, which
 * know no pages.
 */
function pageOf(all: readonly Model[], query: URLSearchParams): Page | Refusal {
  const limit = readCount(query, "limit", all.length, MAX_MODELS);
  if (refused(limit)) return limit;
  const [after, before, offset] = [query.get("after_id"), query.get("before_id"), query.get("offset")];
  if (after !== null && before !== null)
    return invalidField("before_id", "Send either `after_id` or `before_id`.");
  const cursor = after ?? before;
  if (offset !== null && (cursor !== null || !/^\d{1,9}$/.test(offset)))
    return invalidField("offset", "`offset` must be a whole number, without `after_id` and `before_id`.");
  const at = offset === null ? all.findIndex(({ id }) => id === cursor) : Number(offset) - 1;
  if (at === -1 && cursor !== null) {
    const param = after === null ? "before_id" : "after_id";
    return invalidField(param, `\`${param}\` must be the id of a model in the list.`);
  }
  const rest = before === null ? all.slice(at + 1) : all.slice(0, at);
  const models = before === null ? rest.slice(0, limit) : rest.slice(-limit);
  const hasMore = models.length < rest.length;
  const end = before === null ? at + 1 + models.length : at;
  return { models, hasMore, next: end < all.length ? `limit=${limit}&offset=${end}` : null };
}

async function model(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const stranger = await strangerTo(exchange, deps);
  if (stranger !== null) return stranger;
  const { id, name } = exchange.params;
  const { baseUrl } = deps.settings();
  const catalog = deps.catalog();
  const suggest = (unknown: string) => suggestion(unknown, catalog, baseUrl);
  const wanted = idMeantBy(name === undefined ? id! : `${id}/${name}`, catalog, suggest);
  if (refused(wanted)) return wanted;
  const behind = modelsBehind(wanted, catalog).map((one) => namedModel(one, deps.routeState));
  const [only] = behind;
  if (only === undefined) return unknownModel(wanted, suggest);
  const named = only.id === wanted ? only : together(wanted, behind, asksOpenTier(wanted, catalog));
  return ok(modelView(named, baseUrl));
}

/** Why a request may not see what is served. A credential that is wrong is refused wherever none is needed. */
async function strangerTo(
  exchange: Exchange,
  deps: HttpDeps,
  secretOf = bearerOrApiKeyOf,
): Promise<Refusal | null> {
  if (deps.settings().catalogIsPublic && isAnonymous(exchange.request)) return null;
  const who = await identify(exchange, deps, secretOf);
  return refused(who) ? who : null;
}
