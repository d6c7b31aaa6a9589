import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { Value, ValuePointer } from "@sinclair/typebox/value";
import { misspelt } from "../catalog/closest-id.ts";
import type { ConfigDocument } from "./document.ts";
import { describe, kindOf, type Path } from "./problem.ts";
import { type ConfigFile, SETTINGS } from "./settings.ts";

/** Holds the document's values against the schema; null when something is wrong, which is then reported. */
export function validate(document: ConfigDocument): ConfigFile | null {
  const value = document.value();
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
    const wanted = unknown ? knownKeys(String(path.at(-1)), error) : expected(error);
    document.report(path, found(error, path, document), wanted, unknown ? "key" : "value");
  }
  return document.problems.length === 0 ? (value as ConfigFile) : null;
}

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

const expected = ({ schema, message }: ValueError): string => schema.expected ?? message;

function knownKeys(unknown: string, { schema }: ValueError): string {
  const known = Object.keys(schema.properties);
  const meant = misspelt(unknown, known);
  const others = known.filter((key) => key !== meant).join(", ");
  return meant === null ? `one of: ${others}` : `${meant}, or one of: ${others}`;
}
