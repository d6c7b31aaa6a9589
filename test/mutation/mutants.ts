import { type Node, parseSync, visitorKeys } from "oxc-parser";

/** A plausible fault of one line: `file` with `text` from `start` to `end`. */
export interface Mutant {
  readonly file: string;
  readonly kind: Kind;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The lines that it changes, on one line and without indentation: what a survivor is recognized by. */
  readonly before: string;
  readonly after: string;
}

export const KINDS = [
  "call left out",
  "assignment left out",
  "guard left out",
  "condition negated",
  "boundary moved",
  "one more or fewer",
  "operand dropped",
  "element dropped",
  "option changed",
  "extreme swapped",
] as const;
type Kind = (typeof KINDS)[number];

/** An edit before it knows its lines. */
type Edit = readonly [kind: Kind, node: Span, text: string];
type Span = { readonly start: number; readonly end: number };

/** Every fault that this file can have, in the order of its text. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]!.message}`);
  const textOf = ({ start, end }: Span) => source.slice(start, end);
  const found: Edit[] = [];
  const context = { textOf, options: stringOptions(program) };
  walk(program, null, (node, parent) => found.push(...editsOf(node, parent, context)));
  return found
    .map(([kind, { start, end }, text]) => ({
      file,
      kind,
      line: source.slice(0, start).split("\n").length,
      start,
      end,
      text,
      ...linesAround(source, start, end, text),
    }))
    .sort((a, b) => a.start - b.start || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}

interface Context {
  readonly textOf: (span: Span) => string;
  /** Which texts the file gives each option, such as `redirect`. */
  readonly options: ReadonlyMap<string, ReadonlySet<string>>;
}

function editsOf(node: Node, parent: Node | null, { textOf, options }: Context): Edit[] {
  switch (node.type) {
    case "ExpressionStatement":
      return leftOut(node.expression, node);
    case "ArrowFunctionExpression":
      return node.expression && isCall(node.body) && RELEASES.test(textOf(node.body))
        ? [["call left out", node.body, "undefined"]]
        : [];
    case "IfStatement":
      return [
        ...(node.alternate === null && leaves(node.consequent)
          ? ([["guard left out", node.test, "false"]] as const)
          : []),
        ["condition negated", node.test, `!(${textOf(node.test)})`],
      ];
    case "ConditionalExpression":
      return [["condition negated", node.test, `!(${textOf(node.test)})`]];
    case "LogicalExpression":
      return [
        ["operand dropped", node, textOf(node.left)],
        // `a ?? b` without `a` is another program rather than a slip.
        ...(node.operator === "??" ? [] : ([["operand dropped", node, textOf(node.right)]] as const)),
      ];
    case "BinaryExpression":
      return binary(node, textOf);
    case "ArrayExpression":
      return isConstant(parent) ? listEdits(node, textOf) : [];
    case "Property":
      return propertyEdits(node, textOf, options);
    case "ReturnStatement":
      return node.argument === null ? [] : flipped(node.argument);
    case "CallExpression": {
      const callee = textOf(node.callee);
      if (callee !== "Math.min" && callee !== "Math.max") return [];
      return [["extreme swapped", node.callee, callee === "Math.min" ? "Math.max" : "Math.min"]];
    }
    default:
      return [];
  }
}

function leftOut(expression: Node, statement: Span): Edit[] {
  const inner = expression.type === "AwaitExpression" ? expression.argument : expression;
  if (isCall(inner)) return [["call left out", statement, ";"]];
  const isChange =
    inner.type === "UpdateExpression" ||
    (inner.type === "AssignmentExpression" &&
      (inner.operator !== "=" || inner.left.type === "MemberExpression"));
  return isChange ? [["assignment left out", statement, ";"]] : [];
}

function binary(node: Extract<Node, { type: "BinaryExpression" }>, textOf: Context["textOf"]): Edit[] {
  const { left, right, operator } = node;
  const moved = MOVED[operator];
  if (moved !== undefined) return [["boundary moved", node, `${textOf(left)} ${moved} ${textOf(right)}`]];
  const byOne = (operator === "+" || operator === "-") && ["1", "1n"].includes(textOf(right));
  return byOne ? [["one more or fewer", node, textOf(left)]] : [];
}

const MOVED: Readonly<Record<string, string>> = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };

/** Without each of its texts in turn. */
function listEdits(node: Extract<Node, { type: "ArrayExpression" }>, textOf: Context["textOf"]): Edit[] {
  const elements = node.elements.filter((element) => element !== null);
  if (elements.length < 2 || !elements.every(({ type }) => LISTED.has(type))) return [];
  return elements.map((dropped) => [
    "element dropped",
    node,
    `[${elements
      .filter((element) => element !== dropped)
      .map(textOf)
      .join(", ")}]`,
  ]);
}

const LISTED = new Set(["Literal", "Identifier", "MemberExpression"]);

function propertyEdits(
  { key, value }: Extract<Node, { type: "Property" }>,
  textOf: Context["textOf"],
  options: Context["options"],
): Edit[] {
  // Sentences are for people.
  if (value.type !== "Literal" || /\s/.test(String(value.value))) return [];
  if (typeof value.value === "boolean") return flipped(value);
  const others = [...(options.get(textOf(key)) ?? [])];
  const other = others[(others.indexOf(textOf(value)) + 1) % others.length];
  return other === undefined || other === textOf(value) ? [] : [["option changed", value, other]];
}

const flipped = (node: Node): Edit[] =>
  node.type === "Literal" && typeof node.value === "boolean"
    ? [["option changed", node, String(!node.value)]]
    : [];

/** Texts are swapped only among those that the file gives the same option. */
function stringOptions(program: Node): Map<string, Set<string>> {
  const options = new Map<string, Set<string>>();
  walk(program, null, (node) => {
    if (node.type !== "Property" || node.key.type !== "Identifier") return;
    if (node.value.type !== "Literal" || typeof node.value.value !== "string") return;
    const texts = options.get(node.key.name) ?? new Set();
    options.set(node.key.name, texts.add(node.value.raw!));
  });
  return options;
}

const isCall = (node: Node): boolean =>
  node.type === "CallExpression" || (node.type === "ChainExpression" && isCall(node.expression));

/** What gives back, ends or notifies: left out of an arrow function, too. */
const RELEASES =
  /\.(\w*)(release|delete|free|give|return|cancel|clear|close|end|abort|stop|notify|emit|forget|remove|settle)\w*\(/i;

const leaves = (node: Node): boolean =>
  node.type === "BlockStatement" ? node.body.length > 0 && leaves(node.body.at(-1)!) : LEAVING.has(node.type);

const LEAVING = new Set(["ReturnStatement", "ThrowStatement", "ContinueStatement", "BreakStatement"]);

/** A list with a name, in the file or in a set. */
const isConstant = (parent: Node | null): boolean =>
  parent !== null && ["VariableDeclarator", "NewExpression", "TSAsExpression"].includes(parent.type);

/** Types, logs and asserts have no behaviour that a test could miss, and messages are for people. */
function isSkipped(node: Node): boolean {
  if (node.type.startsWith("TS")) return !TRANSPARENT.has(node.type);
  if (node.type !== "CallExpression" && node.type !== "ThrowStatement") return false;
  if (node.type === "ThrowStatement") return true;
  return SKIPPED_CALLS.test(calleeOf(node.callee));
}

const TRANSPARENT = new Set(["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"]);
const SKIPPED_CALLS = /^(assert\w*|super|unreachable)$|(^|\.)log$|^console\./;

function calleeOf(node: Node): string {
  if (node.type === "Identifier") return node.name;
  if (node.type === "Super") return "super";
  if (node.type !== "MemberExpression" || node.property.type !== "Identifier") return "";
  return `${calleeOf(node.object)}.${node.property.name}`;
}

function walk(node: Node, parent: Node | null, visit: (node: Node, parent: Node | null) => void): void {
  if (isSkipped(node)) return;
  const inner = node.type === "ExpressionStatement" ? node.expression : null;
  if (inner !== null && isSkipped(inner.type === "ChainExpression" ? inner.expression : inner)) return;
  visit(node, parent);
  for (const key of visitorKeys[node.type] ?? []) {
    const value = (node as unknown as Record<string, Node | (Node | null)[] | null>)[key];
    for (const child of Array.isArray(value) ? value : [value])
      if (child !== null && child !== undefined) walk(child, node, visit);
  }
}

function linesAround(source: string, start: number, end: number, text: string) {
  const from = source.lastIndexOf("\n", start - 1) + 1;
  const newline = source.indexOf("\n", end);
  const to = newline < 0 ? source.length : newline;
  const oneLine = (lines: string) => lines.replace(/\s+/g, " ").trim();
  return {
    before: oneLine(source.slice(from, to)),
    after: oneLine(source.slice(from, start) + text + source.slice(end, to)),
  };
}
