import {
  type ArrayOptions,
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  Type,
} from "@sinclair/typebox";
import { ERROR_CODES } from "../units/errors/codes.ts";

/**
 * Pieces of schemas. Objects are closed: a member that no schema has is refused in a body, and in an answer it fails the
 * tests, so none goes out undocumented. In bodies, each `description` completes "`rpm_limit` must be …", which is the error
 * of a caller who got it wrong.
 */
export const object = <T extends TProperties>(members: T): TObject<T> =>
  Type.Object(members, { additionalProperties: false });

/** One that the API's document refers to by a name. */
export const namedAnswer = <T extends TProperties>($id: string, members: T): TObject<T> =>
  Type.Object(members, { additionalProperties: false, $id });

/** Members that a description explains. */
export const string = (description: string) => Type.String({ description });
export const boolean = (description: string) => Type.Boolean({ description });
export const number = (description: string, bounds: { minimum?: number } = {}) =>
  Type.Number({ ...bounds, description });
export const integer = (description: string, bounds: { minimum?: number } = {}) =>
  Type.Integer({ ...bounds, description });

export const orNone = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const time = Type.String({ format: "date-time" });
export const amountUsd = number("USD, at most 9 decimals");
/** Sums that may exceed what a JSON number holds exactly. */
export const nanoText = Type.String({ pattern: "^-?\\d+$", description: "nano-dollars, as text" });
export const count = Type.Integer({ minimum: 0 });

/** A list that nobody changes who reads it. */
export const several = <T extends TSchema>(item: T, options: ArrayOptions = {}) =>
  Type.Unsafe<readonly Static<T>[]>(Type.Array(item, options));

export const texts = several(Type.String());

export const oneOf = <const T extends readonly string[]>(values: T, description?: string) =>
  Type.Unsafe<T[number]>({
    type: "string",
    enum: values,
    ...(description === undefined ? {} : { description }),
  });

const HELD_AT = ["all_processes", "all_processes_at_most"] as const;
export type HeldAt = (typeof HELD_AT)[number];

/** Next to what is held, and what is available without it. */
export const heldAt = oneOf(
  HELD_AT,
  "whose open requests are counted as held, and left out of what is available: `all_processes_at_most` where one of several workers or nodes does not answer, so that all that it was granted and may still spend counts as held",
);

export const listOf = <T extends TSchema>(item: T) =>
  object({ object: Type.Literal("list"), data: several(item) });

/** A page of a list: the next one is asked for with `before`, the last id of this one. */
export const pageOf = <T extends TSchema>(item: T) =>
  object({ object: Type.Literal("list"), data: several(item), has_more: Type.Boolean() });

/** A page that says where the next one begins: it may be short, even empty, and not the last. */
export const pageBefore = <T extends TSchema>(item: T) =>
  object({
    ...pageOf(item).properties,
    next_before: orNone(string("the `before` of the next page; null on the last one")),
  });

/** What is read of a list, or of a page of one. */
export interface List<Row> {
  readonly data: readonly Row[];
  readonly has_more: boolean;
}

/** A query parameter that is `fallback` where it is not named; others are null then. */
export const unlessNamed = <T extends TSchema>(
  fallback: Static<T>,
  schema: T,
): T & { default: Static<T> } => ({
  ...schema,
  default: fallback,
});

/** The query of such a list. Most have rows that take some work each, and so few of them. */
export const pageQuery = (fallback = 50, max = 200) => ({
  limit: unlessNamed(fallback, Type.Integer({ minimum: 1, maximum: max, description: "rows per page" })),
  before: string("the last id of the previous page"),
});

export const ErrorAnswer = namedAnswer("Error", {
  error: object({
    message: string("for people; ends with the URL of the code in the errors reference"),
    type: oneOf(["invalid_request_error", "api_error", "rate_limit_error"]),
    code: oneOf(ERROR_CODES),
    param: orNone(string("the field at fault")),
    details: Type.Optional(
      Type.Object({}, { description: "for Anthropic's clients: why `thread` is refused" }),
    ),
  }),
  type: Type.Optional(Type.Literal("error", { description: "on /v1/messages only" })),
  request_id: Type.Optional(string("on /v1/messages only")),
});
export type ErrorAnswer = Static<typeof ErrorAnswer>;

/** One of a few words. */
export const choice = <const T extends readonly string[]>(words: T, of = `one of ${words.join(", ")}`) =>
  Type.Unsafe<T[number]>(
    Type.Union(
      words.map((word) => Type.Literal(word)),
      { description: of },
    ),
  );

/** The schema with null allowed and its meaning said. */
export const orNull = <T extends TSchema>(schema: T, meaning: string) =>
  Type.Union([schema, Type.Null()], { description: `${schema.description}, or null for ${meaning}` });

export const text = (maxLength: number, what: string) =>
  Type.String({ minLength: 1, maxLength, description: `${what} of 1 to ${maxLength} characters` });

export const wholeNumber = Type.Integer({
  minimum: 0,
  maximum: 1_000_000_000_000,
  description: "a whole number of 0 or more",
});

export const usd = Type.Number({
  minimum: 0,
  description: "an amount in USD of 0 or more with at most 9 decimals",
});
