import { expect, test } from "bun:test";
import { KEEPER, type WorkerState } from "../../../src/server/workers/messages.ts";
import { type ReportingWorker, WorkerReport } from "../../../src/server/workers/worker-report.ts";
import { type Metric, prometheusText } from "../../../src/telemetry/metric.ts";
import { epochMs } from "../../../src/units/clock.ts";
import { ManualClock } from "../../fakes/clock.ts";

const REFUSED = { at: 5, detail: "status 401" };

/** Two workers that count and answer as the test says. */
class Fixture {
  readonly clock = new ManualClock();
  readonly counts = [0, 0];
  readonly requests: ((state: WorkerState | undefined) => void)[][] = [[], []];
  readonly serving = [true, true];
  keeper: ReportingWorker | null = null;
  readonly call = new WorkerReport(this.clock, () => [
    this.member(0),
    this.member(1),
    ...(this.keeper === null ? [] : [this.keeper]),
  ]);

  answer(index: number): void {
    for (const answer of this.requests[index]!.splice(0)) answer(this.state(index));
  }

  async lines(): Promise<string[]> {
    return prometheusText(await this.call.metrics())
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
  }

  private state(index: number): WorkerState {
    const route = {
      host: "h",
      model: "m",
      free: false,
      verifiedFree: false,
      tokensPerSecond: null,
      served: 3,
      failed: 1,
    };
    const usable = index === 0 ? 1 : 0;
    const lastFailure =
      index === 0 ? { at: epochMs(9_000), since: epochMs(9_000), detail: "status 500" } : null;
    return {
      metrics: this.read(index),
      hosts: {
        routes: [
          {
            ...route,
            usable,
            resting: 1 - usable,
            unproven: usable,
            firstTokenMs: index === 0 ? null : 20,
            lastFailure,
          },
        ],
        loads: [
          { host: "h", inFlight: 2, limit: 5, waiting: index, cut: index },
          {
            ...{ host: "several", inFlight: 1, limit: 5, waiting: 0, cut: 0 },
            keys: [
              {
                name: "A",
                state: index === 0 ? "retired" : "usable",
                inFlight: 1,
                refused: index === 0 ? REFUSED : null,
              },
              { name: "B", state: index === 0 ? "usable" : "resting", inFlight: index, refused: null },
            ],
          },
        ],
      },
    };
  }

  private read(index: number): Metric[] {
    const count = this.counts[index]!;
    const about = { help: "Help.", together: "sum" } as const;
    return [
      { ...about, name: "things_total", type: "counter", samples: [["", "", count]] },
      { ...about, name: "open", type: "gauge", samples: [["", "", 1]] },
    ];
  }

  private member(index: number): ReportingWorker {
    const request = () =>
      new Promise<WorkerState | undefined>((answer) => void this.requests[index]!.push(answer));
    return { number: index + 1, requestState: this.serving[index]! ? request : null };
  }
}

async function linesOf(deps: Fixture): Promise<string[]> {
  const lines = deps.lines();
  for (const index of [0, 1]) deps.answer(index);
  return lines;
}

test("the answer comes when the last worker has answered, and waits for no clock", async () => {
  const deps = new Fixture();
  deps.counts.splice(0, 2, 3, 4);
  const lines = await linesOf(deps);
  expect(lines).toContain("things_total 7");
  expect(lines).toContain("open 2");
});

test("who asks meanwhile gets the same answer, and the workers are asked once", async () => {
  const deps = new Fixture();
  const both = Promise.all([deps.lines(), deps.lines()]);
  expect(deps.requests.map((rounds) => rounds.length)).toEqual([1, 1]);
  for (const index of [0, 1]) deps.answer(index);
  const [one, other] = await both;
  expect(one).toEqual(other);
});

test("a silent worker's counts stand as last reported, its gauges are left out, and it is counted", async () => {
  const deps = new Fixture();
  deps.counts.splice(0, 2, 3, 4);
  await linesOf(deps);
  deps.counts.splice(0, 2, 10, 10);
  const pending = deps.lines();
  deps.answer(0);
  deps.clock.advance(500);
  const lines = await pending;
  expect(lines).toContain("things_total 14");
  expect(lines).toContain("open 1");
  expect(lines).toContain('gateway_workers{state="silent"} 1');
});

test("a worker that owes too many answers to be asked again is silent", async () => {
  const deps = new Fixture();
  deps.counts.splice(0, 2, 3, 4);
  await linesOf(deps);
  const pending = deps.lines();
  deps.answer(0);
  deps.requests[1]!.pop()!(undefined);
  const lines = await pending;
  expect(lines).toContain('gateway_workers{state="silent"} 1');
  expect(lines).toContain("open 1");
});

test("a worker that ends while it is asked is not waited for", async () => {
  const deps = new Fixture();
  const pending = deps.lines();
  deps.answer(0);
  deps.serving[1] = false;
  deps.requests[1]!.pop()!(undefined);
  deps.call.ended(2);
  expect(await pending).toContain('gateway_workers{state="starting"} 1');
});

test("what an ended worker had counted stays, however often it ends", async () => {
  const deps = new Fixture();
  for (let life = 1; life <= 3; life++) {
    deps.counts[1] = 5;
    expect(await linesOf(deps)).toContain(`things_total ${life * 5}`);
    deps.call.ended(2);
    deps.counts[1] = 0;
    const lines = await linesOf(deps);
    expect(lines).toContain(`things_total ${life * 5}`);
    expect(lines).toContain(`gateway_worker_restarts_total ${life}`);
  }
});

test("a worker that does not serve yet is not asked", async () => {
  const deps = new Fixture();
  deps.serving[1] = false;
  const lines = await linesOf(deps);
  expect(deps.requests[1]).toEqual([]);
  expect(lines).toContain('gateway_workers{state="starting"} 1');
});

test("of hosts, it is said at how many workers a route rests and why, and what all workers have there", async () => {
  const deps = new Fixture();
  const hosts = deps.call.hosts();
  for (const index of [0, 1]) deps.answer(index);
  expect(await hosts).toEqual({
    routes: [
      {
        host: "h",
        model: "m",
        free: false,
        usable: 1,
        resting: 1,
        unproven: 1,
        verifiedFree: false,
        firstTokenMs: 20,
        tokensPerSecond: null,
        served: 6,
        failed: 2,
        lastFailure: { at: epochMs(9_000), since: epochMs(9_000), detail: "status 500" },
      },
    ],
    loads: [
      { host: "h", inFlight: 4, limit: 10, waiting: 1, cut: 1 },
      {
        ...{ host: "several", inFlight: 2, limit: 10, waiting: 0, cut: 0 },
        // The worst that a worker knows of each key.
        keys: [
          { name: "A", state: "retired", inFlight: 2, refused: REFUSED },
          { name: "B", state: "resting", inFlight: 1, refused: null },
        ],
      },
    ],
  });
});

test("the keeper of the database tells of itself, is no worker, and its restarts are counted apart", async () => {
  const deps = new Fixture();
  const memory = { name: "bytes", type: "gauge", help: "Help.", together: "apart" } as const;
  const state = {
    metrics: [{ ...memory, samples: [["", "", 7]] as const }],
    hosts: { routes: [], loads: [] },
  };
  deps.keeper = { number: KEEPER, requestState: async () => state };
  const lines = await linesOf(deps);
  expect(lines).toContain('bytes{worker="keeper"} 7');
  expect(lines).toContain('gateway_workers{state="answered"} 2');
  expect(lines).toContain("gateway_keeper_restarts_total 0");
  deps.call.ended(KEEPER);
  deps.keeper = { number: KEEPER, requestState: () => new Promise(() => {}) };
  const pending = linesOf(deps);
  await Promise.resolve();
  deps.clock.advance(500);
  const without = await pending;
  expect(without.filter((line) => line.includes("keeper"))).toEqual(["gateway_keeper_restarts_total 1"]);
  expect(without).toContain("gateway_worker_restarts_total 0");
  expect(without).toContain('gateway_workers{state="silent"} 0');
});
