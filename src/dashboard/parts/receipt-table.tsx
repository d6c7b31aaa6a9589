import type { ReceiptAnswer, ReceiptState } from "../../api/receipts.ts";
import { count, milliseconds, moment, usdColumn, words } from "../format.ts";
import { TableCard } from "./table.tsx";

/** Receipts as rows, each with the way to its page. */
export const ReceiptTable = ({ rows, keyNames }: ReceiptTableProps) => {
  const cost = usdColumn(rows.map(({ cost_usd }) => cost_usd));
  return (
    <TableCard
      columns={[
        "Time",
        "Model",
        ["Key", "wide-only"],
        ["Outcome", "wide-only"],
        ["Tokens", "end wide-only"],
        ["First token", "end wide-only"],
        ["Cost", "end"],
      ]}
    >
      {rows.map((receipt) => (
        <tr key={receipt.id}>
          <td class="when">
            <a href={`#/receipts/${receipt.id}`}>{moment(receipt.created_at)}</a>
          </td>
          <td>
            {receipt.model ?? receipt.model_requested}
            {receipt.host !== null && <div class="soft small">{receipt.host}</div>}
            <div class="soft small narrow-only">{keyNames.get(receipt.key_id)}</div>
            {receipt.state !== "settled" && (
              <div class="narrow-only">
                <Outcome of={receipt} />
              </div>
            )}
          </td>
          <td class="wide-only">{keyNames.get(receipt.key_id) ?? <span class="soft">–</span>}</td>
          <td class="wide-only">
            <Outcome of={receipt} />
          </td>
          <td class="end wide-only">
            {count(receipt.tokens.input + receipt.tokens.cache_read + receipt.tokens.cache_write)} →{" "}
            {count(receipt.tokens.output)}
          </td>
          <td class="end wide-only">
            {receipt.first_token_ms === null ? "—" : milliseconds(receipt.first_token_ms)}
          </td>
          <td class="end">{cost(receipt.cost_usd)}</td>
        </tr>
      ))}
    </TableCard>
  );
};

interface ReceiptTableProps {
  readonly rows: readonly ReceiptAnswer[];
  /** By id; of the keys that are known. */
  readonly keyNames: ReadonlyMap<string, string>;
}

const TONES: Record<ReceiptState, "good" | "warn" | "bad" | "plain"> = {
  settled: "good",
  written_off: "warn",
  refused: "bad",
  failed: "bad",
  cancelled: "plain",
  recovered: "warn",
};

export const Outcome = ({ of }: { of: ReceiptAnswer }) => (
  <span class={`tag ${TONES[of.state]}-tag`}>{words(of.state)}</span>
);
