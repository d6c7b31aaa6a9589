import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ATTACKS, benchAttacks } from "../../bench/attacks.ts";
import { benchEvents } from "../../bench/events.ts";
import { benchFailover } from "../../bench/failover.ts";
import { pieces } from "../../bench/micro.ts";
import { benchNeighbour } from "../../bench/neighbour.ts";
import { benchPause } from "../../bench/pause.ts";
import { bareHost } from "../../bench/peers/bare-host.ts";
import { gateway } from "../../bench/peers/gateway.ts";
import { KINDS } from "../../bench/peers/kinds.ts";
import type { Peer } from "../../bench/peers/peer.ts";
import { circumstances, publish } from "../../bench/peers/publish.ts";
import { tables } from "../../bench/peers/report.ts";
import { benchPeers } from "../../bench/peers.ts";
import { dearerStill, macroFigures, microFigures, verdictOn } from "../../bench/regression.ts";
import { benchSizing, sizingTable } from "../../bench/sizing.ts";
import { benchSoak, faultsOf } from "../../bench/soak.ts";

const SMALL = {
  rounds: 1,
  seconds: 0.1,
  streams: 4,
  passes: 1,
  connections: [1],
  open: [],
  settleMs: 50,
  faults: false,
};

test("every micro bench computes the right thing, and runs beside its baseline", async () => {
  for (const piece of await pieces()) {
    piece.check();
    expect(piece.baseline).not.toThrow();
    expect(piece.ours).not.toThrow();
  }
});

test("the events' suite runs, small: every case ends properly", () => {
  for (const { eventUs } of benchEvents({ rounds: 1, deltas: 50, streams: 10 }))
    expect(eventUs).toBeGreaterThan(0);
});

test("the peers' suite runs, small: with memory, floods, a kill and a host that goes away", async () => {
  const size = { ...SMALL, connections: [1, 4], open: [10, 20], faults: true };
  const run = await benchPeers([gateway], size, () => {});
  expect(run.skipped).toEqual([]);
  const [own] = run.peers;
  expect(own!.requestsPerSecond.median).toBeGreaterThan(0);
  expect(own!.latencyMs[4]!.p50).toBeGreaterThan(0);
  expect(own!.memory!.open.map(({ bytes }) => bytes)).toEqual([expect.any(Number), expect.any(Number)]);
  expect(own!.faults).toMatchObject({ tooLarge: { status: 413 }, badKey: { status: 401 } });
  expect(own!.faults!.largeBody.answered).toMatch(/^\d+ × 200$/);
  expect(tables(run)).toContain("| gateway |");
  const folder = mkdtempSync(join(tmpdir(), "published-"));
  publish(run, size, circumstances("bun test", new Date(0)), folder);
  const { peers, machine } = JSON.parse(readFileSync(join(folder, "peers.json"), "utf8"));
  expect([peers[0].name, machine]).toEqual(["gateway", expect.stringContaining("GiB")]);
  for (const plot of ["peers.svg", "peers-latency.svg"]) {
    const svg = readFileSync(join(folder, plot), "utf8");
    expect(svg).toContain(">gateway</text>");
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  }
  rmSync(folder, { recursive: true });
});

test("a peer that this machine cannot have is left out by name and reason, and the others are measured", async () => {
  const absent: Peer = {
    name: "absent",
    async install() {
      throw new Error("it cannot be had");
    },
  };
  const run = await benchPeers([absent, bareHost], SMALL, () => {});
  expect(run.skipped).toEqual([{ name: "absent", why: "it cannot be had" }]);
  expect(run.peers.map(({ name }) => name)).toEqual(["bare host"]);
  expect(tables(run)).toContain("Left out: absent (it cannot be had).");
});

test("the peers' suite tells what an event of each kind of stream costs, and a whole answer that is assembled", async () => {
  const run = await benchPeers([gateway, bareHost], { ...SMALL, parts: ["kinds"] }, () => {});
  expect(run.skipped).toEqual([]);
  const [own, bare] = run.peers;
  expect(Object.keys(own!.usPerEventOf)).toEqual(KINDS.map(({ name }) => name));
  expect(Object.keys(bare!.usPerEventOf)).toHaveLength(3);
  expect([own!.usPerAssembled === null, bare!.usPerAssembled]).toEqual([false, null]);
  expect(tables(run)).toContain("| Messages → chat |");
});

test("the sizing bench runs, small: every load has a rate, and open streams a size", async () => {
  const size = { seconds: 0.2, rounds: 1, open: 100, memory: [20] };
  const sizing = await benchSizing(size, () => {});
  for (const { perSecond } of sizing.rows) expect(perSecond).toBeGreaterThan(0);
  expect(sizingTable(sizing)).toContain("20 open streams: ");
});

test("the soak runs, small, and leaves no hold and no drift behind", async () => {
  const soak = await benchSoak({ seconds: 4, streams: 40, pace: "steady", everyS: 1 }, () => {});
  expect(soak).toMatchObject({ after: { holds: 0 }, failed: 0, driftNano: "0" });
  expect(soak.served).toBeGreaterThan(0);
  expect(soak.left).toBeGreaterThan(0);
});

test("a soak tells what is left behind", () => {
  const look = { atS: 0, megabytes: 100, descriptors: 10, holds: 0 };
  const looks = [100, 100, 100, 130].map((megabytes) => ({ ...look, megabytes }));
  const after = { ...look, descriptors: 500, holds: 2 };
  const counts = { served: 9, left: 1, failed: 1, driftNano: "7" };
  expect(faultsOf({ before: look, looks, after, ...counts })).toHaveLength(5);
  expect(
    faultsOf({ before: look, looks: looks.slice(0, 3), after: look, ...counts, failed: 0, driftNano: "0" }),
  ).toEqual([]);
});

test("the failover suite runs, small: every failure reaches the next host", async () => {
  const results = await benchFailover(3);
  expect(results.map(({ failure }) => failure)).toContain("refused connection");
  for (const { p50 } of results) expect(p50).toBeGreaterThan(0);
});

describe("a figure is dearer than its reference", () => {
  const figure = (...ours: number[]) => ({ name: "a request", ours, baseline: [1, 1, 1] });
  test.each([
    ["when its best turn is far above it", figure(20, 20, 21), 10, true],
    ["not when one turn was as good as ever", figure(10, 20, 21), 10, false],
    ["not when the turns differ by as much as it does", figure(15, 24, 25), 10, false],
    ["not when it is cheaper", figure(5, 5, 5), 10, false],
    ["not when it is new", figure(20, 20, 20), null, false],
  ])("%s", (_what, measured, reference, dearer) => {
    expect(verdictOn(measured, reference).dearer).toBe(dearer);
  });
});

test("only what is dearer in each attempt has become dearer", () => {
  const verdicts = (...dearer: string[]) =>
    ["a", "b", "c"].map((name) => ({
      name,
      ratio: 1,
      noise: 0,
      reference: 1,
      dearer: dearer.includes(name),
    }));
  const first = dearerStill(null, verdicts("a", "b"));
  expect(first).toEqual(["a", "b"]);
  const second = dearerStill(first, verdicts("b", "c"));
  expect(second).toEqual(["b"]);
  expect(dearerStill(second, verdicts("a", "c"))).toEqual([]);
});

test("the regression suite runs, small: every figure beside its baseline, and what a request and an event cost has a reference", async () => {
  const micro = await microFigures(2, 1);
  const macro = await macroFigures(1, 0.1, 4);
  const reference = await Bun.file(`${import.meta.dir}/../../bench/reference.json`).json();
  expect(micro.map(({ ours, baseline }) => [ours.length, baseline.length])).toEqual(micro.map(() => [2, 2]));
  for (const { name } of macro) expect(reference[name]).toBeGreaterThan(0);
});

test("the pause bench runs, small, and measures each before and after", async () => {
  const rows = await benchPause({ rounds: 1, pauseMs: 5, requests: 64 });
  expect(rows.map(({ name }) => name)).toEqual([
    "gateway",
    "gateway, Bun as it is",
    "bare proxy, Bun as it is",
  ]);
  for (const { before, after } of rows) {
    for (const { p50, p99 } of [before, after]) expect(p99).toBeGreaterThanOrEqual(p50);
  }
});

test("the neighbour bench runs, small: a key at its limit is refused, the other is served", async () => {
  const [alone, small, large] = await benchNeighbour(1, 0.2);
  expect([alone!.failures, small!.failures, large!.failures]).toEqual([0, 0, 0]);
  expect(small!.refused).toBeGreaterThan(0);
  expect(large!.refused).toBeGreaterThan(0);
});

test("the attack bench runs, small: attackers are refused, who pays is served, and the owner revokes", async () => {
  const rows = await benchAttacks({ only: null, seconds: 1, keys: 8, setUps: 500, secrets: 200 });
  for (const { beside, requests, errors, revoked, revokeErrors } of rows) {
    expect([beside, errors, revokeErrors]).toEqual([beside, 0, 0]);
    expect(requests).toBeGreaterThan(0);
    expect(revoked).toBeGreaterThan(0);
  }
  const [quiet, ...attacks] = rows;
  expect(quiet!.answers).toEqual({});
  expect(attacks).toHaveLength(Object.keys(ATTACKS).length);
  const answersTo = (name: string) => attacks[Object.keys(ATTACKS).indexOf(name)]!.answers;
  expect(answersTo("setups")[201] ?? 0).toBeLessThanOrEqual(240);
  expect(answersTo("secrets")[401] ?? 0).toBeLessThanOrEqual(60);
});
