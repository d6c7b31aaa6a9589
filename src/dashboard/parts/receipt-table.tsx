import type { ReceiptAnswer, ReceiptState } from "../../api/receipts.ts";
import { count, milliseconds, second, timeZone, usdColumn, words } from "../format.ts";
import { useField } from "./field.tsx";
import { useKeyNames } from "./key-state.tsx";
import { type Column, sortedBy, TableCard } from "./list.tsx";

/** Receipts as rows, each with the way to its page; those that are here can be ordered by a column. */
export function ReceiptTable({ rows, keysAt }: ReceiptTableProps) {
  const order = useField("");
  const cost = usdColumn(rows.map(({ cost_usd }) => cost_usd));
  const keyIds = rows.map(({ key_id }) => key_id);
  const keyNames = useKeyNames(keysAt, keyIds);
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
      sortedBy(order, "tokens"),
    ],
    [
      "First token",
      "end",
      ({ first_token_ms: ms }) => (ms === null ? "—" : milliseconds(ms)),
      sortedBy(order, "first_token"),
    ],
    ["Cost", "end", ({ cost_usd }) => cost(cost_usd), sortedBy(order, "cost")],
  ];
  const measure = MEASURES[order.value];
  const shown = measure === undefined ? rows : rows.toSorted((a, b) => measure(b) - measure(a));
  return <TableCard of={shown} columns={columns} />;
}

interface ReceiptTableProps {
  readonly rows: readonly ReceiptAnswer[];
  /** Where their keys are listed; null where they are everybody's. */
  readonly keysAt: string | null;
}

const inputOf = ({ tokens: { input, cache_read, cache_write } }: ReceiptAnswer): number =>
  input + cache_read + cache_write;

const MEASURES: Readonly<Record<string, (receipt: ReceiptAnswer) => number>> = {
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
