import type { CreditAnswer } from "../../api/credits.ts";
import { moment, usd } from "../format.ts";
import { TableCard } from "./table.tsx";

/** What a balance was given, and what was taken back of it. */
export const CreditTable = ({ of }: { of: readonly CreditAnswer[] }) => (
  <TableCard columns={["Time", "Note", ["Amount", "end"]]}>
    {of.map(({ credited_at, note, amount_usd }, index) => (
      // Entries of one moment come in no order that lasts.
      <tr key={`${credited_at} ${index}`}>
        <td>{moment(credited_at)}</td>
        <td>{note ?? <span class="soft">{amount_usd < 0 ? "Taken back" : "—"}</span>}</td>
        <td class={amount_usd < 0 ? "end" : "end good"}>{signed(amount_usd)}</td>
      </tr>
    ))}
  </TableCard>
);

const signed = (amount: number): string => (amount < 0 ? usd(amount) : `+${usd(amount)}`);
