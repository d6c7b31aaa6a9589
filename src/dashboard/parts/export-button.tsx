import { useState } from "preact/hooks";
import { type Cell, csvLine } from "../../units/csv.ts";
import { count } from "../format.ts";
import { useAction } from "../resource.ts";
import { Problem } from "./notice.tsx";

/** Saves rows as a file of comma-separated values, under a head of the columns' names. */
export function ExportButton({ label, file, columns, rows }: ExportButtonProps) {
  const [read, setRead] = useState(0);
  const save = useAction(async () => {
    setRead(0);
    const text = [columns, ...(await rows(setRead))].map(csvLine).join("");
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: `${file}.csv` });
    link.click();
    URL.revokeObjectURL(url);
  });
  return (
    <>
      <button type="button" class="quiet" disabled={save.busy} onClick={() => save.run()}>
        {save.busy ? `Reading… ${read === 0 ? "" : count(read)}` : "Export CSV"}
        <span class="unseen"> of {label}</span>
      </button>
      <Problem error={save.error} />
    </>
  );
}

interface ExportButtonProps {
  /** What is exported, for those who have the page read to them. */
  readonly label: string;
  /** Without its ending. */
  readonly file: string;
  readonly columns: readonly string[];
  /** `progress` is told how many there are so far. */
  readonly rows: (progress: (read: number) => void) => Promise<readonly (readonly Cell[])[]>;
}

/** All decimals that an amount has, and never an exponent. */
export const usdCell = (amount: number): string => amount.toFixed(9).replace(/\.?0+$/, "");
