import type { Clock } from "../units/clock.ts";
import { StoreUnreachable } from "../units/errors/bookkeeping.ts";
import { faultsTo, type Log } from "../units/log.ts";

/**
 * Logs each mistake of the gateway's own, and why requests were refused because the store could not be reached: once at
 * first, then every ten seconds with how many more there were, so that an outage does not fill the log.
 */
export function faultsAndOutagesTo(log: Log, clock: Pick<Clock, "elapsedMs">): ReturnType<typeof faultsTo> {
  const fault = faultsTo(log);
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  let more = 0;
  return (error, receipt) => {
    if (!(error instanceof StoreUnreachable)) return fault(error, receipt);
    if (clock.elapsedMs() < quietUntilMs) {
      more += 1;
      return;
    }
    log("store unreachable", { receipt, error: error.message, ...(more > 0 ? { more } : {}) });
    quietUntilMs = clock.elapsedMs() + INTERVAL_MS;
    more = 0;
  };
}

const INTERVAL_MS = 10_000;
