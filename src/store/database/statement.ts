/** A statement, or a part of one: its text, with values in between, of which some may be parts themselves. */
export class SqlPart {
  constructor(
    private readonly texts: readonly string[],
    private readonly values: readonly SqlValue[],
  ) {}

  /** As a database takes it: `placeholder` is what it calls the value of this number, from 1. */
  written(placeholder: (number: number) => string): WrittenSql {
    const values: (string | number | null)[] = [];
    const write = (part: SqlPart): string =>
      part.texts.reduce((text, next, at) => {
        const value = part.values[at - 1]!;
        return text + (value instanceof SqlPart ? write(value) : placeholder(values.push(value))) + next;
      });
    return { text: write(this), values };
  }
}

export interface WrittenSql {
  readonly text: string;
  readonly values: (string | number | null)[];
}

export type SqlValue = string | number | null | SqlPart;

export const sql = (texts: TemplateStringsArray, ...values: SqlValue[]): SqlPart =>
  new SqlPart(texts, values);

/** What is in the code, never a value. */
export const verbatim = (text: string): SqlPart => new SqlPart([text], []);

/** `("a", "b") VALUES (1, 2)` */
export function inserted(row: SqlRow): SqlPart {
  const names = Object.keys(row).map((name) => `"${name}"`);
  const texts = names.map((_, at) => (at === 0 ? `(${names.join(", ")}) VALUES (` : ", "));
  return new SqlPart([...texts, ")"], Object.values(row));
}

/** `"a" = 1, "b" = 2` */
export function assigned(row: SqlRow): SqlPart {
  const texts = Object.keys(row).map((name, at) => `${at === 0 ? "" : ", "}"${name}" = `);
  return new SqlPart([...texts, ""], Object.values(row));
}

/** Where a page begins behind the row of that id, newest first; with null, at the start. */
export const behind = (table: string, id: string | null): SqlPart =>
  sql`coalesce((SELECT created_at FROM ${verbatim(table)} WHERE id = ${id}), ${Number.MAX_SAFE_INTEGER}),
    coalesce(CAST(${id} AS TEXT), '')`;

type SqlRow = Readonly<Record<string, string | number | null>>;

/** A statement of a commit, with the number of rows that it must change, or find if it only `finds`. */
export interface Expected {
  readonly part: SqlPart;
  readonly rows: number;
  readonly finds?: true;
}

/** A bare statement may change any number of rows. */
export type CommitStatement = SqlPart | Expected;

/** What is committed, in order; what is not needed is null or undefined. */
export type Batch = readonly (CommitStatement | Batch | null | undefined)[];

export const flattened = (batch: Batch): readonly CommitStatement[] =>
  batch.flatMap((one) => (Array.isArray(one) ? flattened(one) : ((one ?? []) as CommitStatement)));

export const changes = (rows: number, part: SqlPart): Expected => ({ part, rows });
export const changesOne = (part: SqlPart): Expected => changes(1, part);
export const finds = (rows: number, part: SqlPart): Expected => ({ part, rows, finds: true });

/** Of a row that people change. */
export interface VersionedRow {
  readonly id: string;
  readonly version: number;
}

/** Counts the change of a row that people change; a conflict where somebody else has changed it since it was read. */
export const touch = (table: "accounts" | "balances", { id, version }: VersionedRow): Expected =>
  changesOne(
    sql`UPDATE ${verbatim(table)} SET version = version + 1 WHERE id = ${id} AND version = ${version}`,
  );
