import { expect, test } from "bun:test";
import type { Abilities, Host, Model, Route } from "../../src/catalog/catalog.ts";
import type { Price } from "../../src/catalog/price.ts";
import { catalogEntry } from "../../src/http/catalog-entries.ts";

const host: Host = {
  id: "h",
  baseUrl: "http://h/v1",
  speaks: ["messages"],
  apiKey: null,
  auth: "bearer",
  headers: {},
  onDisconnect: "cancel",
  quirks: {},
};
const PRICE = {
  input: 150_000_000,
  output: 600_000_000,
  cacheRead: 75_000_000,
  cacheWrite: 150_000_000,
} as Price;
const PAID: Route = { host, model: "m", price: PRICE, free: false };
const UNPRICED: Route = { host, model: "m", price: null, free: false };
const FREE: Route = { host, model: "m", price: null, free: true };
const model = (routes: Route[], price: Price | null = null, id = "a/m"): Model => ({
  id,
  name: "M",
  contextLength: 1000,
  maxOutputTokens: 100,
  price,
  routes,
});
const routeState = (up: boolean, verified: boolean) => ({
  usable: () => up,
  verifiedFree: () => verified,
});

test("an entry has the contract's fields, its price in USD per million tokens", () => {
  expect(catalogEntry(model([PAID], PRICE), routeState(true, false))).toEqual({
    id: "a/m",
    name: "M",
    context_length: 1000,
    max_output_tokens: 100,
    price: { input: 0.15, output: 0.6, cache_read: 0.075, cache_write: 0.15, cache_write_1h: 0.15 },
    input_modalities: ["text"],
    supported_parameters: [],
    surfaces: ["chat.completions", "responses", "messages"],
    free: false,
    available: true,
  });
});

test.each([
  ["a priced route that works", [PAID], true, false, { price: true, free: false, available: true }],
  ["a priced route whose host is down", [PAID], false, false, { price: true, free: false, available: false }],
  ["a route without a price", [UNPRICED], true, true, { price: false, free: false, available: false }],
  ["a free route that is verified", [FREE], true, true, { price: false, free: true, available: true }],
  ["a free route that is not", [FREE], true, false, { price: false, free: false, available: false }],
  ["both", [FREE, PAID], true, true, { price: true, free: true, available: true }],
] as const)("%s", (_what, routes, up, verified, expected) => {
  const { price, free, available } = catalogEntry(model([...routes]), routeState(up, verified));
  expect({ price: price !== null, free, available }).toEqual(expected);
});

test.each<[what: string, abilities: Abilities, quirks: Host["quirks"], parameters: string]>([
  ["that only writes", able(false, false), {}, "max_tokens stop temperature top_p"],
  ["that calls tools", able(true, false), {}, "max_tokens stop temperature top_p tools tool_choice"],
  [
    "that thinks",
    able(false, true),
    {},
    "max_tokens stop temperature top_p reasoning include_reasoning reasoning_effort",
  ],
  [
    "that thinks as it likes",
    able(false, true),
    { noSampling: true, noReasoningEffort: true },
    "max_tokens stop reasoning include_reasoning",
  ],
])("a model %s supports these parameters", (_, abilities, quirks, parameters) => {
  const known = { ...model([{ ...PAID, quirks }], PRICE), abilities };
  const entry = catalogEntry(known, routeState(true, false));
  expect(entry.supported_parameters.join(" ")).toBe(parameters);
  expect(entry.input_modalities).toEqual(["text", "image"]);
});

test("what the operator lists for a route goes before what is known of the model", () => {
  const known = {
    ...model([{ ...PAID, parameters: new Set(["seed"]) }], PRICE),
    abilities: able(true, true),
  };
  expect(catalogEntry(known, routeState(true, false)).supported_parameters).toEqual(["seed"]);
});

function able(tools: boolean, reasoning: boolean): Abilities {
  return { inputs: ["text", "image"], tools, reasoning };
}
