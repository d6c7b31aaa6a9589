import type { Static, TInteger, TObject, TSchema, TString } from "@sinclair/typebox";
import { Value, type ValueError } from "@sinclair/typebox/value";
import { usd } from "../api/schema.ts";
import type { EpochMs } from "../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { instantOf } from "../units/instant.ts";
import { type NanoUsd, nanoFromUsd } from "../units/usd.ts";
import { readControl } from "./control-body.ts";
import type { HttpExchange } from "./exchange.ts";

/**
 * Reads a control-plane body. Each member's `description` completes the sentence "`rpm_limit` must be …",
 * which is what the error says to the caller.
 */
export async function readFields<T extends TObject>(
  schema: T,
  exchange: HttpExchange,
): Promise<Static<T> | Refusal> {
  const body = await readControl(exchange);
  if (refused(body)) return body;
  const sender = await exchange.reauthenticate?.();
  if (refused(sender)) return sender;
  const error = Value.Errors(schema, body).First();
  return error === undefined ? (body as Static<T>) : wrongField(error, schema, body);
}

/** As much of what a caller sent as an answer repeats. */
export const repeated = (sent: string): string => sent.slice(0, MAX_REPEATED);

const MAX_REPEATED = 64;

/** Whether a media type that clients have to ask for is asked for by its name. */
export const accepts = ({ headers }: Request, type: string): boolean =>
  (headers.get("accept") ?? "")
    .split(",")
    .map((range) =>
      range
        .toLowerCase()
        .split(";")
        .map((part) => part.trim()),
    )
    .some(([name, ...parameters]) => name === type && !parameters.some((one) => /^q=0(\.0*)?$/.test(one)));

function wrongField(error: ValueError, schema: TObject, body: unknown): Refusal {
  const field = error.path.split("/")[1]?.replaceAll("~1", "/").replaceAll("~0", "~");
  if (field === undefined) return refuse("invalid_request", "The body must be a JSON object.");
  const name = repeated(field);
  const expected = (schema.properties as Record<string, TSchema>)[field];
  if (expected === undefined || !Object.hasOwn(schema.properties, field)) {
    const known = Object.keys(schema.properties).join(", ");
    return invalidField(name, `\`${name}\` is not a field of this request, which takes: ${known}.`);
  }
  const given = Object.hasOwn(body as object, field) ? (body as Record<string, unknown>)[field] : undefined;
  return unfit(field, String(expected.description), given);
}

/** Says what a field must be, and what it is; undefined where it is missing. */
const unfit = (param: string, expected: string, given: unknown): Refusal =>
  invalidField(
    param,
    given === undefined
      ? `\`${param}\` is missing; it must be ${expected}.`
      : `\`${param}\` must be ${expected}; it is ${shown(given)}.`,
  );

function shown(given: unknown): string {
  if (Array.isArray(given)) return `a list of ${given.length}`;
  if (typeof given === "object" && given !== null) return "an object";
  if (typeof given !== "string" || given.length <= MAX_REPEATED) return JSON.stringify(given);
  return `${JSON.stringify(repeated(given))}…, of ${given.length} characters`;
}

/** Reads a query as declared. What is not named is its schema's default, or null. */
export function readQuery(
  schemas: Readonly<Record<string, TSchema>>,
  query: URLSearchParams,
): Readonly<Record<string, unknown>> | Refusal {
  const read: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(schemas)) {
    const given = query.get(name);
    const value = given === null ? (schema.default ?? null) : readParameter(name, given, schema);
    if (refused(value)) return value;
    read[name] = value;
  }
  return read;
}

const MAX_COUNT = 999_999_999;

function readParameter(name: string, given: string, schema: TSchema): string | number | Refusal {
  if (schema.type === "number") {
    const value = /^\d{1,12}(\.\d{1,9})?$/.test(given) ? Number(given) : -1;
    return value >= 0 ? value : unfit(name, "a number of 0 or more with at most 9 decimals", given);
  }
  if (schema.type === "integer") {
    const { minimum = 0, maximum = MAX_COUNT } = schema as TInteger;
    const value = /^\d{1,9}$/.test(given) ? Number(given) : -1;
    const fits = value >= minimum && value <= maximum;
    return fits ? value : unfit(name, `a whole number from ${minimum} to ${maximum}`, given);
  }
  const { pattern, maxLength = Number.MAX_SAFE_INTEGER } = schema as TString;
  if (given.length > maxLength || (pattern !== undefined && !new RegExp(pattern).test(given)))
    return unfit(name, String(schema.description), given);
  const known = schema.enum as readonly string[] | undefined;
  return known === undefined || known.includes(given)
    ? given
    : unfit(name, `one of ${known.join(", ")}`, given);
}

/** An amount that has the form of `usd`, as money. */
export const readUsd = (param: string, amount: number): NanoUsd | Refusal =>
  nanoFromUsd(amount) ?? unfit(param, `${usd.description}, at most 8,000,000`, amount);

/** An instant written in ISO 8601 with its zone. */
export function readTime(param: string, value: string): EpochMs | Refusal {
  return (
    instantOf(value) ?? unfit(param, "a time in ISO 8601 with a time zone, like 2030-01-31T12:00:00Z", value)
  );
}

/** The times `since` and `until` of a query; null for those that it does not name. */
export function readSpan({ since, until }: Record<"since" | "until", string | null>) {
  const from = since === null ? null : readTime("since", since);
  if (refused(from)) return from;
  const to = until === null ? null : readTime("until", until);
  return refused(to) ? to : { since: from, until: to };
}
