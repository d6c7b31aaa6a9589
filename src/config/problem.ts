/** One thing that is wrong with a configuration file, or with the environment. All of them are reported together. */
export interface ConfigProblem {
  /** Its path, or `ENVIRONMENT`, which has no lines. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** `models[2].routes[0].host`; empty when the file is not YAML at all. */
  readonly path: string;
  /** What the file says there, in words; secrets and interpolated values are never shown. */
  readonly found: string;
  /** Null where `found` is a whole statement. */
  readonly expected: string | null;
}

/** The configuration, or a variable of the environment, cannot be used; the message lists every problem. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

export const ENVIRONMENT = "environment";

const PROBLEMS_SHOWN_MAX = 50;

/** One problem a line, in the order of the file. */
export function formatProblems(problems: readonly ConfigProblem[]): string {
  const lines = problems.slice(0, PROBLEMS_SHOWN_MAX).map(formatProblem);
  const more = problems.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}

/** `gateway.yaml:12:15: models[2].routes[0].host: found "opena", expected a host id: openai, groq` */
function formatProblem({ file, line, column, path, found, expected }: ConfigProblem): string {
  const where = file === ENVIRONMENT ? file : `${file}:${line}:${column}`;
  const what = expected === null ? found : `found ${found}, expected ${expected}`;
  return `${where}: ${path === "" ? "" : `${path}: `}${what}`;
}

/** Steps into the document: keys and indexes. */
export type Path = readonly (string | number)[];

/** Takes what is wrong at a place of the file. */
export type ReportProblem = (path: Path, found: string, expected: string) => void;

export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

const SHOWN_CHARACTERS = 60;

export function describe(value: unknown): string {
  if (typeof value === "string") {
    return JSON.stringify(value.length > SHOWN_CHARACTERS ? `${value.slice(0, SHOWN_CHARACTERS)}…` : value);
  }
  return typeof value === "number" || typeof value === "boolean" ? String(value) : kindOf(value);
}

export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object") return "a map";
  if (value === "") return "an empty string";
  return typeof value === "string" ? "a string" : `a ${typeof value}`;
}
