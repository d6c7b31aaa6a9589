import { useState } from "preact/hooks";
import { type Cell, csvLine } from "../../units/csv.ts";
import { count } from "../format.ts";
import { useAction } from "../resource.ts";
import { Button } from "./button.tsx";
import { Problem } from "./page.tsx";

/** Saves rows as a file of comma-separated values, under a head of the columns' names. */
export function ExportButton<Row extends object>({ label, file, columns, rows }: ExportButtonProps<Row>) {
  const [read, setRead] = useState(0);
  const save = useAction(async () => {
    setRead(0);
    const cells = (await rows(setRead)).map((row) => columns.map((name) => cellOf(name, row[name])));
    const text = [columns, ...cells].map(csvLine).join("");
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: `${file}.csv` });
    link.click();
    URL.revokeObjectURL(url);
  });
  return (
    <>
      <Button
        label={save.busy ? `Reading… ${read === 0 ? "" : count(read)}` : "Export CSV"}
        about={`of ${label}`}
        action={save}
      />
      <Problem error={save.error} />
    </>
  );
}

interface ExportButtonProps<Row> {
  /** What is exported, for those who have the page read to them. */
  readonly label: string;
  /** Without its ending. */
  readonly file: string;
  /** Names of what the file has of each row, which are its headings. */
  readonly columns: readonly (keyof Row & string)[];
  /** `progress` receives how many there are so far. */
  readonly rows: (progress: (read: number) => void) => Promise<readonly Row[]>;
}

/** All decimals that an amount has, and never an exponent. */
function cellOf(name: string, value: unknown): Cell {
  if (typeof value !== "number") return value == null ? null : String(value);
  return name.endsWith("_usd") ? value.toFixed(9).replace(/\.?0+$/, "") : value;
}
