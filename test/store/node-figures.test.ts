import { expect, test } from "bun:test";
import type { Grants } from "../../src/ledger/grants.ts";
import type { NodeLease } from "../../src/ledger/node-lease.ts";
import { nodeFigures } from "../../src/store/books/bookkeeping-node.ts";
import type { FollowingBooks } from "../../src/store/nodes/node-store.ts";

test("each figure of a node has its own name, and money is in dollars", () => {
  const grants = { figures: { counters: 1, granted: 2e9, stranded: 3e9, statements: 4, recalls: 5 } };
  const books = { journal: { unappliedCount: 6 }, shipped: 7, batches: 8 };
  const figures = nodeFigures(
    grants as Grants,
    books as unknown as FollowingBooks,
    { leaseLeftMs: 9_000 } as NodeLease,
  );
  expect(
    Object.fromEntries(figures.map(({ name, value, type, together }) => [name, [value, type, together]])),
  ).toEqual({
    gateway_lease_seconds: [9, undefined, "least"],
    gateway_grant_counters: [1, undefined, undefined],
    gateway_granted_usd: [2, undefined, undefined],
    gateway_stranded_usd: [3, undefined, undefined],
    gateway_grant_statements: [4, "counter", undefined],
    gateway_grant_recalls: [5, "counter", undefined],
    gateway_ship_lag: [6, undefined, undefined],
    gateway_shipped_ends: [7, "counter", undefined],
    gateway_shipped_batches: [8, "counter", undefined],
  });
});
