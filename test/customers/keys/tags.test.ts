import { expect, test } from "bun:test";
import { readTags, type Tags } from "../../../src/customers/keys/tags.ts";
import { type Refusal, refused } from "../../../src/units/errors/refusal.ts";

const read = (text: string) => readTags(new Headers({ "x-gateway-tags": text }));
const named = (count: number): string => Array.from({ length: count }, (_, at) => `t${at}=v`).join(";");

test("a request without the header has no tags", () => {
  expect(readTags(new Headers())).toBeNull();
});

test.each<[string, Tags]>([
  ["customer=acme", { customer: "acme" }],
  [" customer=acme ; feature=a=b ", { customer: "acme", feature: "a=b" }],
  [`${"n".repeat(32)}=${"v".repeat(64)}`, { ["n".repeat(32)]: "v".repeat(64) }],
])("`%s` are tags", (text, tags) => {
  expect(read(text)).toEqual(tags);
});

test("eight tags are as many as there may be", () => {
  expect(Object.keys(read(named(8)) as Tags)).toHaveLength(8);
});

test.each([
  [named(9), "has more than 8 tags"],
  ["customer=acme;customer=other", "names `customer` twice"],
  ["customer", "must have the form"],
  ["Customer=acme", "must have the form"],
  ["customer=", "must have the form"],
  ["customer=acme;", "must have the form"],
  [`${"n".repeat(33)}=v`, "must have the form"],
  [`n=${"v".repeat(65)}`, "must have the form"],
])("`%s` is refused: %s", (text, why) => {
  const refusal = read(text) as Refusal;
  expect(refused(refusal)).toBeTrue();
  expect(refusal).toMatchObject({ code: "invalid_request", details: { param: "x-gateway-tags" } });
  expect(refusal.message).toContain(why);
});
