import { expect, test } from "bun:test";
import { MergingFlight } from "../../src/units/merging-flight.ts";

/** Adds numbers up; each work ends when the test says so. */
function adding() {
  const flight = new MergingFlight<string, number, string>((one, other) => one + other);
  const started: { readonly item: number; end(failure?: Error): void }[] = [];
  const add = (key: string, item: number) =>
    flight.do(key, item, (sum) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      started.push({
        item: sum,
        end: (failure) => (failure === undefined ? resolve(`${sum}`) : reject(failure)),
      });
      return promise;
    });
  return { add, started, items: () => started.map(({ item }) => item) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("what is requested during work is merged, and is the next work of that key alone", async () => {
  const { add, started, items } = adding();
  const first = add("a", 1);
  const others = [add("a", 2), add("a", 3), add("a", 4)];
  const elsewhere = add("b", 9);
  expect(items()).toEqual([1, 9]);
  started[0]!.end();
  expect(await first).toBe("1");
  await settled();
  expect(items()).toEqual([1, 9, 9]);
  started[2]!.end();
  expect(await Promise.all(others)).toEqual(["9", "9", "9"]);
  started[1]!.end();
  expect(await elsewhere).toBe("9");
});

test("work that fails fails for those who requested it, and not for those after them", async () => {
  const { add, started, items } = adding();
  const first = add("a", 1).catch((error: Error) => error.message);
  const second = add("a", 2);
  started[0]!.end(new Error("no"));
  expect(await first).toBe("no");
  await settled();
  started[1]!.end();
  expect(await second).toBe("2");
  void add("a", 5);
  expect(items()).toEqual([1, 2, 5]);
});
