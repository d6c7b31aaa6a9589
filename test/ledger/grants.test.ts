import { expect, test } from "bun:test";
import type { Statement } from "../../src/ledger/authority.ts";
import { Counter, type CounterId } from "../../src/ledger/counter.ts";
import type { Grantable } from "../../src/ledger/grant-negotiation.ts";
import { type GrantAnswer, GrantClaim, Grants } from "../../src/ledger/grants.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { FleetAuthority } from "../sim/fleet-authority.ts";

const LIMIT = 1_000 as NanoUsd;
const AMOUNT = 100 as NanoUsd;

/** A node that has been granted nothing yet, of a limit that others hold all of. */
function fixture(answers: (statement: Statement, grants: Grants) => void, usable = () => true) {
  const clock = new ManualClock();
  const counter = new Counter("balance:bal_1" as CounterId);
  counter.granted = 0 as NanoUsd;
  const grants: Grants = new Grants("n", 1, clock, (statement) => answers(statement, grants), usable);
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5) {
      clock.advance(5);
      if (passed % 250 === 0) grants.tick();
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
  short: true,
  spare: LIMIT,
  open: LIMIT,
  inquiry: 0,
  answered: 0,
});

test("a ledger that waits for others to give back, and then receives no more, does not know: there may be enough", async () => {
  let notified = 0;
  const { grants, counter, pass } = fixture((statement, to) => {
    notified += 1;
    if (notified <= 3) setImmediate(() => to.receive(nothing(statement)));
  });
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(11_300);
  expect(await answer).toBe("unanswered");
  expect(notified).toBeGreaterThan(3);
});

test("a ledger that receives nothing at all does not know", async () => {
  const { grants, counter, pass } = fixture(() => {});
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(11_100);
  expect(await answer).toBe("unanswered");
});

test("an Authority that takes nine seconds is waited for", async () => {
  let answerFirst = () => {};
  const { grants, counter, pass } = fixture((statement, to) => {
    const grant = { ...nothing(statement), granted: AMOUNT, elsewhere: 0 as NanoUsd, short: false };
    if (statement.number === 1) answerFirst = () => to.receive(grant);
  });
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(9_000);
  expect(await Promise.race([answer, "waits"])).toBe("waits");
  answerFirst();
  expect(await answer).toBe("room");
});

test.each([
  ["nothing is left, no more is requested", 0, 1],
  ["something is left, more is requested", 1, 2],
])("a node that runs low: if %s ahead of need", async (_, free, statements) => {
  let stated = 0;
  const { grants, counter, pass } = fixture((statement, to) => {
    stated += 1;
    const granted = statement.requested;
    const elsewhere = (LIMIT - granted - free) as NanoUsd;
    setImmediate(() => to.receive({ ...nothing(statement), granted, elsewhere, free, short: false }));
  });
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(100);
  expect(await answer).toBe("room");
  counter.hold((counter.granted - AMOUNT) as NanoUsd);
  grants.prefetch(counter, AMOUNT, LIMIT);
  expect(stated).toBe(statements);
});

test("a counter that a request waits for is not given up, however often the others have answered", async () => {
  const { grants, counter, pass } = fixture((statement, to) => {
    setImmediate(() => to.receive(nothing(statement)));
  });
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  for (let times = 0; times < 20; times++) {
    await pass(20);
    expect(grants.retire(counter)).toBe(false);
  }
  await pass(12_000);
  await answer;
  expect(grants.retire(counter)).toBe(true);
});

test("one that restarts is asked again, and waited for", async () => {
  let isUp = false;
  const { grants, counter, pass } = fixture((statement, to) => {
    const grant = { ...nothing(statement), granted: AMOUNT, elsewhere: 0 as NanoUsd, short: false };
    if (isUp) setImmediate(() => to.receive(grant));
  });
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(5_000);
  isUp = true;
  await pass(1_500);
  expect(await answer).toBe("room");
});

test("a lease that ran out a moment ago is waited for, and no longer than half of one", async () => {
  let isUsable = true;
  const { grants, counter, pass } = fixture(
    (statement, to) => {
      const grant = { ...nothing(statement), granted: AMOUNT, elsewhere: 0 as NanoUsd, short: false };
      if (isUsable) setImmediate(() => to.receive(grant));
    },
    () => isUsable,
  );
  await pass(250);
  isUsable = false;
  const first = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(4_000);
  expect(await Promise.race([first, "waits"])).toBe("waits");
  isUsable = true;
  await pass(1_500);
  expect(await first).toBe("room");
  isUsable = false;
  const second = grants.requestOne(counter, (2 * AMOUNT) as NanoUsd, LIMIT);
  await pass(6_500);
  expect(await second).toBe("unanswered");
  const third = grants.awaitLease();
  await pass(5);
  expect(await third).toBe(false);
});

test("what is given back is known to have arrived, although more is stated all the while", async () => {
  const { grants, counter, pass } = fixture((statement, to) => {
    setImmediate(() => {
      counter.hold(1 as NanoUsd);
      to.recall(counter.id, 0);
      to.receive({ ...nothing(statement), granted: statement.used });
    });
  });
  counter.granted = 500 as NanoUsd;
  grants.giveBack(counter, LIMIT);
  const released = grants.release(["balance:"]);
  await pass(100);
  expect(await Promise.race([released, "not known"])).toBe(true);
});

test("giving back does not wait for a lease that ran out, because the lease is renewed only after that", async () => {
  let isUsable = true;
  const { grants, counter, pass } = fixture(
    () => {},
    () => isUsable,
  );
  counter.granted = 500 as NanoUsd;
  grants.giveBack(counter, LIMIT);
  const released = grants.release(["balance:"]);
  await pass(1_500);
  expect(await Promise.race([released, "waits"])).toBe("waits");
  isUsable = false;
  await pass(1_100);
  expect(await Promise.race([released, "waits"])).toBe(false);
});

test("what is given back in the moment in which it was granted is not missing", async () => {
  let notified = 0;
  const { grants, counter, pass } = fixture((statement, to) => {
    setImmediate(() => {
      notified += 1;
      const granted = (notified === 1 ? 0 : Math.min(150, statement.requested)) as NanoUsd;
      const short = granted < statement.needed;
      const { inquiry } = statement;
      const others = { elsewhere: (LIMIT - granted) as NanoUsd, spare: 0 as NanoUsd };
      to.receive({ ...nothing(statement), ...others, granted, short, inquiry, answered: inquiry });
      if (notified === 2) to.recall(counter.id, 1);
    });
  });
  // Together they need more than there is.
  const answers = Promise.all([
    grants.requestOne(counter, AMOUNT, LIMIT),
    grants.requestOne(counter, AMOUNT, LIMIT),
  ]);
  await pass(1_000);
  expect(await answers).toEqual(["room", "room"]);
});

test("what others have used up is not waited for, though they last said that they had not", async () => {
  const world = new World(["one", "other"]);
  expect(await world.request("other", 500)).toBe("room");
  world.use("other", 500);
  expect(await world.request("one", 300)).toBe("room");
  world.use("one", 300);
  // It is scarce by now, so no more is asked for than is needed: 200 are granted, and none of them is said to
  // be used.
  expect(await world.request("other", 200)).toBe("room");
  world.use("other", 200);
  expect(await world.request("one", 100)).toBe("short");
  expect(world.clock.elapsedMs()).toBeLessThan(200);
});

test("what others have left over is given back at once", async () => {
  const world = new World(["one", "other"]);
  expect(await world.request("other", 1_000)).toBe("room");
  world.use("other", 700);
  expect(await world.request("one", 300)).toBe("room");
  expect(world.clock.elapsedMs()).toBeLessThan(100);
});

test("what an open request holds elsewhere and does not use can be had as soon as it ends, however long that took", async () => {
  const world = new World(["one", "other"]);
  expect(await world.request("other", 600)).toBe("room");
  world.use("other", 600);
  expect(await world.request("one", 600)).toBe("short");
  await world.pass(30_000);
  world.use("other", -590);
  expect(await world.request("one", 600)).toBe("room");
});

test("who asks for more than others could ever give back is refused, and nobody is disturbed", async () => {
  const world = new World(["one", "other"]);
  expect(await world.request("one", 900)).toBe("room");
  world.use("one", 900);
  expect(await world.request("other", 100)).toBe("room");
  world.use("other", 100);
  expect(await world.request("one", 100)).toBe("short");
  const before = world.recalls("other");
  expect(await world.request("one", 101)).toBe("short");
  expect(world.recalls("other")).toBe(before);
});

for (const [nodes, amount, served] of [
  [2, 150, 2],
  [2, 300, 1],
  [3, 150, 2],
  [8, 100, 4],
  [8, 300, 1],
] as const) {
  test(`${nodes} that ask for ${amount} at once, of 400, are served as far as it goes, and hear soon who is not`, async () => {
    const names = Array.from({ length: nodes }, (_, index) => `n${index}`);
    const world = new World([...names, "holder"]);
    expect(await world.request("holder", 600)).toBe("room");
    world.use("holder", 600);
    const answers = await world.take(names.map((name) => [name, amount]));
    expect(answers.toSorted()).toEqual(names.map((_, index) => (index < served ? "room" : "short")));
    expect(world.clock.elapsedMs()).toBeLessThan(300);
  });
}

test("however many are refused, others are only asked so often", async () => {
  const world = new World(["one", "other", "holder"]);
  expect(await world.request("holder", 1_000)).toBe("room");
  world.use("holder", 1_000);
  const asks = Array.from({ length: 500 }, (_, index) => [index % 2 === 0 ? "one" : "other", 100] as const);
  for (let wave = 0; wave < 5; wave++) {
    const answers = await world.take(asks);
    expect(new Set(answers)).toEqual(new Set(["short"]));
  }
  expect(world.recalls("holder")).toBeLessThan(50);
});

test("what others have left over is waited for while they are slow to give it back", async () => {
  const world = new World(["one", "other"]);
  expect(await world.request("other", 1_000)).toBe("room");
  world.silence("other");
  world.clock.after(2_000, () => world.endSilence("other"));
  expect(await world.request("one", 100)).toBe("room");
});

test("what another one has left over that does not answer may be there still: the request can be repeated", async () => {
  const world = new World(["one", "other"]);
  expect(await world.request("other", 1_000)).toBe("room");
  world.silence("other");
  expect(await world.request("one", 100)).toBe("held");
});

test("what a request was granted of one counter is still needed while it waits for another", async () => {
  const slow = new Counter("run:bal_1/job:0" as CounterId);
  slow.granted = 0 as NanoUsd;
  const needed: number[] = [];
  const { grants, counter, pass } = fixture((statement, to) => {
    if (statement.counter === slow.id) return;
    needed.push(statement.needed);
    // As much as is needed, and no more: others may have the rest.
    const granted = statement.needed;
    setImmediate(() => to.receive({ ...nothing(statement), elsewhere: 0 as NanoUsd, granted, short: false }));
  });
  const claim = new GrantClaim();
  const both = grants.requestAll(
    [counter, slow].map((one) => [one, LIMIT, AMOUNT]),
    claim,
  );
  await pass(5);
  const other = grants.requestOne(counter, (AMOUNT + 50) as NanoUsd, LIMIT);
  await pass(5);
  expect(await other).toBe("room");
  expect(needed).toEqual([AMOUNT, 2 * AMOUNT + 50]);
  claim.release();
  void both;
});

/** Ledgers that share one limit. */
class World {
  readonly clock = new ManualClock();
  private readonly ledgers = new Map<string, { grants: Grants; counter: Counted }>();
  private readonly silent = new Set<string>();

  constructor(names: readonly string[]) {
    const authority = new FleetAuthority((counter, asker, inquiry) => {
      for (const [name, { grants }] of this.ledgers) {
        if (name !== asker && !this.silent.has(name)) queueMicrotask(() => grants.recall(counter, inquiry));
      }
    });
    for (const name of names) {
      const grants: Grants = new Grants(name, 1, this.clock, (statement) => {
        queueMicrotask(() => grants.receive(authority.settle(statement)!));
      });
      this.ledgers.set(name, { grants, counter: new Counted() });
    }
  }

  /** Everybody tends their grants, as they do a few times a second. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      this.clock.advance(250);
      for (const { grants } of this.ledgers.values()) grants.tick();
      await Bun.sleep(0);
    }
  }

  async request(name: string, amount: number): Promise<GrantAnswer> {
    const { grants, counter } = this.ledgers.get(name)!;
    const [answer] = await this.settled([grants.requestOne(counter, amount as NanoUsd, LIMIT)]);
    return answer!;
  }

  /** Each asks until it can take the amount, and takes it; or is refused. */
  take(amounts: readonly (readonly [name: string, amount: number])[]): Promise<GrantAnswer[]> {
    return this.settled(
      amounts.map(async ([name, amount]) => {
        const { grants, counter } = this.ledgers.get(name)!;
        for (;;) {
          if (counter.granted - counter.taken >= amount) {
            counter.taken += amount;
            return "room";
          }
          const answer = await grants.requestOne(counter, amount as NanoUsd, LIMIT);
          if (answer !== "room") return answer;
        }
      }),
    );
  }

  private async settled<Result>(all: readonly Promise<Result>[]): Promise<Result[]> {
    let results: Result[] | null = null;
    void Promise.all(all).then((given) => {
      results = given;
    });
    for (let step = 0; results === null; step++) {
      expect(step).toBeLessThan(4_000);
      await Bun.sleep(0);
      if (results === null) this.clock.advance(5);
    }
    return results;
  }

  use(name: string, amount: number): void {
    this.ledgers.get(name)!.counter.taken += amount;
  }

  /** How often it was asked to give back. */
  recalls(name: string): number {
    return this.ledgers.get(name)!.grants.figures.recalls;
  }

  silence(name: string): void {
    this.silent.add(name);
  }

  endSilence(name: string): void {
    this.silent.delete(name);
  }
}

class Counted implements Grantable {
  readonly id = "day:key_1:0" as Grantable["id"];
  readonly isPrefetched = true;
  readonly aheadShare = 1;
  granted = 0 as NanoUsd;
  elsewhere = 0 as NanoUsd;
  openElsewhere = 0 as NanoUsd;
  taken = 0;

  used(): NanoUsd {
    return this.taken as NanoUsd;
  }
}

test("what is given back and does not arrive is stated again, however long nobody has run short", async () => {
  const authority = new FleetAuthority();
  authority.credit("balance:bal_1" as CounterId, LIMIT);
  let isLost = false;
  const { grants, counter, pass } = fixture((statement, to) => {
    if (!isLost) setImmediate(() => to.receive(authority.settle(statement)!));
  });
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(50);
  expect(await answer).toBe("room");
  counter.hold(AMOUNT);
  grants.recall(counter.id, 1);
  await pass(5_000);
  counter.settle(AMOUNT, 0 as NanoUsd);
  isLost = true;
  await pass(1_000);
  isLost = false;
  await pass(2_000);
  expect(authority.granted(counter.id)).toBe(0);
});

test("credit that was taken back while requests hold it is given back as they end, without being asked for", async () => {
  const authority = new FleetAuthority();
  authority.credit("balance:bal_1" as CounterId, LIMIT);
  const { grants, counter, pass } = fixture((statement, to) => {
    setImmediate(() => to.receive(authority.settle(statement)!));
  });
  const answer = grants.requestOne(counter, LIMIT, LIMIT);
  await pass(50);
  expect(await answer).toBe("room");
  counter.hold(LIMIT);
  authority.debit("back", counter.id, { upTo: 900 as NanoUsd });
  const released = grants.release([counter.id]);
  await pass(50);
  expect([await released, counter.room(LIMIT)]).toEqual([true, 0 as NanoUsd]);
  await pass(20_000);
  counter.settle(300 as NanoUsd, 0 as NanoUsd);
  await pass(500);
  expect([authority.granted(counter.id), counter.room(LIMIT)]).toEqual([700, 0 as NanoUsd]);
  counter.settle(700 as NanoUsd, 20 as NanoUsd);
  await pass(500);
  expect(authority.granted(counter.id)).toBe(20);
  const more = grants.requestOne(counter, 80 as NanoUsd, LIMIT);
  await pass(50);
  expect(await more).toBe("room");
});

test.each([
  [99, "short"],
  [100, "waits"],
] as const)("where others could give back %i of 100, the answer is: %s", async (open, expected) => {
  const { grants, counter, pass } = fixture((statement, to) => {
    setImmediate(() => to.receive({ ...nothing(statement), open: open as NanoUsd }));
  });
  const answer = grants.requestOne(counter, AMOUNT, LIMIT);
  await pass(5);
  expect(await Promise.race([answer, "waits"])).toBe(expected);
});

test("room that is just enough needs no statement", async () => {
  const statements: Statement[] = [];
  const { grants, counter } = fixture((statement) => statements.push(statement));
  counter.granted = AMOUNT;
  expect(await grants.requestOne(counter, AMOUNT, LIMIT)).toBe("room");
  expect(statements).toEqual([]);
});

test("what is given back cannot be used from the moment in which that is stated", () => {
  const { grants, counter } = fixture(() => {});
  grants.requestInBackground(counter, AMOUNT, LIMIT);
  grants.receive({ ...nothing({ counter: counter.id, number: 1 } as Statement), granted: 500 as NanoUsd });
  counter.hold(AMOUNT);
  grants.recall(counter.id, 1);
  expect(counter.granted).toBe(AMOUNT);
});

test("a counter of which everything was given back and answered is no longer remembered", () => {
  const statements: Statement[] = [];
  const { grants, counter } = fixture((statement) => statements.push(statement));
  grants.requestInBackground(counter, AMOUNT, LIMIT);
  grants.returnIdle();
  expect(grants.figures.counters).toBe(1);
  grants.forget(counter.id);
  expect(grants.figures.counters).toBe(0);
  counter.granted = 500 as NanoUsd;
  grants.giveBack(counter, LIMIT);
  grants.receive(nothing(statements.at(-1)!));
  expect(grants.figures.counters).toBe(1);
  grants.returnIdle();
  expect(grants.figures.counters).toBe(0);
});

test("more is requested ahead once room for fewer than four requests of this size is left", () => {
  const statements: Statement[] = [];
  const { grants } = fixture((statement) => statements.push(statement));
  const counter = new Counted();
  counter.granted = 400 as NanoUsd;
  grants.prefetch(counter, AMOUNT, LIMIT);
  expect(statements).toEqual([]);
  counter.taken = 1;
  grants.prefetch(counter, AMOUNT, LIMIT);
  // The second finds one under way.
  grants.prefetch(counter, AMOUNT, LIMIT);
  expect(statements).toHaveLength(1);
});

test("while requests hold what was taken back of a balance, its grant is not forgotten, however long they last", async () => {
  const stated: Statement[] = [];
  const { grants, counter, pass } = fixture((statement, to) => {
    stated.push(statement);
    // Once all of the credit is taken back, nothing of the grant may be used.
    const granted = (stated.length === 1 ? statement.needed : 0) as NanoUsd;
    const elsewhere = 0 as NanoUsd;
    setImmediate(() => to.receive({ ...nothing(statement), granted, elsewhere, short: false }));
  });
  grants.requestInBackground(counter, AMOUNT, LIMIT);
  await pass(50);
  counter.hold(AMOUNT);
  void grants.release([counter.id]);
  await pass(50);
  expect([counter.granted, counter.used()]).toEqual([0, 100] as NanoUsd[]);
  grants.returnIdle();
  counter.settle(AMOUNT, 0 as NanoUsd);
  await pass(1_000);
  expect(stated.at(-1)).toMatchObject({ used: 0, needed: 0 });
});
