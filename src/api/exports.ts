import { type Static, Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import * as t from "./schema.ts";

const ExportAnswer = t.namedAnswer("Export", {
  kind: t.oneOf(["receipts", "entries", "events", "changes"]),
  object: Type.Literal("export"),
  to: Type.String(),
  exported_through: t.count,
  waiting: t.count,
  caught_up_at: t.time,
  lag_seconds: Type.Number(),
  problem: t.orNone(Type.String()),
});

export type ExportAnswer = Static<typeof ExportAnswer>;

export const EXPORTS = {
  list: {
    summary: "Shows how far receipts, entries, events and changes are exported",
    details:
      "Everything that was booked before `caught_up_at` is at the target. `exported_through` is the number of the last row there, and `waiting` how many are behind it, at most 100,000. `problem` is why the last attempt failed. Without `export` in the configuration the list is empty.",
    who: ["admin"],
    answers: { 200: t.listOf(ExportAnswer) },
  },
} as const satisfies Record<string, About>;
