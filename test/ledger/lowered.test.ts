import { beforeEach, expect, test } from "bun:test";
import { Counter, type CounterId } from "../../src/ledger/counter.ts";
import { Grants } from "../../src/ledger/grants.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { FleetAuthority } from "../sim/fleet-authority.ts";

const LIMIT = 1_000 as NanoUsd;
const LOWERED = 400 as NanoUsd;
const usd = (nano: number) => nano as NanoUsd;

let clock: ManualClock;
let authority: FleetAuthority;
let nodes: Node[];

/** A ledger that shares one budget with others. */
class Node {
  readonly counter = new Counter("budget:bud_team:0" as CounterId);
  readonly grants: Grants;

  constructor(name: string) {
    this.counter.granted = usd(0);
    this.grants = new Grants(name, 1, clock, (statement) => {
      setImmediate(() => this.grants.receive(authority.settle(statement)!));
    });
  }

  /** Takes room for `amount`, or says that there is none. */
  async hold(amount: number, limit: NanoUsd): Promise<string> {
    const pending = this.grants.requestOne(this.counter, usd(amount), limit);
    for (let passed = 0; passed < 3_100; passed += 5) {
      clock.advance(5);
      await new Promise((next) => setImmediate(next));
    }
    const answer = await pending;
    if (answer === "room") this.counter.hold(usd(amount));
    return answer;
  }
}

const used = () => nodes.reduce((sum, { counter }) => sum + counter.used(), 0);

beforeEach(async () => {
  clock = new ManualClock();
  authority = new FleetAuthority((counter, asker, inquiry) => {
    for (const [at, node] of nodes.entries())
      if (asker !== `n${at}`) setImmediate(() => node.grants.recall(counter, inquiry));
  });
  nodes = [new Node("n0"), new Node("n1")];
  await nodes[0]!.hold(600, LIMIT);
  await nodes[1]!.hold(300, LIMIT);
  nodes[1]!.counter.settle(usd(300), usd(300));
  // As every node does before the change of the limit is answered.
  await Promise.all(nodes.map(({ grants }) => grants.release(["budget:bud_team"])));
  // Now what a request held under the old limit, and did not use, is left at its node.
  nodes[0]!.counter.settle(usd(600), usd(50));
});

test("what a request held before a limit was lowered, and did not use, is nobody's to spend beyond it", async () => {
  expect(nodes[0]!.counter.room(LOWERED)).toBe(usd(50));
  expect(await nodes[0]!.hold(60, LOWERED)).toBe("short");
  expect(used()).toBe(350);
});

test("what is left below the lowered limit can be used, at once and at any node", async () => {
  expect(await nodes[0]!.hold(30, LOWERED)).toBe("room");
  expect(await nodes[1]!.hold(20, LOWERED)).toBe("room");
  expect(await nodes[1]!.hold(1, LOWERED)).toBe("short");
  expect(used()).toBe(400);
});

test("a limit that is raised again gives room again", async () => {
  expect(await nodes[0]!.hold(60, LOWERED)).toBe("short");
  expect(await nodes[0]!.hold(500, LIMIT)).toBe("room");
  expect(used()).toBeLessThanOrEqual(LIMIT);
});
