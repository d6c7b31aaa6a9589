import { parseSync } from "oxc-parser";

/** A node of the syntax tree (ESTree, with TypeScript's nodes). */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** A use of a name that is no type: where it stands, and what the name means there. */
export interface NameUse {
  readonly name: string;
  /** What declares the name: a scope within the module, the module itself, an import, or nothing in this file. */
  readonly origin: "local" | "module" | "import" | "global";
  /** From the node around the name outwards. */
  readonly around: readonly Node[];
}

export const parse = (path: string, text: string) => parseSync(path, text);

/** Calls `visit` for each use of a name in a program, with what declares it. Types are left out. */
export function visitNames(program: Node, visit: (use: NameUse) => void): void {
  const imported = new Set<string>();
  const declared = new Set<string>();
  for (const statement of nodesOf(program.body)) {
    if (statement.type === "ImportDeclaration")
      for (const { local } of nodesOf(statement.specifiers)) namesOf(local as Node, imported);
    else declaredBy(statement, declared);
  }
  const originOf = (name: string, scopes: readonly ReadonlySet<string>[]) => {
    if (scopes.some((scope) => scope.has(name))) return "local";
    if (declared.has(name)) return "module";
    return imported.has(name) ? "import" : "global";
  };
  const walk = (node: Node, around: readonly Node[], scopes: readonly ReadonlySet<string>[]): void => {
    if (node.type === "Identifier") {
      const name = node.name as string;
      visit({ name, origin: originOf(name, scopes), around });
      return;
    }
    const scope = around.length === 0 ? new Set<string>() : scopeOf(node);
    const within = scope.size === 0 ? scopes : [scope, ...scopes];
    for (const child of childrenOf(node)) walk(child, [node, ...around], within);
  };
  walk(program, [], []);
}

/** Children that are evaluated: no types, and no names of members, labels and exports. */
function childrenOf(node: Node): Node[] {
  if (node.type === "ImportDeclaration" || node.type === "ExportSpecifier") return [];
  const children: Node[] = [];
  for (const [field, value] of Object.entries(node)) {
    if (NAMED_BY.get(node.type) === field && node.computed !== true) continue;
    for (const child of Array.isArray(value) ? value : [value])
      if (isNode(child) && (!child.type.startsWith("TS") || EVALUATED.has(child.type))) children.push(child);
  }
  return children;
}

/** Fields that hold a name which is no variable, unless it is computed. */
const NAMED_BY = new Map([
  ["MemberExpression", "property"],
  ["Property", "key"],
  ["MethodDefinition", "key"],
  ["PropertyDefinition", "key"],
  ["LabeledStatement", "label"],
  ["BreakStatement", "label"],
  ["ContinueStatement", "label"],
  ["MetaProperty", "property"],
  ["TSEnumMember", "id"],
]);

/** TypeScript's nodes with an expression in them. */
const EVALUATED = new Set([
  "TSAsExpression",
  "TSSatisfiesExpression",
  "TSNonNullExpression",
  "TSTypeAssertion",
  "TSInstantiationExpression",
  "TSParameterProperty",
  "TSEnumDeclaration",
  "TSEnumBody",
  "TSEnumMember",
]);

/** Names that are declared for the inside of a node. */
function scopeOf(node: Node): Set<string> {
  const names = new Set<string>();
  if (/Function/.test(node.type)) {
    names.add("arguments");
    for (const param of nodesOf(node.params)) namesOf(param, names);
  }
  if (/^(Function|Class)Expression$/.test(node.type) && isNode(node.id)) namesOf(node.id, names);
  if (node.type === "CatchClause" && isNode(node.param)) namesOf(node.param, names);
  for (const statement of [node.init, node.left, ...nodesOf(node.body), ...casesOf(node)])
    if (isNode(statement)) declaredBy(statement, names);
  return names;
}

const casesOf = (node: Node): Node[] => nodesOf(node.cases).flatMap((one) => nodesOf(one.consequent));

/** Adds the names that a statement declares around itself. */
function declaredBy(statement: Node, names: Set<string>): void {
  const declaration = isNode(statement.declaration) ? statement.declaration : statement;
  for (const { id } of nodesOf(declaration.declarations)) namesOf(id as Node, names);
  if (/Declaration$/.test(declaration.type) && isNode(declaration.id)) namesOf(declaration.id, names);
}

/** Adds the variables of a pattern. */
function namesOf(pattern: Node, names: Set<string>): void {
  if (pattern.type === "Identifier") names.add(pattern.name as string);
  for (const field of ["left", "argument", "parameter", "value"] as const)
    if (isNode(pattern[field])) namesOf(pattern[field], names);
  for (const part of [...nodesOf(pattern.properties), ...nodesOf(pattern.elements)]) namesOf(part, names);
}

export const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

export const nodesOf = (value: unknown): Node[] => (Array.isArray(value) ? value.filter(isNode) : []);
