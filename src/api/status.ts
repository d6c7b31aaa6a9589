import { Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import * as t from "./schema.ts";

const RouteStatusAnswer = t.namedAnswer("RouteStatus", {
  host: Type.String(),
  first_token_ms: t.orNone(t.number("the median of the last customers", { minimum: 0 })),
  tokens_per_second: t.orNone(t.number("the same, after the first token", { minimum: 0 })),
});

export const STATUS = {
  summary: "Tells which models are available, and how fast their hosts are",
  details: "As `/status` shows it; figures are null for hosts that were not measured.",
  who: [],
  answers: {
    200: t.object({
      object: Type.Literal("status"),
      as_of: t.time,
      models: t.several(
        t.object({
          id: Type.String(),
          state: t.oneOf(["available", "not_used_yet", "being_tried_again", "unavailable"]),
          hosts: t.several(RouteStatusAnswer),
        }),
      ),
    }),
  },
} as const satisfies About;
