import type { List } from "../../api/answers.ts";
import type { CreditAnswer } from "../../api/credits.ts";
import { moment, usdColumn } from "../format.ts";
import { TableCard } from "./table.tsx";

/** What a balance was given, and what was taken back of it. */
export const CreditTable = ({ of: { data, has_more } }: { of: List<CreditAnswer> }) => {
  const usd = usdColumn(data.map(({ amount_usd }) => amount_usd));
  return (
    <>
      <TableCard columns={["Time", "Note", ["Amount", "end"]]}>
        {data.map(({ credited_at, note, amount_usd }, index) => (
          // Entries of one moment come in no order that lasts.
          <tr key={`${credited_at} ${index}`}>
            <td class="when">{moment(credited_at)}</td>
            <td>{note ?? <span class="soft">{amount_usd < 0 ? "Taken back" : "—"}</span>}</td>
            <td class={amount_usd < 0 ? "end" : "end good"}>
              {amount_usd < 0 ? usd(amount_usd) : `+${usd(amount_usd)}`}
            </td>
          </tr>
        ))}
      </TableCard>
      {has_more && <p class="hint">These are the newest {data.length}.</p>}
    </>
  );
};
