import { describe, expect, test } from "bun:test";
import { SPENDING_ORDERS } from "../../src/api/usage.ts";
import { rankSpending, type SpendingGroup } from "../../src/store/usage/spending.ts";

const HOUR = 3_600_000;

const group = (more: Partial<SpendingGroup> = {}): SpendingGroup => ({
  start: 0,
  balanceId: "bal_a",
  keyId: "key_a",
  model: "a/m",
  host: "h",
  requests: 1,
  failed: 0,
  charged: 10,
  input: 6,
  output: 4,
  costed: 0,
  costedCharged: 0,
  hostCost: 0,
  ...more,
});

describe("what everybody used", () => {
  test("is summed in all, over time by model, and by each name", () => {
    const found = rankSpending(
      [group(), group({ start: HOUR, keyId: "key_b" }), group({ start: HOUR, model: "b/m", failed: 1 })],
      { order: "cost", most: 10 },
    );
    expect(found.total).toMatchObject({ requests: 3, failed: 1, chargedNano: 30, beforeNano: 0 });
    expect(found.stretches.map(({ start, name, requests }) => [start, name, requests])).toEqual([
      [0, "a/m", 1],
      [HOUR, "a/m", 1],
      [HOUR, "b/m", 1],
    ]);
    expect(found.balances.rows).toMatchObject([{ name: "bal_a", requests: 3 }]);
    expect(found.keys.rows).toMatchObject([{ name: "key_a", requests: 2 }, { name: "key_b" }]);
    expect(found.models.rows).toMatchObject([{ name: "a/m", chargedNano: 20 }, { name: "b/m" }]);
    expect(found.hosts.rows).toMatchObject([{ name: "h", requests: 3, inputTokens: 18, outputTokens: 12 }]);
  });

  test("is compared with the period before, of which nothing else is counted", () => {
    const before = group({ start: null, charged: 4, balanceId: "bal_gone" });
    const { total, stretches, balances } = rankSpending([before, group()], { order: "cost", most: 10 });
    expect(total).toMatchObject({ requests: 1, chargedNano: 10, beforeNano: 4, inputTokens: 6 });
    expect(stretches).toHaveLength(1);
    expect(balances.rows).toMatchObject([
      { name: "bal_a", chargedNano: 10, beforeNano: 0 },
      { name: "bal_gone", requests: 0, chargedNano: 0, beforeNano: 4 },
    ]);
  });

  test("by host has nothing of requests that no host answered", () => {
    expect(rankSpending([group({ host: null })], { order: "cost", most: 10 }).hosts.rows).toEqual([]);
  });

  const many = [
    group({ keyId: "costly", charged: 50, requests: 1, input: 1 }),
    group({ keyId: "costly", start: null, charged: 60 }),
    group({ keyId: "busy", charged: 20, requests: 9, input: 1, costed: 8, costedCharged: 18, hostCost: 3 }),
    group({ keyId: "busy", start: null, charged: 19 }),
    group({ keyId: "long", charged: 10, requests: 2, input: 900 }),
    group({ keyId: "new", charged: 15, requests: 3, input: 1, costed: 1, costedCharged: 5, hostCost: 6 }),
  ];

  test.each([
    ["cost", ["costly", "busy", "new", "long"]],
    ["growth", ["new", "long", "busy", "costly"]],
    ["requests", ["busy", "new", "long", "costly"]],
    ["tokens", ["long", "costly", "busy", "new"]],
    ["loss", ["new", "costly", "long", "busy"]],
  ] as const)("is ordered by %s", (order, names) => {
    expect(SPENDING_ORDERS).toContain(order);
    expect(rankSpending(many, { order, most: 10 }).keys.rows.map(({ name }) => name)).toEqual([...names]);
  });

  test("beyond the rows that are asked for is one sum", () => {
    const { keys } = rankSpending(many, { order: "cost", most: 1 });
    expect(keys.rows).toHaveLength(1);
    expect(keys.rest).toEqual({
      rows: 3,
      requests: 14,
      failed: 0,
      chargedNano: 45,
      beforeNano: 19,
      inputTokens: 902,
      outputTokens: 12,
      costed: 9,
      costedNano: 23,
      hostCostNano: 9,
    });
    expect(rankSpending(many, { order: "cost", most: 4 }).keys.rest).toMatchObject({
      rows: 0,
      chargedNano: 0,
    });
  });
});
