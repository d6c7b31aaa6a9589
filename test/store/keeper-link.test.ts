import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import { KeeperLink, KeeperSocket } from "../../src/store/nodes/keeper-link.ts";
import type { KeeperAnnouncement, KeeperOperations } from "../../src/store/nodes/keeper-operations.ts";
import { type Clock, epochMs, systemClock } from "../../src/units/clock.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { FaultyLine } from "../fakes/faulty-line.ts";
import { until } from "../fakes/until.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";

let folder: string;
let stops: (() => void)[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "link-"));
  stops = [];
});
afterEach(() => {
  for (const stop of stops.splice(0).reverse()) stop();
  rmSync(folder, { recursive: true });
});

/** What is tried again soon is tried at once. */
const IMPATIENT: Pick<Clock, "after"> = {
  after: (ms, fire) => systemClock.after(ms <= 1_000 ? 0 : ms, fire),
};

/** Counts how often it has done what it was asked, and answers in any order. */
class CountingKeeper {
  readonly done: number[] = [];

  constructor(private readonly random: Random) {}

  readonly operations = {
    fold: async (call: number) => {
      this.done[call] = (this.done[call] ?? 0) + 1;
      for (let turns = this.random.below(4); turns > 0; turns--) await turn();
      if (call % 5 === 4) throw new EpochFenced(answerOf(call));
      return answerOf(call);
    },
  } as unknown as KeeperOperations;
}

/** Some longer than the buffer of a socket, some of several bytes a character. */
const answerOf = (call: number): string => `${call} ${"é€x".repeat(call % 50 === 0 ? 100_000 : call % 7)}`;

const turn = () => new Promise((next) => setImmediate(next));

test("over a line that breaks at any byte, a call is done once at most, and has its own answer or an error", async () => {
  const fatesOfAll = { answered: 0, lost: 0 };
  for (let seed = 1; seed <= rounds(2, 20, 300); seed++) {
    const random = new Random(seed);
    const keeper = new CountingKeeper(random);
    const [behind, path] = ["keeper", "node"].map((name) => join(folder, `${name}-${seed}.sock`)) as [
      string,
      string,
    ];
    const faults: unknown[] = [];
    const socket = await KeeperSocket.listen(behind, keeper.operations, (fault) => faults.push(fault));
    const line = await FaultyLine.open(path, behind, random);
    const link = new KeeperLink(path, IMPATIENT, (fault) => faults.push(fault));
    stops.push(
      () => socket.stop(),
      () => line.stop(),
      () => link.close(),
    );
    const received: KeeperAnnouncement[] = [];
    link.listen((announcement) => received.push(announcement));

    const fates: (keyof typeof fatesOfAll)[] = [];
    const call = async (number: number) => {
      const answer = await link.keeper.fold(epochMs(number)).catch((error: Error) => error);
      if (answer instanceof StoreUnreachable) return void (fates[number] = "lost");
      if (number % 5 === 4) expect(answer).toEqual(new EpochFenced(answerOf(number)));
      else expect(answer as unknown).toBe(answerOf(number));
      fates[number] = "answered";
    };
    const calls: Promise<void>[] = [];
    while (calls.length < 400 || line.breaks < 5) {
      for (let some = random.below(20); some >= 0; some--) calls.push(call(calls.length));
      if (random.chance(0.3)) await Promise.race(calls.slice(-10));
      await turn();
    }
    line.isFaulty = false;
    await Promise.all(calls);
    const after = Array.from({ length: 50 }, (_, at) => call(calls.length + at));
    await Promise.all(after);

    expect(fates.slice(calls.length)).not.toContain("lost");
    for (const [number, fate] of fates.entries()) {
      if (number < calls.length) fatesOfAll[fate] += 1;
      const times = keeper.done[number] ?? 0;
      const expected = fate === "answered" ? 1 : Math.min(times, 1);
      expect([seed, number, fate, times]).toEqual([seed, number, fate, expected]);
    }
    expect(faults).toEqual([]);
    socket.announce({ kind: "changed" });
    const known = received.length;
    await until(() => received.length > known);
    link.close();
    socket.stop();
  }
  expect(fatesOfAll.answered).toBeGreaterThan(0);
  expect(fatesOfAll.lost).toBeGreaterThan(0);
});
