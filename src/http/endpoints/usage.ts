import { EVERYBODYS_USAGE, OVERVIEW, type Period, USAGE } from "../../api/usage.ts";
import type { Compared, Spending, SpendingRanking } from "../../store/usage/spending.ts";
import type { StretchSum, Sum, UsageSums } from "../../store/usage/usage-sums.ts";
import { DAY_MS, type EpochMs, HOUR_MS, isoTime } from "../../units/clock.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import type { KeyId } from "../../units/id.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import { operation } from "../operation.ts";
import { runView } from "./runs.ts";

/**
 * `GET /v1/usage?period=hour|day|today|yesterday|week|month&by=model|key|host&key_id=…`: what receipts add up to, over time and by model and host. A
 * key sees its own, an owner the whole balance or one of its keys, and the operator who spends what, and whether it grows.
 */
export const usageEndpoints = () => [
  operation("GET /v1/usage", USAGE, async ({ who, query }, { clock, ledger, books }) => {
    const period = periodAt(clock.now(), query.period);
    const { since, until, stretchMs } = period;
    const keyId = who.kind === "key" ? who.key.id : (query.key_id as KeyId | null);
    const { run, by, group_by: group } = query;
    const tag = group === null ? null : group.slice("tag:".length);
    const sums = await books.usage({
      balanceId: who.balance.id,
      keyId,
      run,
      since,
      until,
      stretchMs,
      by,
      tag,
    });
    if (sums === null) return tooManyAtOnce();
    const use = run === null ? null : await ledger.runUse(who.balance.id, run, clock.now());
    // To any other key, what its siblings have spent is none of its business.
    const isShown = use !== null && (who.kind === "owner" || use.run.startedBy === who.key.rotationId);
    return {
      ...periodView(period),
      ...view(sums),
      ...(tag === null ? {} : groupsView(sums)),
      ...(isShown ? { run: runView(use) } : {}),
    };
  }),
  operation("GET /admin/usage", EVERYBODYS_USAGE, async ({ query }, deps) => {
    const now = deps.clock.now();
    const period = periodAt(now, query.period);
    const { since, until, stretchMs, lengthMs } = period;
    const beforeMs = isKept(period, now, deps) ? lengthMs : null;
    const { order, limit: most, by } = query;
    const spending = await deps.books.spending({ since, until, now, stretchMs, beforeMs, order, most, by });
    return spending === null ? tooManyAtOnce() : { ...periodView(period), ...everybodysView(spending) };
  }),
  operation("GET /admin/overview", OVERVIEW, async ({ query }, { books, clock }) => {
    const period = periodAt(clock.now(), query.period);
    const { since, until, stretchMs } = period;
    const sums = await books.usage({ balanceId: null, keyId: null, since, until, stretchMs, by: "all" });
    if (sums === null) return tooManyAtOnce();
    const stretches = sums.stretches.map(({ start, firstTokenMsP50, firstTokenMsP95, ...sum }) => ({
      start: isoTime(start as EpochMs),
      ...sumView(sum),
      first_token_ms: { p50: firstTokenMsP50, p95: firstTokenMsP95 },
    }));
    return { ...periodView(period), object: "overview" as const, stretches, truncated: sums.truncated };
  }),
];

export const tooManyAtOnce = (): Refusal =>
  refuse("rate_limited", "Too many usage reports are being computed right now. Retry in 2 s.", {
    retryAfterS: 2,
  });

const view = ({ stretches, routes, keys, truncated }: UsageSums) => ({
  stretches: stretches.map(stretchView),
  routes: routes.map(({ model, host, firstTokenMsP50, firstTokenMsP95, ...sum }) => ({
    model,
    host,
    ...sumView(sum),
    first_token_ms: { p50: firstTokenMsP50, p95: firstTokenMsP95 },
  })),
  keys: keys.map(({ keyId, lastAt, ...sum }) => ({
    key_id: keyId,
    last_used_at: isoTime(lastAt as EpochMs),
    ...sumView(sum),
  })),
  truncated,
});

const groupsView = ({ tagValues, otherTagValues }: UsageSums) => ({
  groups: tagValues.map(({ value, ...sum }) => ({ value, ...sumView(sum) })),
  other_groups: otherTagValues === null ? null : sumView(otherTagValues),
});

const stretchView = ({ start, name, ...sum }: StretchSum) => ({
  start: isoTime(start as EpochMs),
  name,
  ...sumView(sum),
});

const sumView = ({ requests, failed, chargedNano, inputTokens, outputTokens }: Sum) => ({
  requests,
  failed,
  cost_usd: usdFromNano(chargedNano as NanoUsd),
  input_tokens: inputTokens,
  output_tokens: outputTokens,
});

/** Whether the receipts of the period before are still there. */
function isKept({ since, lengthMs }: UsagePeriod, now: number, deps: HttpDeps): boolean {
  const { receiptDays } = deps.config.settings;
  return receiptDays === null || since - lengthMs >= now - receiptDays * DAY_MS;
}

function everybodysView(spending: Spending) {
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

/** The time that a report on usage covers, in stretches of the UTC clock. */
export interface UsagePeriod {
  readonly name: Period;
  readonly since: EpochMs;
  /** Null while it goes on. */
  readonly until: EpochMs | null;
  readonly stretchMs: number;
  /** All stretches, the present one whole. */
  readonly lengthMs: number;
}

/** How many stretches back, and how long each of them is. */
const LENGTHS: Record<Period, { readonly stretches: number; readonly stretchMs: number }> = {
  hour: { stretches: 60, stretchMs: HOUR_MS / 60 },
  day: { stretches: 24, stretchMs: HOUR_MS },
  today: { stretches: 24, stretchMs: HOUR_MS },
  yesterday: { stretches: 24, stretchMs: HOUR_MS },
  week: { stretches: 7, stretchMs: DAY_MS },
  month: { stretches: 30, stretchMs: DAY_MS },
};

export function periodAt(now: EpochMs, name: Period): UsagePeriod {
  const { stretches, stretchMs } = LENGTHS[name];
  const lengthMs = stretches * stretchMs;
  const midnight = now - (now % DAY_MS);
  const since =
    name === "today"
      ? midnight
      : name === "yesterday"
        ? midnight - DAY_MS
        : now - (now % stretchMs) - (stretches - 1) * stretchMs;
  const until = name === "yesterday" ? (midnight as EpochMs) : null;
  return { name, since: since as EpochMs, until, stretchMs, lengthMs };
}

/** What every report on usage begins with. */
const periodView = ({ name, since, until, stretchMs }: UsagePeriod) => ({
  object: "usage" as const,
  period: name,
  since: isoTime(since),
  until: until === null ? null : isoTime(until),
  stretch_ms: stretchMs,
});
