import type { Cell } from "../units/csv.ts";
import type { Client, Filters } from "./client.ts";
import { type CommandContext, show, table } from "./console.ts";
import { withProgress } from "./progress.ts";

/** A list of the gateway's, and how people see it. */
interface Listing<Row> {
  readonly path: string;
  readonly filters?: Filters;
  /** What the rows are. */
  readonly noun: string;
  readonly head: readonly string[];
  cells(row: Row): readonly Cell[];
  /** Lines behind the table. */
  notes?(rows: readonly Row[]): readonly string[];
}

/** Shows up to `--limit` rows, which are counted on the terminal while they are read. */
export async function showList<Row extends { readonly id: string }>(
  { path, filters, noun, head, cells, notes = () => [] }: Listing<Row>,
  client: Client,
  { json, limit }: { readonly json: boolean; readonly limit: number },
  context: CommandContext,
): Promise<void> {
  const { rows, more } = await withProgress(context, (progress) =>
    client.all<Row>(path, limit, (count) => progress(count, null, noun), filters),
  );
  show(context, json, { data: rows, has_more: more }, [
    ...table(head, rows.map(cells)),
    ...notes(rows),
    ...(more ? [`… and more: raise --limit above ${limit} to see them`] : []),
  ]);
}
