import { expect, test } from "bun:test";
import { type KeySpec, loosens } from "../../../src/customers/keys/key-spec.ts";
import type { EpochMs } from "../../../src/units/clock.ts";
import type { NanoUsd } from "../../../src/units/usd.ts";
import { keyOf } from "../../fakes/key.ts";

const usd = (amount: number) => (amount * 1e9) as NanoUsd;
const EXPIRES = Date.UTC(2026, 10, 30) as EpochMs;
const BOUND = keyOf({
  name: "ci",
  rpmLimit: 10,
  dailyLimit: usd(5),
  allowedModels: ["x/one", "x/two"],
  budgets: ["team"],
  expiresAt: EXPIRES,
});
const FREE = keyOf();

test.each<[string, KeySpec, string | null]>([
  ["a lower limit", { rpmLimit: 9, dailyLimit: usd(4) }, null],
  ["the limits that it has", { rpmLimit: 10, dailyLimit: usd(5) }, null],
  ["a first limit of another kind", { monthlyLimit: usd(100) }, null],
  ["a higher limit", { rpmLimit: 11 }, "rpm_limit"],
  ["no limit", { dailyLimit: null }, "daily_limit_usd"],
  ["fewer models", { allowedModels: ["x/one"] }, null],
  ["another model", { allowedModels: ["x/one", "x/three"] }, "allowed_models"],
  ["all models", { allowedModels: null }, "allowed_models"],
  ["the budgets that it has", { budgets: ["team"] }, null],
  ["no budget", { budgets: [] }, "budget"],
  ["an earlier end", { expiresAt: (EXPIRES - 1) as EpochMs }, null],
  ["the end that it has", { expiresAt: EXPIRES }, null],
  ["a later end", { expiresAt: (EXPIRES + 1) as EpochMs }, "expires_at"],
  ["no end", { expiresAt: null }, "expires_at"],
  ["the name that it has", { name: "ci" }, null],
  ["another name", { name: "mine" }, "name"],
])("a key gives itself %s: %j, of which it may not change %p", (_, spec, field) => {
  expect(loosens(BOUND, spec)?.details.param ?? null).toBe(field);
});

test.each<[string, KeySpec, string | null]>([
  ["a limit", { tpmLimit: 1 }, null],
  ["models", { allowedModels: ["x/one"] }, null],
  ["an end", { expiresAt: EXPIRES }, null],
  ["no end, as before", { expiresAt: null }, null],
  ["no name, as before", { name: null }, null],
  ["a budget", { budgets: ["team"] }, "budget"],
])("a key that nothing binds gives itself %s: %j, of which it may not change %p", (_, spec, field) => {
  expect(loosens(FREE, spec)?.details.param ?? null).toBe(field);
});
