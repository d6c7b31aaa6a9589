import { expect, test } from "bun:test";
import type { Balance } from "../../src/customers/keys/key.ts";
import { allowanceCounter, keyCounter } from "../../src/ledger/counter.ts";
import type { Bookkeeping } from "../../src/store/books/bookkeeping.ts";
import { ledgerOperations } from "../../src/store/ledger/ledger-operations.ts";
import { epochMs } from "../../src/units/clock.ts";
import { keyOf } from "../fakes/key.ts";

const AT = epochMs(Date.UTC(2026, 0, 15));

/** One request is open of each counter that was spent from. */
const booksOf = (spent: Readonly<Record<string, number>>) =>
  ({
    spent: async (id: string) => spent[id] ?? 0,
    held: async (id: string) => ({ held: id in spent ? 1 : 0, heldAt: "all_processes" }),
  }) as unknown as Bookkeeping;

test.each([
  ["the one with the fewest left", [50, 10], [45, 3], { limit: 50, used: 46 }],
  ["the other where that has fewer", [50, 10], [40, 3], { limit: 10, used: 4 }],
  ["the first of two with as many", [50, 10], [43, 3], { limit: 50, used: 44 }],
])(
  "of several allowances, what is left is shown of %s",
  async (_, [one, other], [usedOne, usedOther], shown) => {
    const limits = [
      { owner: "bal_a", limit: one! },
      { owner: "block_b", limit: other! },
    ];
    const books = booksOf({
      [allowanceCounter("bal_a", AT)]: usedOne!,
      [allowanceCounter("block_b", AT)]: usedOther!,
    });
    expect(await ledgerOperations(books, () => limits).openTier({} as Balance, [], AT)).toMatchObject(shown);
  },
);

test("what a key has spent is that of its rotation's day and month", async () => {
  const key = keyOf();
  const books = booksOf({
    [keyCounter("day", key.rotationId, AT)]: 3,
    [keyCounter("month", key.rotationId, AT)]: 40,
  });
  expect(await ledgerOperations(books, () => []).keySpending(key, AT)).toMatchObject({ day: 3, month: 40 });
});
