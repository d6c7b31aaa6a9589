import type { TSchema } from "@sinclair/typebox";
import type { Setting, SettingRows } from "../src/config/setting.ts";
import { SETTINGS } from "../src/config/settings.ts";

const DOCUMENT = `${import.meta.dir}/../docs/configuration.md`;
const TABLE = /(<!-- settings: (.+) -->\n)[\s\S]*?(<!-- end -->)/g;
const ROWS: SettingRows = SETTINGS.rows;

/**
 * Fills the tables of docs/configuration.md from the rows of the settings: `bun run document:settings`. A table is of
 * the settings that its comment names, of the members of the one that it names, or of the others: those of no table.
 */
export function withSettings(document: string): string {
  const named = new Set([...document.matchAll(TABLE)].flatMap(([, , names]) => names!.split(", ")));
  return document.replace(TABLE, (_, start: string, names: string, end: string) => {
    const of = names === "others" ? Object.keys(ROWS).filter((name) => !named.has(name)) : names.split(", ");
    const rows = Object.fromEntries(of.map((name) => [name, ROWS[name]!]));
    const members = of.length === 1 ? ROWS[of[0]!]?.rows : undefined;
    return `${start}\n${table(lines(members ?? rows))}\n${end}`;
  });
}

type Line = readonly [name: string, meaning: string, fallback: string];

/** A line for each setting; a map of them has one if it says something of itself. */
const lines = (rows: SettingRows, prefix = ""): Line[] =>
  Object.entries(rows).flatMap(([name, row]) => [
    ...(row.doc === "" ? [] : [line(`${prefix}${name}`, row)]),
    ...(row.rows === undefined
      ? []
      : lines(row.rows, `${prefix}${name}${row.schema.type === "array" ? "[]" : ""}.`)),
  ]);

const line = (name: string, row: Setting<TSchema, unknown>): Line => [
  `\`${name}\``,
  `${row.doc}${row.restart === true ? "; read at the start" : ""}`,
  row.otherwise ?? written(row.shown ?? row.show(row.fallback)),
];

function written(value: unknown): string {
  if (Array.isArray(value)) return value.map(written).join(", ");
  if (typeof value === "number") return String(value);
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

/** As the formatter has them. */
function table(rows: readonly Line[]): string {
  const all = [["key", "meaning", "default"], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  const [head, ...body] = all.map(
    (row) => `| ${row.map((cell, at) => cell.padEnd(widths[at]!)).join(" | ")} |\n`,
  );
  return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |\n`, ...body].join("");
}

if (import.meta.main) await Bun.write(DOCUMENT, withSettings(await Bun.file(DOCUMENT).text()));
