import type { HealthDesk } from "../../src/hosts/attempt.ts";

/** Knows nothing of any host, and never learns: every request tries the hosts as if it were the first. */
export const BLIND_HEALTH: HealthDesk = {
  begin() {},
  enter() {},
  mayRetry: () => true,
  patienceMs: () => null,
  usable: () => true,
};
