import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { About, AnswerTo, Credential } from "../api/about.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";
import { notAdmin, roleFor } from "./admin/token.ts";
import {
  bearerOf,
  bearerOrApiKeyOf,
  type Identity,
  identify,
  isAnonymous,
  type KeyIdentity,
  keysOnly,
  type OwnerIdentity,
  ownersOnly,
  type SessionIdentity,
  sessionsOnly,
} from "./authentication.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoint } from "./endpoint.ts";
import { type HttpExchange, queryOf } from "./exchange.ts";
import { readFields, readQuery } from "./fields.ts";
import type { JsonReply } from "./reply.ts";

/**
 * An endpoint that is what its declaration says: whose credential opens it, what it reads, what it answers.
 * Credentials come first, because a caller without one learns nothing else; then the query, and the body.
 */
export function operation<P extends string, A extends About>(
  name: `${Endpoint["method"]} ${P}`,
  about: A,
  handle: (request: OperationRequest<P, A>, deps: HttpDeps) => Answered<A> | Promise<Answered<A>>,
): Endpoint {
  const [method, path] = name.split(" ") as [Endpoint["method"], string];
  return {
    method,
    path,
    about,
    async handle(exchange) {
      const { deps } = exchange;
      const isFree = about.who.length === 0 || isOpened(about, exchange.request, deps);
      const who = isFree ? null : await callerOf(method, about, exchange);
      if (refused(who)) return who;
      const query = readQuery(about.query ?? {}, queryOf(exchange.request));
      if (refused(query)) return query;
      const fields = about.body === undefined ? null : await readFields(about.body as TObject, exchange);
      if (refused(fields)) return fields;
      const { params } = exchange;
      const request = { who, query, fields, params, exchange } as unknown as OperationRequest<P, A>;
      return handle(request, deps) as Promise<object>;
    },
  };
}

const isOpened = ({ opensWithCatalog }: About, request: Request, { config }: HttpDeps): boolean =>
  opensWithCatalog === true && config.settings.catalogIsPublic && isAnonymous(request);

/** A request to the endpoint, once all of it is known to be as declared. */
export interface OperationRequest<P extends string, A extends About> {
  /** Null for the operator, and where no credential is needed. */
  readonly who: Caller<A["who"][number]>;
  readonly query: { readonly [Q in keyof A["query"]]: Value<A["query"][Q]> };
  readonly fields: A["body"] extends TSchema ? Static<A["body"]> : null;
  readonly params: OperationParams<P>;
  readonly exchange: HttpExchange;
}

/** The parsed query of requests to such an endpoint, with its defaults. */
export type QueryOf<A extends About> = OperationRequest<string, A>["query"];

export type Answered<A extends About> =
  | AnswerTo<A>
  | JsonReply<AnswerTo<A>>
  | Refusal
  | (A extends { alsoAs: unknown } | { answers: { 200: readonly string[] } } ? Response : never);

type Caller<C extends Credential> = "owner" extends C
  ? "key" extends C
    ? Identity
    : OwnerIdentity
  : "session" extends C
    ? SessionIdentity
    : "key" extends C
      ? KeyIdentity
      : null;

type Value<S> = S extends TSchema ? Static<S> | (S extends { default: unknown } ? never : null) : never;

/** `:id` in a path. */
type OperationParams<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [N in Name]: string } & OperationParams<Rest>
  : P extends `${string}:${infer Name}`
    ? { readonly [N in Name]: string }
    : object;

async function callerOf(
  method: Endpoint["method"],
  about: About,
  exchange: HttpExchange,
): Promise<Identity | Refusal | null> {
  const { who, act = "do this", alsoXApiKey } = about;
  if (who.includes("admin")) return notAdmin(exchange, roleFor({ method, about }));
  const caller = await identify(exchange, alsoXApiKey === true ? bearerOrApiKeyOf : bearerOf);
  if (refused(caller)) return caller;
  if (caller.kind === "key") {
    if (who.includes("key")) return caller;
    return who.includes("owner") ? ownersOnly(act) : sessionsOnly(act);
  }
  if (who.includes("owner") || (caller.by === "session" && who.includes("session"))) return caller;
  return who.includes("key") ? keysOnly(act) : sessionsOnly(act);
}
