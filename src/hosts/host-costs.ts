import type { Candidate } from "../routing/candidate.ts";
import type { FreeRoutes } from "../routing/open-tier/open-tier.ts";
import type { Clock } from "../units/clock.ts";
import type { Log } from "../units/log.ts";
import { type NanoUsd, usdFromNano } from "../units/usd.ts";

/**
 * Compares what hosts say that they charged for answers with what balances were charged for the same ones.
 * A price that went up at a host would otherwise show only on its bill.
 */
export class HostCosts {
  /** By host and its model: as many as routes have been configured. */
  private readonly routes = new Map<string, ComparedCosts>();

  constructor(private readonly deps: HostCostDeps) {}

  /** A host reported that an answer cost `saidUsd` there; `cost` is what it cost here. */
  charged({ model, route }: Candidate, saidUsd: number, cost: NanoUsd): void {
    if (saidUsd <= 0) return;
    const { metrics, freeRoutes, log } = this.deps;
    const at = { host: route.host.id, model: route.model };
    metrics.hostCharged(model.id, at.host, saidUsd);
    if (route.free) {
      log("free route charges", at);
      freeRoutes.doubt(route);
      return;
    }
    const undercharged = this.note(`${at.host} ${at.model}`, saidUsd, cost);
    if (undercharged !== null) log("host charges more", { ...at, ...undercharged });
  }

  /** What to report of the route now, at most once an hour; otherwise null. */
  private note(route: string, saidUsd: number, cost: NanoUsd): Undercharged | null {
    const nowMs = this.deps.clock.elapsedMs();
    let sums = this.routes.get(route);
    if (sums === undefined || nowMs - sums.sinceMs >= TOLD_EVERY_MS) {
      sums = { sinceMs: nowMs, isTold: false, saidUsd: 0, costUsd: 0 };
      this.routes.set(route, sums);
    }
    sums.saidUsd += saidUsd;
    sums.costUsd += usdFromNano(cost);
    const isMore = sums.saidUsd - sums.costUsd >= MIN_USD && sums.saidUsd > sums.costUsd * TOLERANCE;
    if (sums.isTold || !isMore) return null;
    sums.isTold = true;
    return { host_charged_usd: legible(sums.saidUsd), charged_usd: legible(sums.costUsd) };
  }
}

interface HostCostDeps {
  readonly clock: Pick<Clock, "elapsedMs">;
  readonly metrics: { hostCharged(model: string, host: string, usd: number): void };
  readonly freeRoutes: Pick<FreeRoutes, "doubt">;
  readonly log: Log;
}

/** Of the same answers, all within one hour. */
interface Undercharged {
  readonly host_charged_usd: number;
  readonly charged_usd: number;
}

interface ComparedCosts {
  readonly sinceMs: number;
  isTold: boolean;
  saidUsd: number;
  costUsd: number;
}

const TOLD_EVERY_MS = 3_600_000;
/** Without the traces of adding fractions. */
const legible = (usd: number): number => Number(usd.toFixed(6));

/** Hosts round, and count a prompt a little differently. */
const TOLERANCE = 1.05;
const MIN_USD = 0.01;
