import {
  DEFAULT_RANKED,
  EVERYBODYS_USAGE,
  MAX_RANKED,
  SPENDING_ORDERS,
  type SpendingOrder,
} from "../../api/usage.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { Compared, Ranking, Spending } from "../../store/spending.ts";
import { isoTime } from "../../units/clock.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { stretchView, sumView, tooManyAtOnce } from "../endpoints/usage.ts";
import { periodView, readPeriod, type UsagePeriod } from "../endpoints/usage-period.ts";
import { invalidField, readCount } from "../fields.ts";
import { ok, type Reply } from "../reply.ts";
import { guarded } from "./token.ts";

/** `GET /admin/usage`: who spends what, on which model and host, and whether it grows. */
export const adminUsageEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/admin/usage", about: EVERYBODYS_USAGE, handle: guarded(usage) },
];

async function usage({ request }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const query = queryOf(request);
  const now = deps.keyDeps.clock.now();
  const period = readPeriod(query, now);
  if (refused(period)) return period;
  const order = readOrder(query);
  if (refused(order)) return order;
  const most = readCount(query, "limit", DEFAULT_RANKED, MAX_RANKED);
  if (refused(most)) return most;
  const { since, stretchMs, lengthMs } = period;
  const beforeMs = isKept(period, now, deps) ? lengthMs : null;
  const spending = await deps.spending({ since, now, stretchMs, beforeMs, order, most });
  if (spending === null) return tooManyAtOnce();
  return ok({ ...periodView(period), ...view(spending) });
}

function readOrder(query: URLSearchParams): SpendingOrder | Refusal {
  const asked = query.get("order") ?? "cost";
  return (
    SPENDING_ORDERS.find((known) => known === asked) ??
    invalidField("order", `\`order\` must be one of ${SPENDING_ORDERS.join(", ")}.`)
  );
}

/** Whether the receipts of the period before are still there. */
function isKept({ since, lengthMs }: UsagePeriod, now: number, deps: HttpDeps): boolean {
  const { receiptDays } = deps.settings();
  return receiptDays === null || since - lengthMs >= now - receiptDays * DAY_MS;
}

const DAY_MS = 86_400_000;

function view(spending: Spending) {
  const { total, stretches, balances, keys, models, hosts, owners, keyLabels, compared } = spending;
  const sums = ({ beforeNano, ...sum }: Compared) => ({
    ...sumView(sum),
    cost_before_usd: compared ? usdFromNano(beforeNano as NanoUsd) : null,
  });
  const list = ({ rows, rest }: Ranking, named: (name: string) => object) => ({
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
