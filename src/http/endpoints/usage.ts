import { USAGE } from "../../api/usage.ts";
import { type Refusal, refuse, refused } from "../../errors/refusal.ts";
import type { Sum, UsageSums } from "../../store/usage-sums.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import type { KeyId } from "../../units/id.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { identify } from "../identity.ts";
import { ok, type Reply } from "../reply.ts";
import { periodView, readPeriod } from "./usage-period.ts";

/**
 * `GET /v1/usage?period=day|week|month&key_id=…`: what receipts add up to, over time and by model and host. A
 * key sees its own, an owner the whole balance or one of its keys.
 */
export const usageEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/v1/usage", about: USAGE, handle: usage },
];

async function usage(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  const query = queryOf(exchange.request);
  const period = readPeriod(query, deps.keyDeps.clock.now());
  if (refused(period)) return period;
  const { since, stretchMs } = period;
  const keyId = who.kind === "key" ? who.key.id : (query.get("key_id") as KeyId | null);
  const sums = await deps.usage({ balanceId: who.balance.id, keyId, since, stretchMs });
  if (sums === null) return tooManyAtOnce();
  return ok({ ...periodView(period), ...view(sums) });
}

export const tooManyAtOnce = (): Refusal =>
  refuse("rate_limited", "Too many usage reports are being computed right now. Retry in 2 s.", {
    retryAfterS: 2,
  });

const view = ({ stretches, routes, truncated }: UsageSums) => ({
  stretches: stretches.map(stretchView),
  routes: routes.map(({ model, host, firstTokenMsP50, firstTokenMsP95, ...sum }) => ({
    model,
    host,
    ...sumView(sum),
    first_token_ms: { p50: firstTokenMsP50, p95: firstTokenMsP95 },
  })),
  truncated,
});

export const stretchView = ({ start, model, ...sum }: UsageSums["stretches"][number]) => ({
  start: isoTime(start as EpochMs),
  model,
  ...sumView(sum),
});

export const sumView = ({ requests, failed, chargedNano, inputTokens, outputTokens }: Sum) => ({
  requests,
  failed,
  cost_usd: usdFromNano(chargedNano as NanoUsd),
  input_tokens: inputTokens,
  output_tokens: outputTokens,
});
