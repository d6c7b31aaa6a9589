import { expect, test } from "bun:test";
import { rounds } from "../rounds.ts";
import { exportStorm } from "./export-storm.ts";

test("a gateway that is killed again and again exports each receipt once, and in all what the audit says", async () => {
  const { receipts, served, charges, exported, ...found } = await exportStorm(["sqlite"], rounds(3, 10, 100));
  expect(receipts).toBeGreaterThanOrEqual(served);
  expect(served).toBeGreaterThan(0);
  expect(exported).toBe(charges);
  expect(found).toMatchObject({ doubled: 0, drifts: 0 });
}, 900_000);
