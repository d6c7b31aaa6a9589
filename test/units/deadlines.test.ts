import { beforeEach, expect, test } from "bun:test";
import { type Deadline, Deadlines } from "../../src/units/deadlines.ts";
import { ManualClock } from "../fakes/clock.ts";

let clock: ManualClock;
let deadlines: Deadlines;
let over: string[];

beforeEach(() => {
  clock = new ManualClock();
  over = [];
  deadlines = new Deadlines(clock, (error) => void over.push(String(error)));
});

/** Notes when its time is up. */
function deadline(name: string, dueMs: number): Deadline & { dueMs: number } {
  const one = { dueMs, timeIsUp: () => void over.push(`${name} ${clock.elapsedMs()}`) };
  deadlines.add(one);
  return one;
}

test("each comes at its time, and one timer does for all", () => {
  for (const at of [30, 10, 20, 10]) deadline("one", at);
  expect(clock.pending).toBe(1);
  clock.advance(100);
  expect(over).toEqual(["one 10", "one 10", "one 20", "one 30"]);
  expect(clock.pending).toBe(0);
});

test("one that is put off comes later, one that is added again comes sooner, one that is dropped never", () => {
  const late = deadline("late", 10);
  const soon = deadline("soon", 50);
  const never = deadline("never", 20);
  late.dueMs = 40;
  clock.advance(15);
  soon.dueMs = 18;
  deadlines.add(soon);
  deadlines.drop(never);
  clock.advance(100);
  expect(over).toEqual(["soon 18", "late 40"]);
});

test("once nothing is left to wait for, no timer is", () => {
  const [one, other] = [deadline("one", 10), deadline("other", 20)];
  deadlines.drop(one);
  deadlines.drop(other);
  expect(clock.pending).toBe(0);
  deadline("next", 30);
  clock.advance(30);
  expect(over).toEqual(["next 30"]);
});

test("one whose end ends another takes its deadline with it", () => {
  const other = { dueMs: 10, timeIsUp: () => void over.push("other") };
  deadlines.add({
    dueMs: 10,
    timeIsUp() {
      over.push("one");
      deadlines.drop(other);
    },
  });
  deadlines.add(other);
  clock.advance(10);
  expect(over).toEqual(["one"]);
});

test("one that fails at its end keeps nobody else from theirs, and is reported", () => {
  deadlines.add({
    dueMs: 10,
    timeIsUp() {
      throw new Error("a fault of ours");
    },
  });
  deadline("other", 10);
  clock.advance(10);
  expect(over).toEqual(["Error: a fault of ours", "other 10"]);
});
