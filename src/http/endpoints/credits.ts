import type { About } from "../../api/about.ts";
import { pageOf, pageQuery } from "../../api/answers.ts";
import { CreditAnswer } from "../../api/credits.ts";
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
  const limit = readCount(queryOf(exchange.request), "limit", DEFAULT_PAGE, MAX_PAGE);
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

const DEFAULT_PAGE = 100;
const MAX_PAGE = 1_000;

const CREDITS = {
  summary: "Lists the balance's credits, newest first",
  details: "An amount below zero was taken back.",
  who: ["owner"],
  query: { limit: pageQuery(DEFAULT_PAGE, MAX_PAGE).limit },
  answers: {
    200: pageOf(CreditAnswer),
  },
} as const satisfies About;
