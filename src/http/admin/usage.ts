import { EVERYBODYS_USAGE, OVERVIEW } from "../../api/usage.ts";
import type { Compared, Spending, SpendingRanking } from "../../store/usage/spending.ts";
import { DAY_MS, type EpochMs, isoTime } from "../../units/clock.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { stretchView, sumView, tooManyAtOnce } from "../endpoints/usage.ts";
import { periodAt, periodView, type UsagePeriod } from "../endpoints/usage-period.ts";
import { operation } from "../operation.ts";
import { ok } from "../reply.ts";

/** `GET /admin/usage`: who spends what, on which model and host, and whether it grows. */
export const adminUsageEndpoints = (): Endpoint[] => [
  operation("GET /admin/usage", EVERYBODYS_USAGE, async ({ query }, deps) => {
    const now = deps.keyDeps.clock.now();
    const period = periodAt(now, query.period);
    const { since, until, stretchMs, lengthMs } = period;
    const beforeMs = isKept(period, now, deps) ? lengthMs : null;
    const { order, limit: most, by } = query;
    const spending = await deps.books.spending({ since, until, now, stretchMs, beforeMs, order, most, by });
    return spending === null ? tooManyAtOnce() : ok({ ...periodView(period), ...view(spending) });
  }),
  operation("GET /admin/overview", OVERVIEW, async ({ query }, { books, keyDeps }) => {
    const period = periodAt(keyDeps.clock.now(), query.period);
    const { since, until, stretchMs } = period;
    const sums = await books.usage({ balanceId: null, keyId: null, since, until, stretchMs, by: "all" });
    if (sums === null) return tooManyAtOnce();
    const stretches = sums.stretches.map(({ start, firstTokenMsP50, firstTokenMsP95, ...sum }) => ({
      start: isoTime(start as EpochMs),
      ...sumView(sum),
      first_token_ms: { p50: firstTokenMsP50, p95: firstTokenMsP95 },
    }));
    return ok({ ...periodView(period), object: "overview", stretches, truncated: sums.truncated });
  }),
];

/** Whether the receipts of the period before are still there. */
function isKept({ since, lengthMs }: UsagePeriod, now: number, deps: HttpDeps): boolean {
  const { receiptDays } = deps.config.settings;
  return receiptDays === null || since - lengthMs >= now - receiptDays * DAY_MS;
}

function view(spending: Spending) {
  const { total, stretches, balances, keys, models, hosts, owners, keyLabels, compared } = spending;
  const sums = ({ beforeNano, costed, costedNano, hostCostNano, ...sum }: Compared) => ({
    ...sumView(sum),
    host_cost_usd: costed === 0 ? null : usdFromNano(hostCostNano as NanoUsd),
    margin_usd: costed === 0 ? null : usdFromNano((costedNano - hostCostNano) as NanoUsd),
    requests_with_host_cost: costed,
    cost_before_usd: compared ? usdFromNano(beforeNano as NanoUsd) : null,
  });
  const list = <Named>({ rows, rest }: SpendingRanking, named: (name: string) => Named) => ({
    data: rows.map(({ name, ...sum }) => ({ ...named(name), ...sums(sum) })),
    rest: { rows: rest.rows, ...sums(rest) },
  });
  return {
    total: sums(total),
    stretches: stretches.map(stretchView),
    balances: list(balances, (id) => {
      const { accountId = null, email = null, wallet = null } = owners.get(id) ?? {};
      return { balance_id: id, account_id: accountId, email, wallet };
    }),
    keys: list(keys, (id) => {
      const { keyName = null, prefix = null, balanceId = null } = keyLabels.get(id) ?? {};
      return { key_id: id, name: keyName, prefix, balance_id: balanceId };
    }),
    models: list(models, (model) => ({ model })),
    hosts: list(hosts, (host) => ({ host })),
    counted_since: spending.countedSince === null ? null : isoTime(spending.countedSince),
  };
}
