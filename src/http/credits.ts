import { Type } from "@sinclair/typebox";
import { type Refusal, refused } from "../errors/refusal.ts";
import { isoTime } from "../units/clock.ts";
import { usdFromNano } from "../units/usd.ts";
import type { About } from "./about.ts";
import { amountUsd, answerOf, orNone, pageOf, pageQuery, time } from "./answers.ts";
import type { HttpDeps } from "./deps.ts";
import { type Endpoint, type Exchange, queryOf } from "./endpoint.ts";
import { readCount } from "./fields.ts";
import { identify, ownersOnly } from "./identity.ts";
import { ok, type Reply } from "./reply.ts";

/** `GET /v1/credits`: what was credited to the balance, newest first. For its owner. */
export const creditEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/v1/credits", about: CREDITS, handle: list },
];

async function list(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key") return ownersOnly("see credits");
  const limit = readCount(queryOf(exchange.request), "limit", DEFAULT_PAGE, MAX_PAGE);
  if (refused(limit)) return limit;
  const credits = await deps.ledger.credits(who.balance.id, limit + 1);
  const data = credits.slice(0, limit).map(({ amount, note, at }) => ({
    amount_usd: usdFromNano(amount),
    note,
    credited_at: isoTime(at),
  }));
  return ok({ object: "list", data, has_more: credits.length > limit });
}

const DEFAULT_PAGE = 100;
const MAX_PAGE = 1_000;

const CREDITS = {
  summary: "Lists the balance's credits, newest first",
  who: ["owner"],
  query: { limit: pageQuery(DEFAULT_PAGE, MAX_PAGE).limit },
  answers: {
    200: pageOf(answerOf({ amount_usd: amountUsd, note: orNone(Type.String()), credited_at: time })),
  },
} as const satisfies About;
