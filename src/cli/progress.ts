import { type CommandContext, printable } from "./console.ts";

/**
 * Runs work that may take a while, with a bar on stderr where that is a terminal, and nothing at all where it
 * is not.
 */
export async function withProgress<Result>(
  context: Pick<CommandContext, "columns" | "err">,
  work: (progress: Progress) => Promise<Result>,
): Promise<Result> {
  const { columns } = context;
  if (columns === null) return work(() => {});
  let drawn = false;
  try {
    return await work((done, total, doing) => {
      drawn = true;
      context.err(`\r${CLEAR_LINE}${bar(done, total, doing, columns)}`);
    });
  } finally {
    if (drawn) context.err(`\r${CLEAR_LINE}`);
  }
}

/** `total` null: it is not known how much there is. */
export type Progress = (done: number, total: number | null, doing: string) => void;

const CLEAR_LINE = "\u001b[2K";
const BAR_WIDTH = 24;

/**
 * `[######··················] 3/12 asking openai`, never wider than the terminal, which would wrap and not be
 * cleared.
 */
export function bar(done: number, total: number | null, doing: string, columns: number): string {
  const filled = total === null || total === 0 ? 0 : Math.round((BAR_WIDTH * Math.min(done, total)) / total);
  const drawn = `[${"#".repeat(filled)}${"·".repeat(BAR_WIDTH - filled)}]`;
  const count = total === null ? `${done}` : `${done}/${total}`;
  return (total === null ? `${count} ${printable(doing)}` : `${drawn} ${count} ${printable(doing)}`).slice(
    0,
    columns - 1,
  );
}

/** Asks about each, so many at a time; what comes of it is in the order of the rows. */
export async function inBatches<Row, Result>(
  rows: readonly Row[],
  atOnce: number,
  doing: string,
  progress: Progress,
  check: (row: Row) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let from = 0; from < rows.length; from += atOnce) {
    progress(from, rows.length, doing);
    results.push(...(await Promise.all(rows.slice(from, from + atOnce).map(check))).flat());
  }
  return results;
}
