import { expect, test } from "bun:test";
import { rounds } from "../rounds.ts";
import { webhookStorm } from "./webhook-storm.ts";

test("a gateway that is killed again and again sends each event of low credit under one id, and loses none", async () => {
  const { balances, ...found } = await webhookStorm(["sqlite"], rounds(2, 5, 200));
  expect(balances).toBeGreaterThan(0);
  expect(found).toMatchObject({ missing: [], withSeveralIds: 0, drifts: 0 });
}, 3_600_000);
