import { CREDITS, DEFAULT_CREDITS, MAX_CREDITS } from "../../api/credits.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { Credit } from "../../ledger/credit.ts";
import { isoTime } from "../../units/clock.ts";
import { usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { readCount } from "../fields.ts";
import { identify, ownersOnly } from "../identity.ts";
import { ok, type Reply } from "../reply.ts";

/** `GET /v1/credits`: what was credited to the balance and taken back, newest first. For its owner. */
export const creditEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/v1/credits", about: CREDITS, handle: list },
];

async function list(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key") return ownersOnly("see credits");
  const limit = readCount(queryOf(exchange.request), "limit", DEFAULT_CREDITS, MAX_CREDITS);
  if (refused(limit)) return limit;
  const credits = await deps.ledger.credits(who.balance.id, limit + 1);
  return ok({
    object: "list",
    data: credits.slice(0, limit).map(creditView),
    has_more: credits.length > limit,
  });
}

export const creditView = ({ amount, note, at }: Credit) => ({
  amount_usd: usdFromNano(amount),
  note,
  credited_at: isoTime(at),
});
