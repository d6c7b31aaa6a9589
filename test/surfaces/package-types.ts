import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Node, parse } from "../architecture/syntax.ts";

/**
 * The types that an installed package publishes, read from its declarations: the members of a type, and the texts that a
 * member, or the type itself, may have. A union has those of all its branches; what is no text has none.
 *
 *     const types = new PackageTypes("openai/resources/responses/responses");
 *     types.members("ResponseCreateParamsBase");          // ["background", "context_management", …]
 *     types.texts("ResponseStreamEvent", "type");         // ["error", "response.audio.delta", …]
 */
export class PackageTypes {
  private readonly declarations: Declarations;

  constructor(path: string) {
    this.declarations = declarationsAt(join(import.meta.dir, "../../node_modules", `${path}.d.ts`));
  }

  members(type: string): string[] {
    const found = new Set<string>();
    for (const { properties } of objectsOf(this.start(type)))
      for (const name of properties.keys()) found.add(name);
    return [...found].sort();
  }

  texts(type: string, member: string | null = null): string[] {
    const start = this.start(type);
    const located =
      member === null
        ? [start]
        : objectsOf(start).flatMap(({ properties, file, scope }) => {
            const node = properties.get(member);
            return node === undefined ? [] : [{ node, file, scope }];
          });
    return [...new Set(located.flatMap(textsOf))].sort();
  }

  private start(type: string): Located {
    const declared = this.declarations.types.get(type);
    if (declared === undefined) throw new Error(`the package declares no ${type}`);
    return { ...declared, file: this.declarations };
  }
}

interface Declarations {
  readonly path: string;
  /** By their names, those of namespaces with the namespace's: `Response.IncompleteDetails`. */
  readonly types: Map<string, { readonly node: Node; readonly scope: string }>;
  /** Local names, to the module and its name there; null for all of the module. */
  readonly imports: Map<string, { readonly path: string; readonly name: string | null }>;
}

/** A type, and where its names are looked up. */
interface Located {
  readonly node: Node;
  readonly scope: string;
  readonly file: Declarations;
}

const files = new Map<string, Declarations>();

function declarationsAt(path: string): Declarations {
  const known = files.get(path);
  if (known !== undefined) return known;
  const file: Declarations = { path, types: new Map(), imports: new Map() };
  files.set(path, file);
  declare(file, parse(path, readFileSync(path, "utf8")).program.body as unknown as Node[], "");
  return file;
}

function declare(file: Declarations, statements: readonly Node[], scope: string): void {
  for (const statement of statements) {
    if (statement.type === "ImportDeclaration") declareImports(file, statement);
    const node = (statement.declaration as Node | null) ?? statement;
    const name = (node.id as { name?: string } | undefined)?.name;
    if (name === undefined) continue;
    const full = scope === "" ? name : `${scope}.${name}`;
    if (node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration")
      file.types.set(full, { node, scope });
    if (node.type === "TSModuleDeclaration") declare(file, (node.body as { body: Node[] }).body, full);
  }
}

function declareImports(file: Declarations, { source, specifiers }: Node): void {
  const from = (source as { value: string }).value;
  if (!from.startsWith(".")) return;
  const path = join(dirname(file.path), from.replace(/\.js$/, ".d.ts"));
  for (const { type, local, imported } of specifiers as Node[]) {
    const name = type === "ImportNamespaceSpecifier" ? null : (imported as { name: string }).name;
    file.imports.set((local as { name: string }).name, { path, name });
  }
}

/** The declaration that a name means; null where the package does not declare it. */
function resolve(name: string, scope: string, file: Declarations): Located | null {
  for (let within = scope; ; within = within.slice(0, Math.max(0, within.lastIndexOf(".")))) {
    const found = file.types.get(within === "" ? name : `${within}.${name}`);
    if (found !== undefined) return { ...found, file };
    if (within === "") break;
  }
  const [first, ...rest] = name.split(".");
  const from = file.imports.get(first!);
  if (from === undefined || !existsSync(from.path)) return null;
  return resolve(
    [...(from.name === null ? [] : [from.name]), ...rest].join("."),
    "",
    declarationsAt(from.path),
  );
}

const nameOf = (node: Node): string =>
  node.type === "TSQualifiedName"
    ? `${nameOf(node.left as Node)}.${nameOf(node.right as Node)}`
    : (node as unknown as { name: string }).name;

/** What a type stands for: the branches of a union, the declaration behind a name. */
function branchesOf({ node, scope, file }: Located, depth = 0): Located[] {
  if (depth > MAX_DEPTH) return [];
  const inner = (one: unknown) => branchesOf({ node: one as Node, scope, file }, depth + 1);
  switch (node.type) {
    case "TSUnionType":
    case "TSIntersectionType":
      return (node.types as Node[]).flatMap(inner);
    case "TSParenthesizedType":
    case "TSTypeAliasDeclaration":
      return inner(node.typeAnnotation);
    case "TSTypeReference": {
      const found = resolve(nameOf(node.typeName as Node), scope, file);
      return found === null ? [] : branchesOf(found, depth + 1);
    }
    default:
      return [{ node, scope, file }];
  }
}

const MAX_DEPTH = 50;

/** The objects that a type may be, with their own and inherited properties. */
function objectsOf(start: Located): { properties: Map<string, Node>; scope: string; file: Declarations }[] {
  return branchesOf(start).flatMap(({ node, scope, file }) => {
    const body = node.type === "TSInterfaceDeclaration" ? (node.body as { body: Node[] }).body : node.members;
    if (!Array.isArray(body)) return [];
    const properties = new Map<string, Node>();
    for (const { type, key, typeAnnotation } of body as Node[]) {
      const named = key as { name?: string; value?: string } | undefined;
      const name = named?.name ?? named?.value;
      if (type !== "TSPropertySignature" || name === undefined) continue;
      properties.set(name, (typeAnnotation as { typeAnnotation: Node }).typeAnnotation);
    }
    const inner = scopeOf(node, scope);
    const inherited = ((node.extends ?? []) as Node[]).flatMap(({ expression }) => {
      const found = resolve(nameOf(expression as Node), scope, file);
      return found === null ? [] : objectsOf(found);
    });
    return [{ properties, scope: inner, file }, ...inherited];
  });
}

/** An interface's own namespace, in which its members' types are declared. */
const scopeOf = (node: Node, scope: string): string => {
  const name = (node.id as { name?: string } | undefined)?.name;
  return name === undefined ? scope : scope === "" ? name : `${scope}.${name}`;
};

const textsOf = (start: Located): string[] =>
  branchesOf(start).flatMap(({ node }) => {
    const value = (node.literal as { value?: unknown } | undefined)?.value;
    return node.type === "TSLiteralType" && typeof value === "string" ? [value] : [];
  });
