import { type Static, Type } from "@sinclair/typebox";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

const MAX_CALLS = 999_999_999;
const calls = Type.Integer({
  minimum: 0,
  maximum: MAX_CALLS,
  description: `a whole number from 0 to ${MAX_CALLS}`,
});
const RunFields = t.object({
  cap_usd: Type.Optional(t.orNull(t.usd, "no limit")),
  calls: Type.Optional(t.orNull(calls, "no limit")),
});

export const RunAnswer = t.namedAnswer("Run", {
  id: Type.String(),
  started_at: t.time,
  cap_usd: t.orNone(t.amountUsd),
  used_usd: t.amountUsd,
  held_usd: t.amountUsd,
  held_at: t.heldAt,
  calls: t.orNone(t.count),
  used_calls: t.count,
  open_calls: t.count,
});
export type RunAnswer = Static<typeof RunAnswer>;

export const RUNS = endpointsWith(
  { who: ["owner"], act: "change runs, other than by naming one" },
  {
    change: {
      summary: "Sets the limits of a run, higher or lower",
      details: "Requests that are open keep what they hold, and take no more than the new limits allow.",
      body: RunFields,
      answers: { 200: RunAnswer },
    },
    end: {
      summary: "Ends a run",
      details:
        "Its open requests go on within its limits. The next request that names its id starts a new run, of which nothing is used.",
      answers: { 200: t.object({ id: Type.String(), ended: Type.Literal(true) }) },
    },
  },
) satisfies Record<string, About>;
