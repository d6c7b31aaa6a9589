import { expect, test } from "bun:test";
import { closeGoneNodes } from "../../src/store/nodes/postgres-registry.ts";
import { ManualClock } from "../fakes/clock.ts";

const CHECK_MS = 5_000;
/** Until the third look in a row, the nodes that renew after an outage have done so. */
const SURE_MS = 3 * CHECK_MS;

function watch() {
  const clock = new ManualClock();
  const closed: string[] = [];
  const state = { usable: true, gone: [] as string[], fails: false };
  const stop = closeGoneNodes({
    registry: {
      async gone() {
        if (state.fails) throw new Error("away");
        return state.gone.splice(0);
      },
      async close(name) {
        closed.push(name);
        return "closed";
      },
    },
    usable: () => state.usable,
    clock,
    log: () => {},
  });
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += CHECK_MS) {
      clock.advance(CHECK_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { state, closed, pass, stop, clock };
}

test("nodes that are gone are closed, again and again", async () => {
  const { state, closed, pass } = watch();
  state.gone = ["a", "b"];
  await pass(SURE_MS);
  expect(closed).toEqual(["a", "b"]);
  state.gone = ["c"];
  await pass(CHECK_MS);
  expect(closed).toEqual(["a", "b", "c"]);
});

test("after an outage nobody is closed before everybody could renew the lease", async () => {
  const { state, closed, pass } = watch();
  await pass(SURE_MS);
  state.usable = false;
  await pass(CHECK_MS);
  state.usable = true;
  state.gone = ["about to renew"];
  await pass(SURE_MS - CHECK_MS);
  expect(closed).toEqual([]);
  await pass(CHECK_MS);
  expect(closed).toHaveLength(1);
});

test("what fails is tried again, and a stop is one", async () => {
  const { state, closed, pass, stop, clock } = watch();
  state.gone = ["a"];
  state.fails = true;
  await pass(SURE_MS);
  state.fails = false;
  await pass(CHECK_MS);
  expect(closed).toEqual(["a"]);
  stop();
  expect(clock.pending).toBe(0);
});
