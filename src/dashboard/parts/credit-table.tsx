import type { CreditAnswer } from "../../api/credits.ts";
import type { List } from "../../api/schema.ts";
import { moment, usdColumn } from "../format.ts";
import { TableCard } from "./list.tsx";

/** What a balance was given, and what was taken back of it. */
export const CreditTable = ({ of: { data, has_more } }: { of: List<CreditAnswer> }) => {
  const usd = usdColumn(data.map(({ amount_usd }) => amount_usd));
  return (
    <>
      <TableCard
        of={data}
        // Entries of one moment come in no order that lasts.
        by={({ credited_at }, index) => `${credited_at} ${index}`}
        columns={[
          ["Time", "when", ({ credited_at }) => moment(credited_at)],
          [
            "Note",
            "",
            ({ note, amount_usd }) => note ?? <span class="soft">{amount_usd < 0 ? "Taken back" : "—"}</span>,
          ],
          [
            "Amount",
            "end",
            ({ amount_usd }) =>
              amount_usd < 0 ? usd(amount_usd) : <span class="good">{`+${usd(amount_usd)}`}</span>,
          ],
        ]}
      />
      {has_more && <p class="hint">These are the newest {data.length}.</p>}
    </>
  );
};
