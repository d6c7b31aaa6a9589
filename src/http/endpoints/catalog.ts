import type { AnswerTo } from "../../api/about.ts";
import { CATALOG, type ModelAnswer } from "../../api/catalog.ts";
import { type Catalog, catalogAt } from "../../catalog/catalog.ts";
import { suggestion } from "../../catalog/closest-id.ts";
import { priceListOf } from "../../customers/keys/key.ts";
import { asksOpenTier, idMeantBy, modelsBehind, unknownModel } from "../../routing/naming.ts";
import { permittedModels } from "../../routing/route-filter.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import type { KeyPolicy } from "../../units/key-policy.ts";
import type { Identity } from "../authentication.ts";
import { availabilityOf, catalogEntries } from "../catalog-entries.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { type Answered, operation, type QueryOf } from "../operation.ts";
import { type JsonReply, written } from "../reply.ts";
import { modelView, namedModel, together } from "./model-view.ts";

/**
 * What can be called: as the gateway describes it, and as OpenAI's, Anthropic's and OpenRouter's clients
 * expect it. Contract §4.
 */
export function catalogEndpoints(): Endpoint[] {
  // One for each price list, as long as the configuration that it is of.
  const entriesOf = new WeakMap<Catalog, ListedEntries>();
  const modelsOf = new WeakMap<Catalog, ListedModels>();
  return [
    operation("GET /v1/catalog", CATALOG.catalog, ({ who }, deps) => {
      const { health } = deps;
      const of = catalogFor(who, deps);
      const policy = policyOf(who);
      if (policy) return entriesBody({ ...of, models: permittedModels(policy, of.models) }, deps);
      const availability = availabilityOf(of, health);
      let entries = entriesOf.get(of);
      if (entries === undefined || !availability.equals(entries.availability)) {
        entries = { availability, reply: written(entriesBody(of, deps)) };
        entriesOf.set(of, entries);
      }
      return entries.reply;
    }),
    operation("GET /v1/models", CATALOG.models, ({ who, query }, deps) => {
      const { baseUrl } = deps.config.settings;
      const of = catalogFor(who, deps);
      let listed = modelsOf.get(of);
      if (listed?.baseUrl !== baseUrl) {
        listed = { baseUrl, views: viewsOf(of, deps), whole: null };
        modelsOf.set(of, listed);
      }
      const views = reachable(listed.views, who, of);
      const page = pageOf(views, query, baseUrl);
      if (refused(page) || page.data.length < listed.views.length) return page;
      listed.whole ??= written(page);
      return listed.whole;
    }),
    operation("GET /v1/models/:id", CATALOG.model, ({ who, params: { id } }, deps) => model(id, who, deps)),
    // An id holds a slash, which some clients escape and others do not.
    operation("GET /v1/models/:id/:name", CATALOG.modelByParts, ({ who, params: { id, name } }, deps) =>
      model(`${id}/${name}`, who, deps),
    ),
  ];
}

/** At the prices that the key is charged, or the balance of an owner; strangers see the plain prices where the catalog is public. */
function catalogFor(who: Identity | null, { config }: HttpDeps): Catalog {
  if (who === null) return config.catalog;
  return catalogAt(config.catalog, who.kind === "key" ? priceListOf(who) : who.balance.priceList);
}

const policyOf = (who: Identity | null): KeyPolicy | null =>
  who?.kind === "key" ? (who.key.policy ?? null) : null;

const entriesBody = (of: Catalog, { health }: HttpDeps): AnswerTo<typeof CATALOG.catalog> => ({
  object: "list",
  data: catalogEntries(of, health),
  price_list: of.priceList,
  price_version: of.priceVersion,
});

/** All models as `GET /v1/catalog` lists them: 340 of them take half a millisecond. */
interface ListedEntries {
  readonly availability: Buffer;
  readonly reply: Answered<typeof CATALOG.catalog>;
}

/** All models as they are listed: 340 of them take 5 ms, and anybody may ask for them where the catalog is public. */
interface ListedModels {
  readonly baseUrl: string;
  readonly views: readonly ModelAnswer[];
  /** Once a client has read all of them at once. */
  whole: JsonReply<AnswerTo<typeof CATALOG.models>> | null;
}

/** Without the models for which the key's policy leaves no host. */
function reachable(views: readonly ModelAnswer[], who: Identity | null, { models }: Catalog) {
  const policy = policyOf(who);
  if (!policy) return views;
  const permitted = permittedModels(policy, models);
  return views.filter(({ id }) => permitted.has(id));
}

const viewsOf = ({ models }: Catalog, { health, config }: HttpDeps): readonly ModelAnswer[] =>
  [...models.values()].map((one) => modelView(namedModel(one, health), config.settings.baseUrl));

/**
 * As Anthropic's clients ask for one, by ids, or OpenRouter's, by offset; the whole list for OpenAI's, which
 * know no pages.
 */
function pageOf(
  all: readonly ModelAnswer[],
  query: QueryOf<typeof CATALOG.models>,
  baseUrl: string,
): AnswerTo<typeof CATALOG.models> | Refusal {
  const { limit: most, after_id: after, before_id: before, offset } = query;
  const limit = most ?? all.length;
  if (after !== null && before !== null)
    return invalidField("before_id", "Send either `after_id` or `before_id`.");
  const cursor = after ?? before;
  if (offset !== null && cursor !== null)
    return invalidField("offset", "Send `offset` without `after_id` and `before_id`.");
  const at = offset === null ? all.findIndex(({ id }) => id === cursor) : offset - 1;
  if (at === -1 && cursor !== null) {
    const param = after === null ? "before_id" : "after_id";
    return invalidField(param, `\`${param}\` must be the id of a model in the list.`);
  }
  const rest = before === null ? all.slice(at + 1) : all.slice(0, at);
  const models = before === null ? rest.slice(0, limit) : rest.slice(-limit);
  const end = before === null ? at + 1 + models.length : at;
  const next = end < all.length ? `${baseUrl}/v1/models?limit=${limit}&offset=${end}` : null;
  return {
    object: "list",
    data: models,
    has_more: models.length < rest.length,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
    links: { next },
    total_count: all.length,
  };
}

function model(name: string, who: Identity | null, deps: HttpDeps): Answered<typeof CATALOG.model> {
  const { baseUrl } = deps.config.settings;
  const catalog = catalogFor(who, deps);
  const suggest = (unknown: string) => suggestion(unknown, catalog, baseUrl);
  const id = idMeantBy(name, catalog, suggest);
  if (refused(id)) return id;
  const behind = modelsBehind(id, catalog).map((one) => namedModel(one, deps.health));
  const [only] = behind;
  if (only === undefined) return unknownModel(id, suggest);
  const named = only.id === id ? only : together(id, behind, asksOpenTier(id, catalog));
  return modelView(named, baseUrl);
}
