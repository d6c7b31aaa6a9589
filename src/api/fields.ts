import { type TProperties, type TSchema, Type } from "@sinclair/typebox";

/**
 * Members of request bodies. Each `description` completes "`rpm_limit` must be …", which is the error of a caller who got
 * it wrong.
 */

/** A body, which has no other members. */
export const fieldsOf = <T extends TProperties>(members: T) =>
  Type.Object(members, { additionalProperties: false });

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
