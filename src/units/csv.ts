/** Null is an empty cell. */
export type Cell = string | number | null;

/** Comma-separated values, for spreadsheets. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(csvCell).join(",")}\n`;

/**
 * Spreadsheets take text that begins like a formula for one, and would run it: an apostrophe makes them show
 * it.
 */
function csvCell(cell: Cell): string {
  if (typeof cell !== "string") return String(cell ?? "");
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const FORMULA = /^[=+\-@\t\r\n]/;
const SPECIAL = /[",\t\r\n]/;
