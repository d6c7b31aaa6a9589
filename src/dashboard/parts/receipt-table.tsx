import type { ReceiptAnswer, ReceiptState } from "../../api/receipts.ts";
import { count, milliseconds, moment, usdColumn, words } from "../format.ts";
import { type Column, TableCard } from "./table.tsx";

/** Receipts as rows, each with the way to its page. */
export const ReceiptTable = ({ rows, keyNames }: ReceiptTableProps) => {
  const cost = usdColumn(rows.map(({ cost_usd }) => cost_usd));
  const columns: Column<ReceiptAnswer>[] = [
    ["Time", "when", ({ id, created_at }) => <a href={`#/receipts/${id}`}>{moment(created_at)}</a>],
    ["Model", "", (receipt) => <Model of={receipt} keyName={keyNames.get(receipt.key_id)} />],
    ["Key", "wide-only", ({ key_id }) => keyNames.get(key_id) ?? <span class="soft">–</span>],
    ["Outcome", "wide-only", (receipt) => <Outcome of={receipt} />],
    [
      "Tokens",
      "end wide-only",
      ({ tokens: { input, cache_read, cache_write, output } }) =>
        `${count(input + cache_read + cache_write)} → ${count(output)}`,
    ],
    ["First token", "end wide-only", ({ first_token_ms: ms }) => (ms === null ? "—" : milliseconds(ms))],
    ["Cost", "end", ({ cost_usd }) => cost(cost_usd)],
  ];
  return <TableCard of={rows} by={({ id }) => id} columns={columns} />;
};

interface ReceiptTableProps {
  readonly rows: readonly ReceiptAnswer[];
  /** By id; of the keys that are known. */
  readonly keyNames: ReadonlyMap<string, string>;
}

const Model = ({ of, keyName }: { of: ReceiptAnswer; keyName: string | undefined }) => (
  <>
    {of.model ?? of.model_requested}
    {of.host !== null && <div class="soft small">{of.host}</div>}
    <div class="soft small narrow-only">{keyName}</div>
    {of.state !== "settled" && (
      <div class="narrow-only">
        <Outcome of={of} />
      </div>
    )}
  </>
);

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
