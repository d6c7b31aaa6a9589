import { type Static, Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import { amountUsd, answerOf, count, heldAt, namedAnswer, orNone, time } from "./answers.ts";
import { fieldsOf, orNull, usd } from "./fields.ts";

const MAX_CALLS = 999_999_999;
const calls = Type.Integer({
  minimum: 0,
  maximum: MAX_CALLS,
  description: `a whole number from 0 to ${MAX_CALLS}`,
});
const RunFields = fieldsOf({
  cap_usd: Type.Optional(orNull(usd, "no limit")),
  calls: Type.Optional(orNull(calls, "no limit")),
});

export const RunAnswer = namedAnswer("Run", {
  id: Type.String(),
  started_at: time,
  cap_usd: orNone(amountUsd),
  used_usd: amountUsd,
  held_usd: amountUsd,
  held_at: heldAt,
  calls: orNone(count),
  used_calls: count,
  open_calls: count,
});
export type RunAnswer = Static<typeof RunAnswer>;

const owned = { who: ["owner"], act: "change runs, other than by naming one" } as const;

export const RUNS = {
  change: {
    summary: "Sets the limits of a run, higher or lower",
    details: "Requests that are open keep what they hold, and take no more than the new limits allow.",
    ...owned,
    body: RunFields,
    answers: { 200: RunAnswer },
  },
  end: {
    summary: "Ends a run",
    details:
      "Its open requests go on within its limits. The next request that names its id starts a new run, of which nothing is used.",
    ...owned,
    answers: { 200: answerOf({ id: Type.String(), ended: Type.Literal(true) }) },
  },
} as const satisfies Record<string, About>;
