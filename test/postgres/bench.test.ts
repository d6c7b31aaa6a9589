import { expect, test } from "bun:test";
import { benchScaling } from "../../bench/scaling.ts";
import { hasPostgres } from "./cluster.ts";

test.skipIf(!hasPostgres())(
  "the scaling bench runs, small",
  async () => {
    const run = await benchScaling({ rounds: 1, seconds: 0.3, perSecond: 200, revokes: 2, stream: true });
    expect(Object.keys(run.cpuUs)).toEqual(["sqlite", "postgres", "diskless", "2 workers"]);
    expect(run.revokeMs).toHaveLength(2);
    // The node that is stopped is waited for until its lease has run out.
    expect(run.revokeOneStoppedMs).toBeGreaterThan(run.revokeMs[0]!);
  },
  120_000,
);
