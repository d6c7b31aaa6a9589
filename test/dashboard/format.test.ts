import { expect, test } from "bun:test";
import { usdColumn } from "../../src/dashboard/format.ts";

test.each([
  [
    [50, 0.5, -990],
    ["$50.00", "$0.50", "−$990.00"],
  ],
  [
    [0.0218, 1.5, 0],
    ["$0.0218", "$1.5000", "$0.0000"],
  ],
  [
    [12.345678, 100.005],
    ["$12.35", "$100.01"],
  ],
  [
    [0.000087, 0.0218, 0],
    ["$0.000087", "$0.021800", "$0.000000"],
  ],
  [
    [0.00000005, 0.0000006, 2],
    ["under $0.000001", "$0.000001", "$2.000000"],
  ],
  [[], []],
])("the amounts %p of a column have as many decimals as tell each of them: %p", (amounts, shown) => {
  expect(amounts.map(usdColumn(amounts))).toEqual(shown);
});
