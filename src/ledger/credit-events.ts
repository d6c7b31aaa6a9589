import { eventOf, type RecordedEvent } from "../customers/events/event.ts";
import type { EpochMs } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, usdFromNano } from "../units/usd.ts";

/** In nano-dollars. */
export interface CreditSums {
  readonly credited: number;
  readonly spent: number;
}

/**
 * What a charge, or credit that is taken back, means for the owner: credit fell below what the operator named, or nothing is
 * left. One transaction crosses each line, so each crossing is found once, whatever processes end in between.
 */
export function creditEvents(
  balance: BalanceId,
  before: CreditSums,
  after: CreditSums,
  { low, at }: { readonly low: NanoUsd | null; readonly at: EpochMs },
): readonly RecordedEvent[] {
  const had = before.credited - before.spent;
  const left = after.credited - after.spent;
  const crosses = (line: number) => had >= line && left < line;
  const what = `${balance} ${after.credited} ${after.spent}`;
  const facts = { at, balance, left_usd: usdFromNano(left as NanoUsd) };
  return [
    ...(low !== null && crosses(low)
      ? [eventOf("credit.low", what, { ...facts, below_usd: usdFromNano(low) })]
      : []),
    // Below one nano-dollar.
    ...(crosses(1) ? [eventOf("credit.exhausted", what, facts)] : []),
  ];
}
