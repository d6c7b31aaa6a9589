import { Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import { answerOf, namedAnswer, oneOf, orNone, several, time } from "./answers.ts";

const RouteStatusAnswer = namedAnswer("RouteStatus", {
  host: Type.String(),
  first_token_ms: orNone(Type.Number({ minimum: 0, description: "the median of the last customers" })),
  tokens_per_second: orNone(Type.Number({ minimum: 0, description: "the same, after the first token" })),
});

export const STATUS = {
  summary: "Tells which models are available, and how fast their hosts are",
  details: "As `/status` shows it; figures are null for hosts that were not measured.",
  who: [],
  answers: {
    200: answerOf({
      object: Type.Literal("status"),
      as_of: time,
      models: several(
        answerOf({
          id: Type.String(),
          state: oneOf(["available", "not_used_yet", "being_tried_again", "unavailable"]),
          hosts: several(RouteStatusAnswer),
        }),
      ),
    }),
  },
} as const satisfies About;
