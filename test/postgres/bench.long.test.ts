import { expect, test } from "bun:test";
import { benchScaling } from "../../bench/scaling.ts";
import { benchWorkers } from "../../bench/workers.ts";
import { hasPostgres } from "./cluster.ts";

test.skipIf(!hasPostgres())(
  "the scaling bench runs, small",
  async () => {
    const run = await benchScaling({ rounds: 1, seconds: 0.3, perSecond: 200, revokes: 2, stream: true });
    expect(run.arrangements.map(({ name }) => name)).toEqual(["sqlite", "postgres", "diskless"]);
    expect(run.revokeMs).toHaveLength(2);
    // The node that is stopped is waited for until its lease has run out.
    expect(run.revokeOneStoppedMs).toBeGreaterThan(run.revokeMs[0]!);
  },
  600_000,
);

test.skipIf(!hasPostgres())(
  "the bench of two workers runs, small",
  async () => {
    const rows = await benchWorkers({ rounds: 1, seconds: 0.3, warmSeconds: 0.3, perSecond: 200 });
    const arrangements = ["one", "two workers", "one, SQLite", "two workers, SQLite", "two apart"];
    expect(rows.map(({ arrangement }) => arrangement)).toEqual([...arrangements, ...arrangements]);
    for (const row of rows) {
      expect(row.served).toBeGreaterThan(0);
      expect(row.withGeneratorUs).toBeGreaterThan(row.gatewayUs);
    }
    expect(rows[0]!.gatewayRatio).toBe(1);
  },
  600_000,
);
