import { USAGE } from "../../api/usage.ts";
import type { StretchSum, Sum, UsageSums } from "../../store/usage/usage-sums.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import type { KeyId } from "../../units/id.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { Endpoint } from "../endpoint.ts";
import { operation } from "../operation.ts";
import { ok } from "../reply.ts";
import { runView } from "./runs.ts";
import { periodAt, periodView } from "./usage-period.ts";

/**
 * `GET /v1/usage?period=hour|day|today|yesterday|week|month&by=model|key|host&key_id=…`: what receipts add up to, over time and by model and host. A
 * key sees its own, an owner the whole balance or one of its keys.
 */
export const usageEndpoints = (): Endpoint[] => [
  operation("GET /v1/usage", USAGE, async ({ who, query }, { keyDeps, ledger, books }) => {
    const period = periodAt(keyDeps.clock.now(), query.period);
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
    const use = run === null ? null : await ledger.runUse(who.balance.id, run, keyDeps.clock.now());
    // To any other key, what its siblings have spent is none of its business.
    const isShown = use !== null && (who.kind === "owner" || use.run.startedBy === who.key.rotationId);
    return ok({
      ...periodView(period),
      ...view(sums),
      ...(tag === null ? {} : groupsView(sums)),
      ...(isShown ? { run: runView(use) } : {}),
    });
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

export const stretchView = ({ start, name, ...sum }: StretchSum) => ({
  start: isoTime(start as EpochMs),
  name,
  ...sumView(sum),
});

export const sumView = ({ requests, failed, chargedNano, inputTokens, outputTokens }: Sum) => ({
  requests,
  failed,
  cost_usd: usdFromNano(chargedNano as NanoUsd),
  input_tokens: inputTokens,
  output_tokens: outputTokens,
});
