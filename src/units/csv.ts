/** Null is an empty cell. */
export type Cell = string | number | null;

/** Comma-separated values, for spreadsheets. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(csvCell).join(",")}\n`;

/**
 * Spreadsheets take text that begins like a formula for one, and would run it: an apostrophe makes them show
 * it. In countries where they separate cells by semicolons, it may begin within what is one cell here.
 */
function csvCell(cell: Cell): string {
  if (typeof cell !== "string") return String(cell ?? "");
  const text = (FORMULA.test(cell) ? `'${cell}` : cell).replace(INNER_FORMULA, "$&'");
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const FORMULA = /^[=+\-@\t\r\n]/;
const INNER_FORMULA = /[;\t\r\n]"*(?=[=+\-@])/g;
const SPECIAL = /[",\t\r\n]/;
