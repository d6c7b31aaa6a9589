import { expect, test } from "bun:test";
import type { HostReport } from "../../src/routing/health.ts";
import { HostWatch } from "../../src/server/service-events.ts";
import { SqlHostStates } from "../../src/store/books/host-states.ts";
import { SqlEventReader } from "../../src/store/customers/events.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { epochMs } from "../../src/units/clock.ts";
import { ManualClock } from "../fakes/clock.ts";

/** What a process sees of the host in five seconds. */
type Sight = "fails" | "serves" | "both" | "nothing";

/** Processes that share a store. */
class Fleet {
  readonly clock = new ManualClock();
  private readonly db = new SqliteDatabase(openDatabase(":memory:"));
  private readonly processes = [0, 1, 2].map(() => {
    let report: HostReport = {
      id: "h",
      state: "closed",
      firstTokenMs: null,
      tokensPerSecond: null,
      served: 0,
      failed: 0,
      failingSince: null,
    };
    const states = new SqlHostStates(this.db);
    const watch = new HostWatch({ states, clock: this.clock, hosts: () => [report] });
    return {
      watch,
      see: (sight: Sight) => {
        const { served, failed, failingSince } = report;
        if (sight === "fails")
          report = {
            ...report,
            state: "open",
            failed: failed + 1,
            failingSince: failingSince ?? this.clock.now(),
          };
        if (sight === "serves" || sight === "both")
          report = {
            ...report,
            state: "closed",
            served: served + 1,
            failed: sight === "both" ? failed + 1 : failed,
            failingSince: null,
          };
      },
    };
  });

  /** The events, in order, after each process has seen this for so many seconds. */
  async sees(seconds: number, ...sights: readonly Sight[]): Promise<readonly string[]> {
    for (let at = 0; at < seconds; at += 5) {
      for (const [index, { see }] of this.processes.entries()) see(sights[index] ?? "nothing");
      await Promise.all(this.processes.map(({ watch }) => watch.note()));
      this.clock.advance(5_000);
    }
    const events = await new SqlEventReader(this.db).list(
      { balanceId: null, kind: null, reader: "operator" },
      100,
      null,
    );
    return events.map(({ kind }) => kind).reverse();
  }
}

const FAIL = ["fails", "fails", "fails"] as const;
const SERVE = ["serves", "serves", "serves"] as const;

test("a host that all processes see fail, and serve again, is one event for each", async () => {
  const fleet = new Fleet();
  expect(await fleet.sees(30, ...FAIL)).toEqual([]);
  expect(await fleet.sees(15, ...FAIL)).toEqual(["host.down"]);
  expect(await fleet.sees(600, ...FAIL)).toEqual(["host.down"]);
  expect(await fleet.sees(25, ...SERVE)).toEqual(["host.down"]);
  expect(await fleet.sees(30, ...SERVE)).toEqual(["host.down", "host.up"]);
  expect(await fleet.sees(600, ...SERVE)).toEqual(["host.down", "host.up"]);
});

test("failures now and then are no event", async () => {
  const fleet = new Fleet();
  for (let round = 0; round < 20; round++) {
    await fleet.sees(20, ...FAIL);
    await fleet.sees(5, ...SERVE);
  }
  expect(await fleet.sees(5, "both", "both")).toEqual([]);
});

test("one process that sees it fail keeps it down, although others are served; without its failures, they tell that it is up", async () => {
  const fleet = new Fleet();
  expect(await fleet.sees(60, "fails", "serves", "serves")).toEqual(["host.down"]);
  expect(await fleet.sees(300, "fails", "serves", "serves")).toEqual(["host.down"]);
  expect(await fleet.sees(60, "nothing", "serves")).toEqual(["host.down"]);
  expect(await fleet.sees(60, "nothing", "serves")).toEqual(["host.down", "host.up"]);
});

test("a host that nobody uses stays as it was", async () => {
  const fleet = new Fleet();
  await fleet.sees(60, ...FAIL);
  expect(await fleet.sees(600)).toEqual(["host.down"]);
});

test("a host that flaps for two hours causes at most twelve pairs of events an hour", async () => {
  const fleet = new Fleet();
  let events: readonly string[] = [];
  for (let round = 0; round < 90; round++) {
    await fleet.sees(40, ...FAIL);
    events = await fleet.sees(40, ...SERVE);
  }
  expect(events.length).toBeGreaterThan(4);
  expect(events.length).toBeLessThanOrEqual(2 * 2 * 12);
  for (const [index, kind] of events.entries()) expect(kind).toBe(index % 2 === 0 ? "host.down" : "host.up");
});

test("an event has the host and times, and nothing that a host said", async () => {
  const db = new SqliteDatabase(openDatabase(":memory:"));
  const states = new SqlHostStates(db);
  await states.down("h", undefined, epochMs(1_000), epochMs(40_000));
  await states.down("h", undefined, epochMs(1_000), epochMs(40_000));
  const reader = new SqlEventReader(db);
  const filter = { balanceId: null, kind: null, reader: "operator" } as const;
  const [event, ...others] = await reader.list(filter, 10, null);
  expect(others).toEqual([]);
  expect(JSON.parse(event!.data)).toEqual({ host: "h", failing_since: "1970-01-01T00:00:01.000Z" });
});
