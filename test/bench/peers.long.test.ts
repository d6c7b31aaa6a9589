import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AGENT_LOADS, agentBodies } from "../../bench/peers/agents.ts";
import { bareHost } from "../../bench/peers/bare-host.ts";
import { gateway } from "../../bench/peers/gateway.ts";
import { KINDS } from "../../bench/peers/kinds.ts";
import type { Peer } from "../../bench/peers/peer.ts";
import { circumstances, publish } from "../../bench/peers/publish.ts";
import { tables } from "../../bench/peers/report.ts";
import type { Part } from "../../bench/peers/rounds.ts";
import { benchPeers } from "../../bench/peers.ts";
import { macroFigures, microFigures } from "../../bench/regression.ts";

const SMALL = {
  rounds: 1,
  seconds: 0.1,
  streams: 4,
  passes: 1,
  connections: [1],
  open: [],
  settleMs: 50,
  faults: false,
  warmUpSeconds: 0.2,
};

test("the peers' suite runs, small: with memory, floods, a kill and a host that goes away", async () => {
  const parts: Part[] = ["requests", "latency", "streams", "first bytes", "half load"];
  const size = { ...SMALL, parts, connections: [1, 4], open: [10, 20], faults: true };
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

test("the peers' suite tells what an answer to an agent costs, by the size of its request", async () => {
  const run = await benchPeers([gateway, bareHost], { ...SMALL, parts: ["agents"] }, () => {});
  expect(run.skipped).toEqual([]);
  const few = AGENT_LOADS.filter(({ connections }) => connections <= SMALL.streams).map(({ name }) => name);
  expect(run.peers.map(({ usPerAgentsAnswer }) => Object.keys(usPerAgentsAnswer))).toEqual([few, few]);
  expect(tables(run)).toContain("| 200 kB, window of 128k tokens, 1 open |");
  expect(tables(run)).not.toContain("NaN");
});

test.each([200, 20_000, 1_000_000])(
  "an agent's bodies of %i bytes are all different, within a tenth of that size, and JSON",
  (bytes) => {
    const bodies = agentBodies("m", bytes, true);
    expect(new Set(bodies).size).toBe(bytes === 200 ? 4 : 16);
    for (const body of bodies) expect(JSON.parse(body)).toMatchObject({ model: "m", stream: true });
    if (bytes > 200) for (const body of bodies) expect(Math.abs(body.length / bytes - 1)).toBeLessThan(0.1);
  },
);

test("the regression suite runs, small: every figure next to its baseline, and what a request and an event cost has a reference", async () => {
  const micro = await microFigures(2, 1);
  const macro = await macroFigures({ turns: 1, seconds: 0.1, streams: 4, warmUpSeconds: 0.1 });
  const reference = await Bun.file(`${import.meta.dir}/../../bench/reference.json`).json();
  expect(micro.map(({ ours, baseline }) => [ours.length, baseline.length])).toEqual(micro.map(() => [2, 2]));
  for (const { name } of macro) expect(reference[name]).toBeGreaterThan(0);
});
