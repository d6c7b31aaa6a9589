import { expect, test } from "bun:test";
import { RefusedFallbacks } from "../../src/routing/native-fallbacks.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { BALANCE, route } from "./world.ts";

const [first, next, other] = [route("a"), route("b"), route("c")];

test("a host's list that was refused is known for ten minutes, no other list of it, and not for other balances", () => {
  const refused = new RefusedFallbacks();
  refused.refused(first, [next], BALANCE, 1_000);
  expect(refused.has(first, [next], BALANCE, 600_999)).toBeTrue();
  expect(refused.has(first, [next], BALANCE, 601_000)).toBeFalse();
  expect(refused.has(first, [next, other], BALANCE, 1_000)).toBeFalse();
  expect(refused.has(first, [next], "bal_another" as BalanceId, 1_000)).toBeFalse();
  expect(refused.has(next, [first], BALANCE, 1_000)).toBeFalse();
});

test("1,000 lists are known; the one that was refused longest ago is forgotten for another", () => {
  const refused = new RefusedFallbacks();
  const list = (number: number) => [route("b", { model: `m${number}` })];
  for (let number = 0; number < 1_000; number++) refused.refused(first, list(number), BALANCE, 0);
  refused.refused(first, list(0), BALANCE, 1);
  expect(refused.has(first, list(1), BALANCE, 1)).toBeTrue();
  refused.refused(first, list(1_000), BALANCE, 1);
  expect([0, 1, 2, 1_000].map((number) => refused.has(first, list(number), BALANCE, 1))).toEqual([
    true,
    false,
    true,
    true,
  ]);
});
