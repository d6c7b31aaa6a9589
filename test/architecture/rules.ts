import { circles } from "./circles.ts";
import {
  COMPOSED,
  COMPOSITION,
  ELYSIA_ROOM,
  floorOf,
  IMPURE_GLOBALS,
  isPure,
  MAX_ARROWS,
  PURE_GLOBALS,
  PURE_PACKAGES,
  roomOf,
  SEPARATE,
  STATE,
} from "./layout.ts";
import type { Module } from "./module.ts";

/** What each rule finds wrong with modules, a sentence or a path for each. */
export const RULES = {
  "every room has a floor": (modules) =>
    unique(modules.map(({ path }) => roomOf(path)).filter((room) => floorOf(room) === 0)),

  "imports point down": (modules) =>
    importsOf(modules, ({ path, target }) => {
      const [from, to] = [roomOf(path), roomOf(target)];
      return from !== to && floorOf(to) >= floorOf(from);
    }),

  "separate folders do not import each other": (modules) =>
    importsOf(modules, ({ path, target }) => {
      const [from, to] = [separateFolder(path), separateFolder(target)];
      return from !== null && to !== null && from !== to;
    }),

  "Elysia is imported on the HTTP floor and nowhere below": (modules) =>
    modules
      .filter(({ path }) => floorOf(roomOf(path)) < floorOf(ELYSIA_ROOM))
      .filter(({ imports }) => imports.some(({ target }) => target.startsWith("elysia")))
      .map(({ path }) => path),

  "no circles of imports": (modules) => circles(modules, "values").map(listed),

  "no circles of imports with types": (modules) => circles(modules, "values and types").map(listed),

  "clock, randomness and I/O are passed in": (modules) =>
    modules.filter(({ path }) => isPure(path)).flatMap((module) => impurities(module).map(at(module))),

  "modules have no state": (modules) =>
    modules.filter(({ path }) => STATE[path] === undefined).flatMap((module) => module.state.map(at(module))),

  "parts that requests share are created in one file": (modules) =>
    modules
      .filter(({ path }) => path !== COMPOSITION)
      .flatMap((module) => module.created.filter((name) => COMPOSED.includes(name)).map(at(module))),

  "no type name is declared twice": (modules) => {
    const paths = new Map<string, string[]>();
    for (const { path, types } of modules)
      for (const name of types) paths.set(name, [...(paths.get(name) ?? []), path]);
    return [...paths].filter(([, among]) => among.length > 1).map(([name, among]) => `${name}: ${among}`);
  },

  "arrows between rooms do not increase": (modules) => {
    const count = arrows(modules).length;
    return count > MAX_ARROWS ? [`${count} arrows; at most ${MAX_ARROWS}: see \`bun run rooms\``] : [];
  },
} satisfies Record<string, Rule>;

type Rule = (modules: readonly Module[]) => string[];

interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly imports: number;
}

/** Which room imports which, and by how many lines. */
export function arrows(modules: readonly Module[]): Arrow[] {
  const counts = new Map<string, number>();
  for (const { path, imports } of modules)
    for (const { target, isOurs } of imports) {
      const arrow = `${roomOf(path)} ${roomOf(target)}`;
      if (isOurs && floorOf(roomOf(target)) > 0 && roomOf(path) !== roomOf(target))
        counts.set(arrow, (counts.get(arrow) ?? 0) + 1);
    }
  return [...counts].map(([arrow, imports]) => {
    const [from, to] = arrow.split(" ") as [string, string];
    return { from, to, imports };
  });
}

function importsOf(
  modules: readonly Module[],
  isWrong: (one: { path: string; target: string }) => boolean,
): string[] {
  return modules.flatMap(({ path, imports }) =>
    imports
      .filter(({ target, isOurs }) => isOurs && isWrong({ path, target }))
      .map(({ target }) => `${path} → ${target}`),
  );
}

function separateFolder(path: string): string | null {
  const parent = SEPARATE.find((folder) => path.startsWith(`${folder}/`));
  const [folder, inside] = parent === undefined ? [] : path.slice(parent.length + 1).split("/");
  return inside === undefined ? null : folder!;
}

const impurities = ({ globals, imports }: Module): string[] => [
  ...[...globals].filter((name) => !isPureGlobal(name)),
  ...imports
    .filter(({ isOurs, isType }) => !isOurs && !isType)
    .filter(({ target, names }) => {
      const allowed = PURE_PACKAGES[target] ?? [];
      return allowed !== "all" && (names.length === 0 || names.some((name) => !allowed.includes(name)));
    })
    .map(({ target, names }) => `${target} ${names}`.trim()),
];

const isPureGlobal = (name: string): boolean =>
  !IMPURE_GLOBALS.includes(name) &&
  PURE_GLOBALS.some((pure) => [name, created(name)].includes(pure) || name.startsWith(`${pure}.`));

/** The class of `new Map()`. A date without arguments is the time: `new Date(…)` is listed for itself. */
const created = (name: string): string => /^new (?!Date)(\S+)\(/.exec(name)?.[1] ?? name;

const at =
  ({ path }: Module) =>
  (what: string): string =>
    `${path}: ${what}`;

const listed = (paths: readonly string[]): string => paths.join(", ");
const unique = (names: readonly string[]): string[] => [...new Set(names)];
