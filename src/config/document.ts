// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file form of a reference is ${NAME}
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
} from "yaml";
import { type ConfigProblem, formatPath, type Path } from "./problem.ts";
import { yamlMistake } from "./yaml-mistake.ts";

/** Aliases multiply: a few lines of them could name a billion nodes. */
const ALIASES_MAX = 100;

/**
 * A configuration file as a tree that knows its places, so that every problem can point at a line. `${NAME}`
 * is put in after YAML is read: a secret may hold any character without changing what the file means.
 */
export class ConfigDocument {
  readonly problems: ConfigProblem[] = [];
  /** Scalars that hold something of the environment, with the text that the file has. */
  private readonly interpolated = new Map<unknown, string>();
  private readonly lines = new LineCounter();
  private readonly document: Document;

  constructor(
    private readonly file: string,
    text: string,
    env: Readonly<Record<string, string | undefined>>,
  ) {
    this.document = parseDocument(text, { lineCounter: this.lines, prettyErrors: false });
    // What follows the first is mostly its consequence: one stray brace makes hundreds.
    const [first] = [...this.document.errors, ...this.document.warnings];
    if (first === undefined) this.interpolate(env);
    else this.add([], first.pos[0], yamlMistake(first) + bracesHint(text, first.pos[0]), null);
  }

  /** Whether there are values to be looked at. */
  get isYaml(): boolean {
    return this.document.errors.length === 0 && this.document.warnings.length === 0;
  }

  /** Whether what is wrong at a path was said already. */
  reported(path: Path): boolean {
    const text = formatPath(path);
    return this.problems.some((problem) => problem.path === text);
  }

  /** The settings as plain values; an empty file has none. */
  value(): unknown {
    try {
      return this.document.toJS({ maxAliasCount: ALIASES_MAX }) ?? {};
    } catch (error) {
      this.add([], 0, error instanceof Error ? error.message : String(error), null);
      return {};
    }
  }

  report(path: Path, found: string, expected: string | null, at: "key" | "value" = "value"): void {
    this.add(path, this.offsetOf(path, at), found, expected);
  }

  /** What the file says at a path, where it was interpolated: the text with `${NAME}` in it. */
  sourceText(path: Path): string | null {
    const node = this.document.getIn(path, true);
    return this.interpolated.get(isAlias(node) ? node.resolve(this.document) : node) ?? null;
  }

  private add(path: Path, offset: number, found: string, expected: string | null): void {
    const { line, col } = this.lines.linePos(offset);
    this.problems.push({
      file: this.file,
      line: Math.max(1, line),
      column: Math.max(1, col),
      path: formatPath(path),
      found,
      expected,
    });
  }

  /**
   * The place of a value, or of its key where that is wanted or the value fills lines; of the nearest parent
   * when missing.
   */
  private offsetOf(path: Path, at: "key" | "value"): number {
    for (let length = path.length; length >= 0; length--) {
      const parent = this.document.getIn(path.slice(0, length - 1), true);
      const step = path[length - 1];
      if (length > 0 && isMap(parent)) {
        const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
        const target = at === "value" && isScalar(pair?.value) ? pair.value : pair?.key;
        if (isNode(target) && target.range) return target.range[0];
      } else {
        const node = length === 0 ? this.document.contents : this.document.getIn(path.slice(0, length), true);
        if (isNode(node) && node.range) return node.range[0];
      }
    }
    return 0;
  }

  private interpolate(env: Readonly<Record<string, string | undefined>>): void {
    visit(this.document, {
      Scalar: (key, scalar, ancestors) => {
        if (key === "key" || typeof scalar.value !== "string" || !scalar.value.includes("${")) return;
        const source = scalar.value;
        const result = interpolate(source, env);
        if (typeof result === "string") {
          this.interpolated.set(scalar, source);
          scalar.value = result;
          return;
        }
        for (const { found, expected } of result) {
          this.add(pathTo(scalar, ancestors), scalar.range?.[0] ?? 0, found, expected);
        }
      },
    });
  }
}

/** Between braces, YAML takes those of `${NAME}` for its own. */
const bracesHint = (text: string, offset: number): string =>
  text.slice(Math.max(0, offset - 1), offset + 1).includes("${")
    ? '; inside braces, write a reference in quotes: "${NAME}"'
    : "";

/** `$${` is a literal `${`. */
const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

interface Complaint {
  readonly found: string;
  readonly expected: string;
}

/** The text with its variables put in, or what is wrong with each of them. */
export function interpolate(
  source: string,
  env: Readonly<Record<string, string | undefined>>,
): string | Complaint[] {
  const wrong: Complaint[] = [];
  const result = source.replace(REFERENCE, (whole, name: string | undefined, end: string | undefined) => {
    if (name === undefined) return "${";
    if (end === "" || !VARIABLE.test(name)) {
      wrong.push({ found: JSON.stringify(whole), expected: "${NAME}, or $${ for a literal ${" });
      return "";
    }
    const value = env[name];
    if (value !== undefined) return value;
    wrong.push({ found: `\${${name}}, which is not set`, expected: `the environment variable ${name}` });
    return "";
  });
  return wrong.length === 0 ? result : wrong;
}

/** The path of a scalar among the nodes that lead to it. */
function pathTo(scalar: unknown, ancestors: readonly unknown[]): Path {
  const chain = [...ancestors, scalar];
  const path: (string | number)[] = [];
  for (const [index, node] of chain.entries()) {
    if (isPair(node)) path.push(isScalar(node.key) ? String(node.key.value) : "?");
    else if (isCollection(node) && !isMap(node)) path.push(node.items.indexOf(chain[index + 1] as never));
  }
  return path;
}
