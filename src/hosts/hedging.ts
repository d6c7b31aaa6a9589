import { atMost, type Clock } from "../units/clock.ts";

/**
 * Hedging (`routing.hedge_ms`): a stream that has no first token after this time is requested from the plan's next host as
 * well. The host whose first token arrives first serves the request; `hosts/failover` cancels the other as `LOST_HEDGE`. So at
 * most two hosts work on a request at the same time.
 */
export interface Hedged {
  readonly startedMs: number;
  readonly ended: Promise<unknown>;
}

/** The attempt that ends first; null if a single one is not over after `hedgeMs`, and the next host should be asked as well. */
export async function firstToEnd<Attempt extends Hedged>(
  [first, second]: readonly Attempt[],
  hedgeMs: number,
  clock: Pick<Clock, "after" | "elapsedMs">,
): Promise<Attempt | null> {
  if (second !== undefined) return Promise.race([whenEnded(first!), whenEnded(second)]);
  const waitMs = Math.max(0, first!.startedMs + hedgeMs - clock.elapsedMs());
  return (await atMost(clock, waitMs, whenEnded(first!))) ?? null;
}

const whenEnded = async <Attempt extends Hedged>(attempt: Attempt): Promise<Attempt> => {
  await attempt.ended;
  return attempt;
};
