import type { Static, TSchema } from "@sinclair/typebox";
import type { OperatorRole } from "../units/operator-roles.ts";

/**
 * Describes an endpoint for the API's document (http/pages/openapi). It is declared next to the handler, with
 * the schemas that the handler reads its body with, and the tests check every answer of the running server
 * against it.
 */
export interface About {
  /** One line that begins with a verb: "Creates a key". */
  readonly summary: string;
  /** What else a caller should know, in whole sentences. */
  readonly details?: string;
  /** Whose credential opens it; empty: no header is needed. */
  readonly who: readonly Credential[];
  /** The least role of an operator that may; where it is left out, `read` for GET and `operate` for all else. */
  readonly role?: OperatorRole;
  /** Pages of other origins may call it; see http/cors. */
  readonly anyOrigin?: boolean;
  /** The key may also be sent as `x-api-key`: Anthropic's clients can send nothing else. */
  readonly alsoXApiKey?: boolean;
  /** Where the operator shows the catalog to everybody, no credential is needed; one that is wrong is refused all the same. */
  readonly opensWithCatalog?: boolean;
  /** Completes "An API key cannot …", for those whose credential is of another kind. */
  readonly act?: string;
  /** Served only where the configuration has it; else the path is unknown, and the document silent. */
  readonly needs?: Feature;
  /** Query parameters, all of them optional. */
  readonly query?: Readonly<Record<string, TSchema>>;
  /** Headers of its own, all of them optional. */
  readonly headers?: Readonly<Record<string, TSchema>>;
  /** Schema of the JSON body that it reads. */
  readonly body?: TSchema;
  /** What it answers with when it does not refuse, by status: JSON, or other media types. */
  readonly answers: Readonly<Record<number, Content>>;
  /** What else 200 answers with, where `Accept` asks for it. */
  readonly alsoAs?: readonly MediaType[];
}

/** Endpoints that have these members in common, each where it has no such member itself. */
export const endpointsWith = <const Common extends Partial<About>, const Rows extends Record<string, object>>(
  common: Common,
  rows: Rows,
) =>
  Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, { ...common, ...row }])) as unknown as {
    readonly [Name in keyof Rows]: Omit<Common, keyof Rows[Name]> & Rows[Name];
  };

/** What an operator may turn on, by the setting. */
export type Feature = "payments" | "payments.stripe" | "receipts.sign";

/** The JSON that an endpoint answers with when it does not refuse; undefined where there is no body. */
export type AnswerTo<A extends About> = {
  [S in keyof A["answers"]]: A["answers"][S] extends TSchema ? Static<A["answers"][S]> : undefined;
}[keyof A["answers"]];

/** A schema: JSON of that form. Null: no body. Strings: media types. */
export type Content = TSchema | null | readonly MediaType[];

export type MediaType =
  | "application/jose"
  | "application/json"
  | "image/svg+xml"
  | "text/css"
  | "text/event-stream"
  | "text/html"
  | "text/javascript"
  | "text/plain";

/**
 * `none`: no header is needed, though one may do more. `key`: an API key. `owner`: the recovery secret, or a
 * session. `admin`: the operator's token.
 */
export type Credential = "none" | "key" | "owner" | "session" | "admin";
