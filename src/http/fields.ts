import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { Value, type ValueError } from "@sinclair/typebox/value";
import { usd } from "../api/fields.ts";
import { type Refusal, refuse, refused } from "../errors/refusal.ts";
import type { EpochMs } from "../units/clock.ts";
import { type NanoUsd, nanoFromUsd } from "../units/usd.ts";
import { readControl } from "./control-body.ts";
import type { HttpDeps } from "./deps.ts";
import type { Exchange } from "./endpoint.ts";

/**
 * Reads a control-plane body. Each member's `description` completes the sentence "`rpm_limit` must be …",
 * which is what a caller who got it wrong is told.
 */
export async function readFields<T extends TObject>(
  schema: T,
  exchange: Exchange,
  deps: HttpDeps,
): Promise<Static<T> | Refusal> {
  const body = await readControl(exchange, deps);
  if (refused(body)) return body;
  const ended = (await exchange.letInAgain?.()) ?? null;
  if (ended !== null) return ended;
  const error = Value.Errors(schema, body).First();
  return error === undefined ? (body as Static<T>) : wrongField(error, schema, body);
}

/** As much of what a caller sent as an answer repeats. */
export const repeated = (sent: string): string => sent.slice(0, MAX_REPEATED);

const MAX_REPEATED = 64;

export const invalidField = (param: string, message: string): Refusal =>
  refuse("invalid_request", message, { param });

function wrongField(error: ValueError, schema: TObject, body: unknown): Refusal {
  const field = error.path.split("/")[1]?.replaceAll("~1", "/").replaceAll("~0", "~");
  if (field === undefined) return refuse("invalid_request", "The body must be a JSON object.");
  const name = repeated(field);
  const expected = (schema.properties as Record<string, TSchema>)[field];
  if (expected === undefined || !Object.hasOwn(schema.properties, field)) {
    const known = Object.keys(schema.properties).join(", ");
    return invalidField(name, `\`${name}\` is not a field of this request, which takes: ${known}.`);
  }
  if (!Object.hasOwn(body as object, field)) {
    return invalidField(field, `\`${field}\` is missing; it must be ${expected.description}.`);
  }
  return invalidField(field, `\`${field}\` must be ${expected.description}.`);
}

/** An amount that has the form of `usd`, as money. */
export function readUsd(param: string, amount: number): NanoUsd | Refusal {
  return (
    nanoFromUsd(amount) ?? invalidField(param, `\`${param}\` must be ${usd.description}, at most 9,000,000.`)
  );
}

/** An instant written in ISO 8601 with its zone. */
export function readTime(param: string, value: string): EpochMs | Refusal {
  const at = ISO_8601.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(at)) {
    return invalidField(
      param,
      `\`${param}\` must be a time in ISO 8601 with a time zone, like 2030-01-31T12:00:00Z.`,
    );
  }
  return at as EpochMs;
}

const ISO_8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/;

/** A number from the query string; `fallback` where it is absent. */
export function readCount(
  query: URLSearchParams,
  param: string,
  fallback: number,
  max: number,
): number | Refusal {
  const value = query.get(param);
  if (value === null) return fallback;
  const count = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  return count >= 1 && count <= max
    ? count
    : invalidField(param, `\`${param}\` must be a whole number from 1 to ${max}.`);
}
