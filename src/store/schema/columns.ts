import { SqlPart } from "../database/database.ts";

/**
 * A table's columns, by the members of what is kept in it: in a statement, what stands behind SELECT. A column is called
 * as its member, in snake case, and has its value, unless `forms` says otherwise.
 */
export class TableColumns<Kept extends object> extends SqlPart {
  private readonly columns: readonly TableColumn[];

  constructor(members: string, forms: Partial<Record<keyof Kept & string, string | Form>> = {}, table = "") {
    const columns = members.split(/\s+/).map((member): TableColumn => {
      const form = forms[member as keyof Kept & string] ?? snakeCase(member);
      return typeof form === "string"
        ? { member, name: form, form: null }
        : { member, name: snakeCase(member), form };
    });
    super([columns.map(({ member, name }) => `${table}"${name}" AS "${member}"`).join(", ")], []);
    this.columns = columns;
  }

  /** As `inserted` and `assigned` take it; members that are left out are left out. */
  row(kept: Partial<Kept>): Record<string, ColumnValue> {
    const row: Record<string, ColumnValue> = {};
    for (const { member, name, form } of this.columns) {
      const value = kept[member as keyof Kept] as ColumnValue | undefined;
      if (value !== undefined) row[name] = form === null ? value : form.write(value);
    }
    return row;
  }

  /** From what a statement has answered. */
  readonly read = (row: object): Kept => {
    const kept = { ...row } as Record<string, unknown>;
    for (const { member, form } of this.columns) if (form !== null) kept[member] = form.read(kept[member]);
    return kept as Kept;
  };
}

const snakeCase = (member: string): string =>
  member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

type ColumnValue = string | number | null;

/** How a value is written in its column. */
interface Form {
  write(value: unknown): ColumnValue;
  read(column: unknown): unknown;
}

interface TableColumn {
  readonly member: string;
  readonly name: string;
  readonly form: Form | null;
}

/** Null stays null. */
export const AS_JSON: Form = {
  write: (value) => (value === null ? null : JSON.stringify(value)),
  read: (column) => (column === null ? null : JSON.parse(column as string)),
};

export const AS_NUMBER: Form = { write: (flag) => (flag === true ? 1 : 0), read: (column) => column === 1 };

/** With a space between two. */
export const AS_WORDS: Form = {
  write: (words) => (words as readonly string[]).join(" "),
  read: (column) => (column === "" ? [] : (column as string).split(" ")),
};

/**
 * Columns that the code names differently. The last release may still run on a database while this one starts, so columns
 * keep the names that they were made with.
 */
export const ANSWERED_INQUIRY = "heard";
export const NEXT_POLL_AT = "look_at";
export const ROTATION_ID = "lineage";
