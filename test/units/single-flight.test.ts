import { expect, test } from "bun:test";
import { SingleFlight } from "../../src/units/single-flight.ts";

test("who asks for a key while its work is under way shares it; the next one has it done again", async () => {
  const flight = new SingleFlight<string, number>();
  const started: PromiseWithResolvers<number>[] = [];
  const request = (key: string) =>
    flight.do(key, () => {
      const work = Promise.withResolvers<number>();
      started.push(work);
      return work.promise;
    });
  const [first, second, other] = [request("a"), request("a"), request("b")];
  expect(started).toHaveLength(2);
  started[0]!.resolve(1);
  expect(await Promise.all([first, second])).toEqual([1, 1]);
  const again = request("a");
  started[2]!.resolve(3);
  started[1]!.reject(new Error("down"));
  expect(await again).toBe(3);
  expect(other).rejects.toThrow("down");
});
