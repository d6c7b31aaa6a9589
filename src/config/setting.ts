import { type Static, type TObject, type TOptional, type TSchema, Type } from "@sinclair/typebox";
import type { CamelCase } from "../units/camel-case.ts";
import type { Path, ReportProblem } from "./problem.ts";

/**
 * A setting is one row: what a file may say, what the gateway makes of it, what holds where the file says nothing, how
 * it is shown to the operator, and what it means. The schema of the file, the type `Config`, its defaults, the reading
 * and the view of the operator derive from the rows, and so do the tables of docs/configuration.md.
 */
export interface Setting<Schema extends TSchema, Value> extends SettingKind<Schema, Value>, SettingNotes {
  /** Undefined: the member is absent. */
  readonly fallback: Value;
}

export type SettingRows = Readonly<Record<string, Setting<TSchema, unknown>>>;

/** What several settings have in common, such as being a number of milliseconds. */
export interface SettingKind<Schema extends TSchema, Value> {
  readonly schema: Schema;
  /** Undefined once it reported a problem: the fallback stands in, so that one mistake is reported once. */
  read(written: Static<Schema>, path: Path, report: ReportProblem): Value | undefined;
  /** The value as a file has it, without secrets. */
  show(value: Value): unknown;
  /** The settings that a map, or each map of a list, consists of. */
  readonly rows?: SettingRows;
}

interface SettingNotes {
  /** For docs/configuration.md. */
  readonly doc: string;
  /** What docs/configuration.md says instead of the fallback. */
  readonly otherwise?: string;
  /** What the view has where the member is absent, because another room has the fallback. */
  readonly shown?: unknown;
  /** Read at the start only: a reload reports that it needs a restart. */
  readonly restart?: true;
  /** Nodes of one store may differ in it. */
  readonly perNode?: true;
}

export type ValueOf<Of> = Of extends SettingKind<infer _, infer Value> ? Value : never;

/** The members that rows make: `daily_limit_usd`, in nano-dollars by then, is `dailyLimit`. */
export type Values<R extends SettingRows> = Flat<
  {
    readonly [Name in keyof R & string as undefined extends ValueOf<R[Name]>
      ? never
      : MemberName<Name>]: ValueOf<R[Name]>;
  } & {
    readonly [Name in keyof R & string as undefined extends ValueOf<R[Name]>
      ? MemberName<Name>
      : never]?: Exclude<ValueOf<R[Name]>, undefined>;
  }
>;

type Flat<T> = { [Name in keyof T]: T[Name] };
type MemberName<Name extends string> = CamelCase<
  Name extends `${infer Before}_usd${infer After}` ? `${Before}${After}` : Name
>;
export const memberName = (name: string): string =>
  name.replace("_usd", "").replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

export const setting = <S extends TSchema, V, F extends V | null | undefined>(
  kind: SettingKind<S, V>,
  fallback: F,
  about: SettingNotes,
): Setting<TOptional<S>, V | F> => ({
  ...(kind as SettingKind<S, V | F>),
  ...about,
  schema: Type.Optional(kind.schema) as TOptional<S>,
  fallback,
});

/** A file that has the map around it has to have this member. */
export const required = <S extends TSchema, V>(kind: SettingKind<S, V>, doc: string): Setting<S, V> => ({
  ...kind,
  doc,
  otherwise: "required",
  fallback: undefined as V,
});

/** A map that may be left out, because all of its members may. */
export const section = <R extends SettingRows, V>(
  kind: MapOf<R, V>,
): Setting<TOptional<TObject<RowSchemas<R>>>, V> =>
  setting(kind, kind.read({} as Static<TObject<RowSchemas<R>>>, [], () => {}) as V, { doc: "" });

/** Each null is allowed by the schema, and means itself. */
export const orNull = <S extends TSchema, V>({ schema, ...kind }: SettingKind<S, V>, meaning: string) => ({
  ...(kind as Pick<SettingKind<S, V | null>, "read" | "show">),
  schema: Type.Union([schema, Type.Null()], { expected: `${schema.expected}, or null ${meaning}` }),
});

export const listOf = <S extends TSchema, V>(kind: SettingKind<S, V>, expected: string) => ({
  schema: Type.Array(kind.schema, { minItems: 1, expected }),
  read: (written: readonly Static<S>[], path: Path, report: ReportProblem): V[] =>
    written.map((row, index) => kind.read(row, [...path, index], report) as V),
  show: (values: readonly V[]) => values.map((value) => kind.show(value)),
  ...(kind.rows === undefined ? {} : { rows: kind.rows }),
});

type RowSchemas<R extends SettingRows> = { [Name in keyof R]: R[Name]["schema"] };

export interface MapOf<R extends SettingRows, V> extends SettingKind<TObject<RowSchemas<R>>, V> {
  readonly rows: R;
}

/** A map of these settings, and no others. */
export const mapOf = <R extends SettingRows>(
  rows: R,
  expected = `a map: { ${Object.keys(rows).join(", ")} }`,
): MapOf<R, Values<R>> => ({
  rows,
  schema: Type.Object(schemasOf(rows), { additionalProperties: false, expected }),
  read: (written, path, report) => readRows(rows, written as SettingMembers, path, report) as Values<R>,
  show: (values) => showRows(rows, values as SettingMembers),
});

/** What the settings of a map come to together, where no row alone can tell; `split` takes it apart again. */
export const joined = <R extends SettingRows, V>(
  kind: MapOf<R, Values<R>>,
  join: (values: Values<R>, written: Static<TObject<RowSchemas<R>>>, path: Path, report: ReportProblem) => V,
  split: (value: V) => Values<R>,
): MapOf<R, V> => ({
  ...kind,
  read: (written, path, report) => join(kind.read(written, path, report)!, written, path, report),
  show: (value) => kind.show(split(value)),
});

type SettingMembers = Readonly<Record<string, unknown>>;

const schemasOf = <R extends SettingRows>(rows: R): RowSchemas<R> =>
  Object.fromEntries(Object.entries(rows).map(([name, { schema }]) => [name, schema])) as RowSchemas<R>;

function readRows(
  rows: SettingRows,
  written: SettingMembers,
  path: Path,
  report: ReportProblem,
): SettingMembers {
  const read = (name: string, row: Setting<TSchema, unknown>): unknown => {
    const value = written[name];
    if (value === undefined || value === null) return value === null ? null : row.fallback;
    return row.read(value, [...path, name], report) ?? row.fallback;
  };
  return present(Object.entries(rows).map(([name, row]) => [memberName(name), read(name, row)]));
}

function showRows(rows: SettingRows, values: SettingMembers): SettingMembers {
  const show = (row: Setting<TSchema, unknown>, value: unknown): unknown =>
    value === undefined ? row.shown : value === null ? null : row.show(value);
  return present(Object.entries(rows).map(([name, row]) => [name, show(row, values[memberName(name)])]));
}

const present = (members: readonly (readonly [string, unknown])[]): SettingMembers =>
  Object.fromEntries(members.filter(([, value]) => value !== undefined));
