import type { HostAnswer } from "./admin.ts";

/**
 * How many requests a host is given at once; null where that is only what a process can carry, set by nobody
 * and never cut. Stands alone, so that pages load no schema with it.
 */
export const limitInForce = ({
  limit,
  max_concurrent,
  cut_workers,
}: Pick<HostAnswer, "limit" | "max_concurrent" | "cut_workers">): number | null =>
  max_concurrent !== null || cut_workers > 0 ? limit : null;
