import { EXPORTS } from "../../api/exports.ts";
import { isoTime } from "../../units/clock.ts";
import { operation } from "../operation.ts";
import { list } from "../reply.ts";

/** How far the books are exported: docs/selling.md. */
export const adminExportEndpoints = () => [
  operation("GET /admin/exports", EXPORTS.list, async (_, { books, clock }) => {
    const now = clock.now();
    return list(
      (await books.exports.status()).map(({ kind, target, last, waiting, caughtUpAt, problem }) => ({
        kind,
        object: "export" as const,
        to: target,
        exported_through: last,
        waiting,
        caught_up_at: isoTime(caughtUpAt),
        lag_seconds: Math.max(0, now - caughtUpAt) / 1_000,
        problem,
      })),
    );
  }),
];
