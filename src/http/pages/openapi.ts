import type { TSchema } from "@sinclair/typebox";
import type { About, Content, Credential, MediaType } from "../../api/about.ts";
import { ErrorAnswer } from "../../api/schema.ts";
import { roleFor } from "../admin/token.ts";
import type { Endpoint } from "../endpoint.ts";

/**
 * The table of endpoints as an OpenAPI 3.1 document. Nothing is written here by hand that an endpoint could
 * say: what each takes and answers is its `about`.
 */
export function apiDocument(endpoints: readonly Endpoint[], baseUrl: string) {
  const schemas: Record<string, unknown> = {};
  const paths: Record<string, Record<string, Operation>> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = {
      ...paths[path],
      [endpoint.method.toLowerCase()]: operation(endpoint, path, schemas),
    };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Text generation gateway",
      version: "1",
      summary: "One address for text generation on many hosts, paid from prepaid credit.",
      description: DESCRIPTION,
    },
    servers: [{ url: baseUrl }],
    tags: tagsOf(paths),
    paths,
    components: { schemas, securitySchemes: SECURITY },
  };
}

/** `paths` by path, then by method in lower case. */
export type ApiDocument = ReturnType<typeof apiDocument>;

export type Operation = ReturnType<typeof operation>;

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly schema: unknown;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: object;
  readonly content?: MediaTypes;
}

type MediaTypes = Readonly<Record<string, { readonly schema: unknown }>>;

const DESCRIPTION =
  "Every error is an object with message, type, code and param; the message ends with the URL of its code in the errors reference. Every response under /v1 carries its receipt id in the header x-gateway-receipt. Amounts are in USD, times in ISO 8601. A session acts on its account's first balance, or on the one that the header x-gateway-balance names. A path that begins with /v1/v1/ is served like the one without the first /v1, for clients that add /v1 themselves.";

const SECURITY = {
  key: { type: "http", scheme: "bearer", description: "An API key, or-live-…" },
  owner: {
    type: "http",
    scheme: "bearer",
    description: "An owner's credential: the recovery secret of the balance, or a session.",
  },
  session: {
    type: "http",
    scheme: "bearer",
    description:
      "A session, or-sess-…; the gateway's own pages send it in the cookie __Host-session instead.",
  },
  admin: {
    type: "http",
    scheme: "bearer",
    description:
      "The admin token, or the token of an operator with the role that is named, or a higher one: read, operate, admin.",
  },
} as const satisfies Record<Exclude<Credential, "none">, object>;

function operation({ method, path, about }: Endpoint, template: string, schemas: Schemas) {
  const parameters = [...pathParameters(template), ...optionalParameters(about, schemas)];
  return {
    operationId: operationId(method, path) + (isPage(about) ? "Page" : ""),
    tags: [tagOf(path)],
    summary: about.summary,
    ...(about.details === undefined ? {} : { description: about.details }),
    security: about.who.map((credential) =>
      credential === "none"
        ? {}
        : { [credential]: credential === "admin" ? [roleFor({ method, about })] : [] },
    ),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(about.body === undefined ? {} : { requestBody: requestBody(about.body, schemas) }),
    responses: answers(about, template, schemas),
  };
}

/** `/models` is a page, and `/v1/models` is not. */
const isPage = ({ answers }: About): boolean =>
  Array.isArray(answers[200]) && answers[200].includes("text/html");

/** GET /v1/keys/:id → getKeysId: stable while the path is. */
const operationId = (method: string, path: string): string =>
  method.toLowerCase() +
  path
    .replace(/^\/v1\//, "/")
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");

/** The first word of the path; pages and probes, which belong to no resource, share one. */
function tagOf(path: string): string {
  const [, first = "", second = ""] = path.split("/");
  if (first === "admin" && second !== "") return "admin";
  if (first !== "v1") return "service";
  return GENERATION.has(second) ? "generation" : second;
}

const GENERATION = new Set(["chat", "responses", "messages"]);

const tagsOf = (paths: Record<string, Record<string, Operation>>) =>
  [
    ...new Set(Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(({ tags }) => tags))),
  ].map((name) => ({ name }));

const pathParameters = (template: string): Parameter[] =>
  [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));

const optionalParameters = ({ query = {}, headers = {} }: About, schemas: Schemas): Parameter[] =>
  (["query", "header"] as const).flatMap((location) =>
    Object.entries(location === "query" ? query : headers).map(([name, schema]) => ({
      name,
      in: location,
      required: false,
      schema: referring(schema, schemas),
    })),
  );

const requestBody = (body: TSchema, schemas: Schemas) => ({
  // An empty body counts as `{}`.
  required: ((body.required as unknown[] | undefined) ?? []).length > 0,
  content: { "application/json": { schema: referring(body, schemas) } },
});

function answers(
  { answers: served, alsoAs = [] }: About,
  template: string,
  schemas: Schemas,
): Record<string, ResponseObject> {
  const headers = /^\/(v1|admin)\//.test(template) ? { headers: RECEIPT_HEADER } : {};
  const good = Object.entries(served).map(([status, content]) => [
    status,
    {
      description: STATUS[status] ?? "Response",
      ...headers,
      ...contentOf(content, schemas, status === "200" ? alsoAs : []),
    },
  ]);
  const refused = {
    description: "An error; its code says which.",
    ...headers,
    content: { "application/json": { schema: referring(ErrorAnswer, schemas) } },
  };
  return { ...Object.fromEntries(good), default: refused };
}

const STATUS: Readonly<Record<string, string>> = {
  200: "Done",
  201: "Created",
  202: "Accepted",
  204: "Done; no body",
  302: "Found elsewhere",
  503: "Not ready",
};

const RECEIPT_HEADER = {
  "x-gateway-receipt": { description: "The id of the request's receipt", schema: { type: "string" } },
};

function contentOf(
  content: Content,
  schemas: Schemas,
  alsoAs: readonly MediaType[],
): { content?: MediaTypes } {
  if (content === null) return {};
  if (Array.isArray(content)) return { content: opaque(content) };
  const json = { schema: referring(content as TSchema, schemas) };
  return { content: { "application/json": json, ...opaque(alsoAs) } };
}

const opaque = (types: readonly MediaType[]): MediaTypes =>
  Object.fromEntries(
    types.map((type) => [type, { schema: { type: type === "application/json" ? "object" : "string" } }]),
  );

type Schemas = Record<string, unknown>;

/** The schema as plain JSON, with each part that has a name moved to the components. */
function referring(schema: unknown, schemas: Schemas): unknown {
  if (Array.isArray(schema)) return schema.map((part) => referring(part, schemas));
  if (typeof schema !== "object" || schema === null) return schema;
  const { $id, ...members } = schema as { $id?: string };
  const plain = Object.fromEntries(
    Object.entries(members).map(([name, part]) => [name, referring(part, schemas)]),
  );
  if ($id === undefined) return plain;
  schemas[$id] = plain;
  return { $ref: `#/components/schemas/${$id}` };
}
