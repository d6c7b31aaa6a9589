import { type Refusal, refused } from "../errors/refusal.ts";
import type { Balance } from "../keys/key.ts";
import { type EpochMs, isoTime } from "../units/clock.ts";
import { usdFromNano } from "../units/usd.ts";
import { windowAt } from "../units/window.ts";
import { blocksOf } from "./address.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoint, Exchange } from "./endpoint.ts";
import { bearerOf, identify } from "./identity.ts";
import { usedKeyView } from "./key-view.ts";
import { ME } from "./me-schemas.ts";
import { ok, type Reply } from "./reply.ts";

export function meEndpoints(deps: HttpDeps): Endpoint[] {
  return [{ method: "GET", path: "/v1/me", about: ME, handle: (exchange) => me(exchange, deps) }];
}

/** Readable while suspended too: people must be able to see why they are refused. */
async function me(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const { request } = exchange;
  const who = await identify(bearerOf(request), request, deps.desk, deps.settings().dashboardUrl);
  if (refused(who)) return who;
  const { balance } = who;
  const now = deps.desk.clock.now();
  const money = await deps.ledger.balance(balance.id);
  return ok({
    balance_id: balance.id,
    balance_usd: usdFromNano(money.total),
    available_usd: usdFromNano(money.available),
    held_usd: usdFromNano(money.held),
    suspended: balance.suspended,
    key: who.kind === "key" ? await usedKeyView(who.key, now, deps.ledger) : null,
    open_tier: await openTier(balance, exchange, now, deps),
    account: accountOf(balance),
  });
}

async function openTier(balance: Balance, exchange: Exchange, now: EpochMs, deps: HttpDeps) {
  const { address, request } = exchange;
  const blocks = blocksOf(address, request.headers, deps.settings().trustedProxies);
  const { limit, used } = await deps.ledger.openTier(balance, blocks, now);
  return { limit, used, resets_at: isoTime(windowAt("day", now).resetsAt!) };
}

const accountOf = ({ accountId, suspended }: Balance) =>
  accountId === null ? null : { id: accountId, ...(suspended === null ? {} : { suspended }) };
