import { isNode, type NameUse, type Node, nodesOf, parse, visitNames } from "./syntax.ts";

/** A file of `src`: its path from there, and its text. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

export interface Module {
  readonly path: string;
  readonly imports: readonly Import[];
  /** What it uses that no file declares: `fetch`, `Date.now`, `new Date()`. */
  readonly globals: ReadonlySet<string>;
  /** Variables of the module that change, or may. */
  readonly state: readonly string[];
  /** Classes that it creates objects of. */
  readonly created: readonly string[];
  /** Names of the types and classes that it declares. */
  readonly types: readonly string[];
}

interface Import {
  /** A path from `src`, or the name of a package. */
  readonly target: string;
  readonly isOurs: boolean;
  readonly isType: boolean;
  /** What is imported by its name, as the other module calls it. */
  readonly names: readonly string[];
}

export function readModule({ path, text }: Source): Module {
  const { module, program } = parse(path, text);
  const imports = [
    ...module.staticImports.map(({ moduleRequest, entries }) => ({
      target: moduleRequest.value,
      isType: entries.length > 0 && entries.every(({ isType }) => isType),
      names: entries.filter(({ isType }) => !isType).map(({ importName }) => importName.name ?? "*"),
    })),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest, isType, importName }) =>
        moduleRequest === null
          ? []
          : [{ target: moduleRequest.value, isType, names: [importName.name ?? "*"] }],
      ),
    ),
    ...module.dynamicImports.map(({ moduleRequest: { start, end } }) => ({
      target: text.slice(start + 1, end - 1),
      isType: false,
      names: ["*"],
    })),
  ];
  const tree = program as unknown as Node;
  const uses: NameUse[] = [];
  visitNames(tree, (use) => uses.push(use));
  return {
    path,
    imports: imports.map((one) =>
      one.target.startsWith(".")
        ? { ...one, target: new URL(one.target, `file:///${path}`).pathname.slice(1), isOurs: true }
        : { ...one, isOurs: false },
    ),
    globals: new Set(uses.filter(({ origin }) => origin === "global").map(globalName)),
    state: [...new Set([...uses.flatMap(changed), ...variablesOf(tree)])],
    created: uses.filter(isCreated).map(({ name }) => name),
    types: nodesOf(tree.body).flatMap(typeOf),
  };
}

/** With the member that is used of it, and whether it is created of nothing. */
function globalName({ name, around: [user] }: NameUse): string {
  if (user?.type === "MemberExpression" && isNamed(user.object, name) && user.computed !== true)
    return `${name}.${(user.property as Node).name}`;
  if (user?.type === "NewExpression" && isNamed(user.callee, name))
    return `new ${name}(${nodesOf(user.arguments).length === 0 ? "" : "…"})`;
  return name;
}

const isCreated = ({ name, around: [user] }: NameUse): boolean =>
  user?.type === "NewExpression" && isNamed(user.callee, name);

function typeOf(statement: Node): string[] {
  const { type, id } = isNode(statement.declaration) ? statement.declaration : statement;
  return TYPES.has(type) ? [(id as Node).name as string] : [];
}

const TYPES = new Set([
  "ClassDeclaration",
  "TSEnumDeclaration",
  "TSInterfaceDeclaration",
  "TSTypeAliasDeclaration",
]);

/** The variable of the module, or of another one, that is changed by this use. */
function changed({ name, origin, around }: NameUse): string[] {
  if (origin !== "module" && origin !== "import") return [];
  // From the variable outwards: `table.list[0]!` is a part of it, and what surrounds that is what happens to it.
  const outer = around.findIndex(
    (node) => node.type !== "MemberExpression" && node.type !== "TSNonNullExpression",
  );
  const part = around[outer - 1];
  const user = around[outer];
  const isPart = (node: unknown) => (part === undefined ? isNamed(node, name) : node === part);
  if (user === undefined || around.slice(0, outer).some((node) => isNamed(node.property, name))) return [];
  const isTarget =
    (user.type === "AssignmentExpression" && isPart(user.left)) ||
    user.type === "UpdateExpression" ||
    (user.type === "UnaryExpression" && user.operator === "delete");
  const method = outer === 1 && isNode(part!.property) ? (part!.property.name as string) : "";
  const isCall = user.type === "CallExpression" && isPart(user.callee) && CHANGING.has(method);
  return isTarget || isCall ? [name] : [];
}

const isNamed = (node: unknown, name: string): boolean =>
  isNode(node) && node.type === "Identifier" && node.name === name;

const CHANGING = new Set(
  "set add delete clear push pop shift unshift splice sort reverse fill copyWithin".split(" "),
);

/** Collections that begin empty and are not declared read-only, weak ones, and variables declared to change. */
function variablesOf(program: Node): string[] {
  const names: string[] = [];
  for (const statement of nodesOf(program.body)) {
    const declaration = isNode(statement.declaration) ? statement.declaration : statement;
    for (const { id, init } of nodesOf(declaration.declarations) as unknown as Declarator[])
      if (declaration.kind !== "const" || beginsEmpty(init, id)) names.push(id.name as string);
  }
  return names;
}

interface Declarator {
  readonly id: Node;
  readonly init: Node | null;
}

function beginsEmpty(init: Node | null, id: Node): boolean {
  if (init === null) return false;
  const isEmpty = nodesOf(init.arguments).length === 0;
  const made = init.type === "NewExpression" ? ((init.callee as Node).name as string) : null;
  if (made !== null && /^Weak(Map|Set|Ref)$/.test(made)) return true;
  const isCollection = /^(Map|Set|LRUCache)$/.test(made ?? "") && isEmpty;
  const isList = init.type === "ArrayExpression" && nodesOf(init.elements).length === 0;
  return (isCollection || isList) && !isReadOnly(id);
}

function isReadOnly({ typeAnnotation }: Node): boolean {
  const type = isNode(typeAnnotation) ? (typeAnnotation.typeAnnotation as Node) : null;
  if (type?.type === "TSTypeOperator") return type.operator === "readonly";
  return type?.type === "TSTypeReference" && /^Readonly/.test(String((type.typeName as Node).name));
}
