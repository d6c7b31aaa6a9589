import { eventOf, type RecordedEvent } from "../customers/events/event.ts";
import { type EpochMs, isoTime } from "../units/clock.ts";
import { type NanoUsd, usdFromNano } from "../units/usd.ts";

/** Requests of one model at one host whose cost is known: what balances were charged, and what the host charged. In nano-dollars. */
export interface MarginSum {
  readonly model: string;
  readonly host: string;
  readonly charged: number;
  readonly cost: number;
}

/** Each model, and each host, that cost more on that UTC day than was charged for it. */
export function marginEvents(sums: readonly MarginSum[], day: EpochMs, at: EpochMs): RecordedEvent[] {
  return (["model", "host"] as const).flatMap((of) =>
    [...Map.groupBy(sums, (sum) => sum[of])].flatMap(([name, rows]) => {
      const charged = total(rows, "charged");
      const cost = total(rows, "cost");
      if (cost - charged < MIN_LOSS) return [];
      return eventOf("margin.negative", `${of} ${name} ${day}`, {
        at,
        balance: null,
        [of]: name,
        day: isoTime(day).slice(0, "2026-01-01".length),
        charged_usd: usdFromNano(charged),
        host_cost_usd: usdFromNano(cost),
        margin_usd: usdFromNano((charged - cost) as NanoUsd),
      });
    }),
  );
}

const total = (rows: readonly MarginSum[], member: "charged" | "cost"): NanoUsd =>
  rows.reduce((sum, row) => sum + row[member], 0) as NanoUsd;

/** One cent: a single answer that broke off is no news. */
const MIN_LOSS = 10_000_000;
