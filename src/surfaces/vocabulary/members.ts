import { asObject, type Json } from "../json.ts";
import type { AnswerFormat, CacheMark, JsonSchemaFormat, TextPart } from "./conversation.ts";
import type { TranslationReport } from "./translation-report.ts";

/**
 * Members of a client's body, each of its one type; absent and null are the same. A wrong type is told by its
 * path.
 */
export function readNumber(json: Json, name: string, report: TranslationReport, path = name): number | null {
  const value = json[name] ?? null;
  if (value === null || typeof value === "number") return value;
  report.wrong(path, "must be a number");
  return null;
}

export function readBoolean(
  json: Json,
  name: string,
  report: TranslationReport,
  path = name,
): boolean | null {
  const value = json[name] ?? null;
  if (value === null || typeof value === "boolean") return value;
  report.wrong(path, "must be true or false");
  return null;
}

export function readText(json: Json, name: string, report: TranslationReport, path = name): string | null {
  const value = json[name] ?? null;
  if (value === null || typeof value === "string") return value;
  report.wrong(path, "must be a string");
  return null;
}

/** A text without which nothing can be said. */
export function needText(json: Json, name: string, path: string, report: TranslationReport): string {
  const value = json[name];
  if (typeof value === "string") return value;
  report.wrong(path, "must be a string");
  return "";
}

export function readObject(json: Json, name: string, report: TranslationReport, path = name): Json | null {
  const value = json[name] ?? null;
  if (value === null) return null;
  const object = asObject(value);
  if (object === null) report.wrong(path, "must be an object");
  return object;
}

/** The objects of a list. */
export function readList(json: Json, name: string, report: TranslationReport, path = name): Json[] {
  const value = json[name] ?? [];
  if (!Array.isArray(value)) {
    report.wrong(path, "must be an array");
    return [];
  }
  return value.map((item, at) => {
    const object = asObject(item);
    if (object === null) report.wrong(`${path}[${at}]`, "must be an object");
    return object ?? {};
  });
}

export function readTexts(value: unknown, path: string, report: TranslationReport): string[] {
  const texts = Array.isArray(value) ? value : [value];
  if (texts.every((text) => typeof text === "string")) return texts as string[];
  report.wrong(path, "must be a string or an array of strings");
  return [];
}

/** OpenRouter's and Anthropic's, on a part or a message. */
export function readCacheMark(json: Json): CacheMark {
  return asObject(json.cache_control);
}

export function readSchema(given: Json, report: TranslationReport): AnswerFormat {
  return {
    kind: "json_schema",
    name: readText(given, "name", report),
    description: readText(given, "description", report),
    schema: readObject(given, "schema", report) ?? { type: "object" },
    strict: readBoolean(given, "strict", report),
  };
}

/** The same for a host; OpenAI's two languages want a name. */
export const writeSchema = ({ name, description, schema, strict }: JsonSchemaFormat): Json =>
  present({
    name: name ?? "answer",
    description: description ?? undefined,
    schema,
    strict: strict ?? undefined,
  });

/** Of a function without any. */
export const NO_PARAMETERS = { type: "object", properties: {} } as const;

/** What somebody says: a string, or a list of parts that the language reads one by one. */
export function readParts<Part>(
  content: unknown,
  path: string,
  report: TranslationReport,
  readPart: (part: Json, path: string, report: TranslationReport) => Part[],
): (Part | TextPart)[] {
  if (typeof content === "string") return [textPart(content)];
  if (content === undefined || content === null) {
    report.wrong(path, "must be a string or an array");
    return [];
  }
  return readList({ content }, "content", report, path).flatMap((part, at) =>
    readPart(part, `${path}[${at}]`, report),
  );
}

export const namesAny = (json: Json, names: readonly string[]): boolean =>
  names.some((name) => json[name] !== undefined && json[name] !== null);

/** Text that somebody said. */
export const textPart = (text: string, cache: CacheMark = null): TextPart => ({ kind: "text", text, cache });

/** Those of the members that are there, as they came. */
export function pick(json: Json, names: readonly string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const name of names) if (json[name] !== undefined && json[name] !== null) picked[name] = json[name];
  return picked;
}

/** Without the members that are undefined: JSON has none, and some hosts take null for a value. */
export function present(object: Record<string, unknown>): Record<string, unknown> {
  for (const name of Object.keys(object)) if (object[name] === undefined) delete object[name];
  return object;
}

/** Members that OpenAI's two languages spell alike. */
export const OPENAI_MEMBERS = [
  "metadata",
  "prompt_cache_retention",
  "prompt_cache_options",
  "service_tier",
  "moderation",
];
