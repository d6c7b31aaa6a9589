import { expect, test } from "bun:test";
import { costWarnings } from "../../src/config/price-warnings.ts";
import { goodConfig, problemsOf } from "./fixture.ts";

const COMMON = `
hosts: [{ id: h, base_url: "http://localhost:1/v1", speaks: [chat.completions] }]
models:
  - id: a/one
    context_length: 10
    max_output_tokens: 5
    price: { input: 2000, output: 2000 }
    routes: [{ host: h, model: m }]
`;

test.each([
  ["x: [{ model: b/*, factor: 2 }]", "price_lists.x: found a list that names no model"],
  ["x: [{ model: a/two, factor: 2 }, { model: a/*, factor: 2 }]", 'price_lists.x[0].model: found "a/two"'],
  ["x: [{ model: a/one, factor: 0 }]", "price_lists.x[0].factor: found 0"],
  ["x: [{ model: a/one, factor: -1 }]", "price_lists.x[0].factor: found -1"],
  ["x: [{ model: a/one, factor: 0.0000001 }]", "price_lists.x[0].factor: found 1e-7"],
  ["x: [{ model: a/one, factor: 1.1234567 }]", "price_lists.x[0].factor: found 1.1234567"],
  ["x: [{ model: a/one, factor: 1001 }]", "price_lists.x[0].factor: found 1001"],
  ["x: [{ model: a/one, factor: 1000 }]", "price_lists.x: found a price of a/one above 1000000"],
  ["x: [{ model: a/one }]", "price_lists.x[0]: found neither `factor` nor `price`"],
  [
    "x: [{ model: a/one, factor: 2, price: { input: 1, output: 1 } }]",
    "price_lists.x[0]: found `factor` and `price`",
  ],
  ["x: [{ model: a/one, price: { input: -1, output: 1 } }]", "price_lists.x[0].price.input: found -1"],
  ["x: []", "price_lists.x: found an empty list"],
  ["'a b': [{ model: a/one, factor: 2 }]", 'price_lists["a b"]: found "a b"'],
])("price_lists: { %s } is refused: %s", (lists, problem) => {
  expect(problemsOf(`${COMMON}price_lists: { ${lists} }\n`)).toContain(problem);
});

test("a route that is sold for less than its cost is doubted, by the models' own prices and by each list", () => {
  const withCost = (cost: string) => COMMON.replace("host: h, model: m", `host: h, model: m, cost: ${cost}`);
  const lists = "price_lists: { low: [{ model: a/one, factor: 0.5 }], high: [{ model: '*', factor: 2 }] }\n";
  const doubts = (cost: string) => costWarnings(goodConfig(withCost(cost) + lists).catalog);
  expect(doubts("{ input: 1000, output: 1000 }")).toEqual([]);
  expect(doubts("{ input: 1, output: 1000.5 }")).toEqual([
    "a/one at h is sold by the price list low for less than its cost: output 1000 of 1000.5 USD",
  ]);
  expect(doubts("{ input: 2001, output: 1, cache_read: 1, cache_write: 1 }")).toEqual([
    "a/one at h is sold for less than its cost: input 2000 of 2001 USD",
    "a/one at h is sold by the price list low for less than its cost: input 1000 of 2001 USD",
  ]);
  const stepped = "{ input: 1, output: 1, above: [{ prompt: 5, input: 1, output: 1001 }] }";
  expect(doubts(stepped)).toEqual([
    "a/one at h is sold by the price list low for less than its cost: output 1000 of 1001 USD",
  ]);
  const free = withCost("{ input: 1, output: 1 }, free: true");
  expect(problemsOf(free)).toContain("models[0].routes[0].cost: found a cost on a free route");
});
