import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { Value, ValuePointer } from "@sinclair/typebox/value";
import { misspelt } from "../catalog/closest-id.ts";
import type { ConfigDocument } from "./document.ts";
import { describe, kindOf, type Path } from "./problem.ts";
import { type ConfigFile, SETTINGS } from "./settings.ts";

/** Holds the document's values against the schema; null when something is wrong, which is then reported. */
export function validate(document: ConfigDocument): ConfigFile | null {
  const value = document.value();
  if (isLiteLLM(value)) {
    document.report(["model_list"], LITELLM, null, "key");
    return null;
  }
  readNumbers(value, document);
  const seen = new Set<string>();
  for (const error of Value.Errors(SETTINGS.schema, value)) {
    // A missing key is reported again as a value of the wrong type.
    if (seen.has(error.path)) continue;
    seen.add(error.path);
    const path = steps(error.path, value);
    // A variable that is not set leaves no value to judge.
    if (document.reported(path)) continue;
    const unknown = error.type === ValueErrorType.ObjectAdditionalProperties;
    const expectation = unknown ? knownKeys(String(path.at(-1)), error) : expected(error);
    document.report(path, found(error, path, document), expectation, unknown ? "key" : "value");
  }
  return document.problems.length === 0 ? (value as ConfigFile) : null;
}

/** The file of another gateway, whose members would all be unknown here. */
const isLiteLLM = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  Array.isArray((value as { model_list?: unknown }).model_list);

const LITELLM =
  "this looks like the configuration of LiteLLM. `gateway import litellm` prints it as this gateway reads it, and says what it cannot carry; docs/moving.md has the steps";

/** `port: ${SMTP_PORT}`: the environment holds text only, so a number is read where one is expected. */
function readNumbers(value: unknown, document: ConfigDocument): void {
  for (const error of [...Value.Errors(SETTINGS.schema, value)]) {
    if (typeof error.value !== "string" || !NUMERIC.test(error.value)) continue;
    if (!takesNumber(error) || document.sourceText(steps(error.path, value)) === null) continue;
    ValuePointer.Set(value as object, error.path, Number(error.value));
  }
}

const NUMERIC = /^-?\d{1,15}(\.\d{1,9})?$/;
const NUMBERS = new Set<unknown>(["integer", "number"]);

const takesNumber = ({ schema }: ValueError): boolean =>
  NUMBERS.has(schema.type) ||
  (Array.isArray(schema.anyOf) && schema.anyOf.some(({ type }: { type: unknown }) => NUMBERS.has(type)));

/** TypeBox's pointer, `/models/0/routes/1/host`, with `~1` for `/` and `~0` for `~`. */
function steps(pointer: string, root: unknown): Path {
  const path: (string | number)[] = [];
  let at: unknown = root;
  for (const raw of pointer.split("/").slice(1)) {
    const step = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(at) ? Number(step) : step);
    at = (at as Record<string, unknown> | undefined)?.[step];
  }
  return path;
}

function found(error: ValueError, path: Path, document: ConfigDocument): string {
  if (error.type === ValueErrorType.ObjectRequiredProperty) return "nothing";
  if (error.type === ValueErrorType.ObjectAdditionalProperties) return "an unknown key";
  const source = document.sourceText(path);
  const { value } = error;
  if (source !== null) {
    return `${source} from the environment, which is ${value === "" ? "empty" : "something else"}`;
  }
  return error.schema.secret === true ? kindOf(value) : describe(value);
}

function expected(error: ValueError): string {
  const { schema, message, value } = error;
  const isQuoted = typeof value === "string" && NUMERIC.test(value) && takesNumber(error);
  return (schema.expected ?? message) + (isQuoted ? ", without quotes" : "");
}

function knownKeys(unknown: string, { schema }: ValueError): string {
  // `{ input: 0,15 }` is a price of 0 and a member called 15.
  if (/^\d+$/.test(unknown)) return `a decimal point in place of the comma: 0.${unknown}`;
  const known = Object.keys(schema.properties);
  const meant = misspelt(unknown, known);
  const others = known.filter((key) => key !== meant).join(", ");
  return meant === null ? `one of: ${others}` : `${meant}, or one of: ${others}`;
}
