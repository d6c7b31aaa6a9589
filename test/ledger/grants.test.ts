import { expect, test } from "bun:test";
import type { Statement } from "../../src/ledger/authority.ts";
import { Counter, type CounterId } from "../../src/ledger/counter.ts";
import { type Answer, Grants, type Shared } from "../../src/ledger/grants.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { MemoryAuthority } from "../sim/memory-authority.ts";

const LIMIT = 1_000 as NanoUsd;
const AMOUNT = 100 as NanoUsd;

/** A node that has been granted nothing yet, of a limit that others hold all of. */
function house(answers: (statement: Statement, grants: Grants) => void) {
  const clock = new ManualClock();
  const counter = new Counter("balance:bal_1" as CounterId);
  counter.granted = 0 as NanoUsd;
  const grants: Grants = new Grants("n", 1, clock, (statement) => answers(statement, grants));
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5) {
      clock.advance(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { grants, counter, pass };
}

const nothing = ({ counter, number }: Statement) => ({
  counter,
  number,
  granted: 0 as NanoUsd,
  elsewhere: LIMIT,
  free: 0,
  recalled: true,
});

test("who is told that others were asked to give back, and then hears no more, does not know: there may be enough", async () => {
  let told = 0;
  const { grants, counter, pass } = house((statement, to) => {
    told += 1;
    if (told <= 3) setImmediate(() => to.receive(nothing(statement)));
  });
  const answer = grants.ask(counter, AMOUNT, LIMIT);
  await pass(1_300);
  expect(await answer).toBe("unanswered");
  expect(told).toBeGreaterThan(3);
});

test("who hears nothing at all does not know", async () => {
  const { grants, counter, pass } = house(() => {});
  const answer = grants.ask(counter, AMOUNT, LIMIT);
  await pass(1_100);
  expect(await answer).toBe("unanswered");
});

test("what is given back is known to have arrived, although more is stated all the while", async () => {
  const { grants, counter, pass } = house((statement, to) => {
    setImmediate(() => {
      counter.hold(1 as NanoUsd);
      to.recall(counter.id);
      to.receive({ ...nothing(statement), granted: statement.used });
    });
  });
  counter.granted = 500 as NanoUsd;
  grants.giveBack(counter, LIMIT);
  const released = grants.release(["balance:"]);
  await pass(100);
  expect(await Promise.race([released, "not known"])).toBe(true);
});

test("what others have used up is not waited for, though they last said that they had not", async () => {
  const world = new World(["one", "other"]);
  expect(await world.ask("other", 500)).toBe("room");
  world.use("other", 500);
  expect(await world.ask("one", 300)).toBe("room");
  world.use("one", 300);
  // It is scarce by now, so no more is asked for than is needed: 200 are granted, and none of them is said to
  // be used.
  expect(await world.ask("other", 200)).toBe("room");
  world.use("other", 200);
  expect(await world.ask("one", 100)).toBe("short");
  expect(world.clock.elapsedMs()).toBeLessThan(200);
});

test("what others have left over is given back at once", async () => {
  const world = new World(["one", "other"]);
  expect(await world.ask("other", 1_000)).toBe("room");
  world.use("other", 700);
  expect(await world.ask("one", 300)).toBe("room");
  expect(world.clock.elapsedMs()).toBeLessThan(100);
});

test("what others have left over is waited for while they are slow to give it back", async () => {
  const world = new World(["one", "other"]);
  expect(await world.ask("other", 1_000)).toBe("room");
  world.silence("other");
  world.clock.after(2_000, () => world.hear("other"));
  expect(await world.ask("one", 100)).toBe("room");
});

test("what another one has left over that does not answer may be there still: the request can be repeated", async () => {
  const world = new World(["one", "other"]);
  expect(await world.ask("other", 1_000)).toBe("room");
  world.silence("other");
  expect(await world.ask("one", 100)).toBe("unanswered");
});

/** Ledgers that share one limit. */
class World {
  readonly clock = new ManualClock();
  private readonly ledgers = new Map<string, { grants: Grants; counter: Counted }>();
  private readonly silent = new Set<string>();

  constructor(names: readonly string[]) {
    const authority = new MemoryAuthority((counter, asker) => {
      for (const [name, { grants }] of this.ledgers) {
        if (name !== asker && !this.silent.has(name)) queueMicrotask(() => grants.recall(counter));
      }
    });
    for (const name of names) {
      const grants: Grants = new Grants(name, 1, this.clock, (statement) => {
        queueMicrotask(() => grants.receive(authority.settle(statement)));
      });
      this.ledgers.set(name, { grants, counter: new Counted() });
    }
  }

  /** Time passes as long as there is no answer. */
  async ask(name: string, amount: number): Promise<Answer> {
    const { grants, counter } = this.ledgers.get(name)!;
    let answer: Answer | null = null;
    void grants.ask(counter, amount as NanoUsd, LIMIT).then((given) => {
      answer = given;
    });
    for (let step = 0; answer === null; step++) {
      expect(step).toBeLessThan(1_000);
      await Bun.sleep(0);
      if (answer === null) this.clock.advance(5);
    }
    return answer;
  }

  use(name: string, amount: number): void {
    this.ledgers.get(name)!.counter.taken += amount;
  }

  silence(name: string): void {
    this.silent.add(name);
  }

  hear(name: string): void {
    this.silent.delete(name);
  }
}

class Counted implements Shared {
  readonly id = "day:key_1:0" as Shared["id"];
  readonly aheadShare = 1;
  granted = 0 as NanoUsd;
  elsewhere = 0 as NanoUsd;
  taken = 0;

  used(): NanoUsd {
    return this.taken as NanoUsd;
  }
}
