import { useState } from "preact/hooks";
import type { ReceiptAnswer, ReceiptState } from "../../api/receipts.ts";
import { count, milliseconds, second, timeZone, usdColumn, words } from "../format.ts";
import { type Column, TableCard } from "./table.tsx";

/** Receipts as rows, each with the way to its page; those that are here can be ordered by a column. */
export const ReceiptTable = ({ rows, keyNames }: ReceiptTableProps) => {
  const [order, setOrder] = useState<Order | null>(null);
  const cost = usdColumn(rows.map(({ cost_usd }) => cost_usd));
  const by = (name: Order) => ({
    isBy: order === name,
    onSort: () => setOrder(order === name ? null : name),
  });
  const columns: Column<ReceiptAnswer>[] = [
    [
      `Time (${timeZone()})`,
      "when",
      ({ id, created_at }) => (
        <a href={`#/receipts/${id}`} title={created_at}>
          {second(created_at)}
        </a>
      ),
    ],
    ["Model", "", ({ model, model_requested }) => model ?? model_requested ?? "—"],
    ["Host", "soft", ({ host }) => host ?? "—"],
    [
      "Key",
      "",
      ({ key_id }) => <a href={`#/keys/${key_id}`}>{keyNames.get(key_id) ?? `…${key_id.slice(-6)}`}</a>,
    ],
    ["Outcome", "", (receipt) => <Outcome of={receipt} />],
    [
      "Tokens",
      "end",
      (receipt) => `${count(inputOf(receipt))} → ${count(receipt.tokens.output)}`,
      by("tokens"),
    ],
    [
      "First token",
      "end",
      ({ first_token_ms: ms }) => (ms === null ? "—" : milliseconds(ms)),
      by("first_token"),
    ],
    ["Cost", "end", ({ cost_usd }) => cost(cost_usd), by("cost")],
  ];
  const shown = order === null ? rows : rows.toSorted((a, b) => MEASURES[order](b) - MEASURES[order](a));
  return <TableCard of={shown} by={({ id }) => id} columns={columns} />;
};

interface ReceiptTableProps {
  readonly rows: readonly ReceiptAnswer[];
  /** By id; of the keys that are known. */
  readonly keyNames: ReadonlyMap<string, string>;
}

type Order = "tokens" | "first_token" | "cost";

const inputOf = ({ tokens: { input, cache_read, cache_write } }: ReceiptAnswer): number =>
  input + cache_read + cache_write;

const MEASURES: Record<Order, (receipt: ReceiptAnswer) => number> = {
  tokens: (receipt) => inputOf(receipt) + receipt.tokens.output,
  first_token: ({ first_token_ms }) => first_token_ms ?? 0,
  cost: ({ cost_usd }) => cost_usd,
};

const TONES: Record<ReceiptState, "good" | "warn" | "bad" | "plain"> = {
  settled: "good",
  written_off: "warn",
  refused: "bad",
  failed: "bad",
  cancelled: "plain",
  recovered: "warn",
};

export const StateTag = ({ of: { state } }: { of: Pick<ReceiptAnswer, "state"> }) => (
  <span class={`tag ${TONES[state]}-tag`}>{words(state)}</span>
);

const Outcome = ({ of }: { of: Pick<ReceiptAnswer, "state" | "error_code"> }) => (
  <>
    <StateTag of={of} />
    {of.error_code !== null && <div class="soft small">{words(of.error_code)}</div>}
  </>
);
