import type { Tokens } from "../catalog/tokens.ts";
import { costOf, ratesFor } from "../ledger/charge.ts";
import type { MarginSum } from "../ledger/margin-events.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { FreeRoutes } from "../routing/open-tier/open-tier.ts";
import { type Clock, HOUR_MS } from "../units/clock.ts";
import type { Log } from "../units/log.ts";
import { NANO_PER_USD, type NanoUsd, usdFromNano } from "../units/usd.ts";

/**
 * Compares what hosts charge for answers (as they report, else by the configured cost) with what balances were charged for the
 * same answers. Otherwise a price rise at a host would show only on its bill.
 */
export class HostCosts {
  /** By host and its model: as many as routes have been configured. */
  private readonly routes = new Map<string, ComparedCosts>();
  /** By model and host. */
  private readonly margins = new Map<string, MarginSum>();

  constructor(private readonly deps: HostCostDeps) {}

  /** Records an answer's tokens and the cost that its host reported, if any. Returns its cost, if known. */
  answered(candidate: Candidate, tokens: Tokens, reportedUsd: number | undefined): NanoUsd | undefined {
    const { cost } = candidate.route;
    if (reportedUsd === undefined && cost === undefined) return undefined;
    const nano =
      reportedUsd === undefined ? costOf(tokens, ratesFor(cost!, tokens)) : reportedCost(reportedUsd);
    const usd = reportedUsd ?? usdFromNano(nano);
    if (usd > 0) this.charged(candidate, usd, costOf(tokens, ratesFor(candidate.price, tokens)));
    return nano;
  }

  /** Records the charge of a request whose host cost is known. */
  settled({ model, route }: Candidate, charged: NanoUsd, cost: NanoUsd): void {
    const name = `${model.id}\n${route.host.id}`;
    const sum = this.margins.get(name) ?? { model: model.id, host: route.host.id, charged: 0, cost: 0 };
    this.margins.set(name, { ...sum, charged: sum.charged + charged, cost: sum.cost + cost });
  }

  /** Charges and costs since the last call. */
  takeMargins(): readonly MarginSum[] {
    const taken = [...this.margins.values()];
    this.margins.clear();
    return taken;
  }

  private charged({ model, route }: Candidate, reportedUsd: number, cost: NanoUsd): void {
    const { metrics, freeRoutes, log } = this.deps;
    const at = { host: route.host.id, model: route.model };
    metrics.hostCharged(model.id, at.host, reportedUsd);
    if (route.free) {
      log("free route charges", at);
      freeRoutes.doubt(route);
      return;
    }
    const undercharged = this.note(`${at.host} ${at.model}`, reportedUsd, cost);
    if (undercharged !== null) log("host charges more", { ...at, ...undercharged });
  }

  /** A warning about the route, at most once an hour; otherwise null. */
  private note(route: string, reportedUsd: number, cost: NanoUsd): Undercharged | null {
    const nowMs = this.deps.clock.elapsedMs();
    let sums = this.routes.get(route);
    if (sums === undefined || nowMs - sums.sinceMs >= REPORT_EVERY_MS) {
      sums = { sinceMs: nowMs, isReported: false, reportedUsd: 0, costUsd: 0 };
      this.routes.set(route, sums);
    }
    sums.reportedUsd += reportedUsd;
    sums.costUsd += usdFromNano(cost);
    const isMore = sums.reportedUsd - sums.costUsd >= MIN_USD && sums.reportedUsd > sums.costUsd * TOLERANCE;
    if (sums.isReported || !isMore) return null;
    sums.isReported = true;
    return { host_charged_usd: legible(sums.reportedUsd), charged_usd: legible(sums.costUsd) };
  }
}

interface HostCostDeps {
  readonly clock: Pick<Clock, "elapsedMs">;
  readonly metrics: { hostCharged(model: string, host: string, usd: number): void };
  readonly freeRoutes: Pick<FreeRoutes, "doubt">;
  readonly log: Log;
}

/** Both costs of the same answers, all within one hour. */
interface Undercharged {
  readonly host_charged_usd: number;
  readonly charged_usd: number;
}

interface ComparedCosts {
  readonly sinceMs: number;
  isReported: boolean;
  reportedUsd: number;
  costUsd: number;
}

/** A host's report may be any number. */
export const reportedCost = (usd: number): NanoUsd =>
  Math.round(Math.min(usd, MAX_REPORTED_USD) * NANO_PER_USD) as NanoUsd;

const MAX_REPORTED_USD = 1_000_000;

const REPORT_EVERY_MS = HOUR_MS;
/** Rounds off the errors of adding fractions. */
const legible = (usd: number): number => Number(usd.toFixed(6));

/** Hosts round, and count prompts slightly differently. */
const TOLERANCE = 1.05;
const MIN_USD = 0.01;
