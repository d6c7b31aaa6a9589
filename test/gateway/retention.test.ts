import { afterAll, expect, test } from "bun:test";
import { type Clock, DAY_MS, type EpochMs, systemClock } from "../../src/units/clock.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

let daysLater = 0;
/** For a gateway whose days pass when the test says so, and whose hours are over at once. */
const clock: Clock = {
  ...systemClock,
  now: () => (systemClock.now() + daysLater * DAY_MS) as EpochMs,
  after: (ms, fire) => systemClock.after(ms < 60_000 ? ms : 20, fire),
};
const gateway = await open(
  "receipts: { keep_days: 31 }\ngeneration: { total_ms: 50000, chunk_gap_ms: 50000 }",
  {},
  clock,
);
afterAll(() => gateway.close());

test("a receipt is there for as long as the configuration says, and what it cost stays spent", async () => {
  const { key, recovery_secret } = await gateway.key(1, {});
  const served = await gateway.chat(key, { model: "sim/echo" });
  const receipt = `/v1/receipts/${served.headers.get("x-gateway-receipt")}`;
  const balance = async () => (await gateway.send("GET", "/v1/me", { bearer: key })).json.balance_usd;
  const left = await balance();
  expect(left).toBeLessThan(1);

  daysLater = 30;
  const later = await gateway.chat(key, { model: "sim/echo" });
  await gateway.admin("/admin/ledger/audit");
  expect((await gateway.send("GET", receipt, { bearer: key })).status).toBe(200);

  daysLater = 32;
  let gone = await gateway.send("GET", receipt, { bearer: key });
  while (gone.status === 200) gone = await gateway.send("GET", receipt, { bearer: key });
  expect(gone.json.error.message).toContain("Receipts are kept for 31 days.");
  const { data } = (await gateway.send("GET", "/v1/receipts", { bearer: recovery_secret })).json;
  expect(data.map(({ id }: { id: string }) => id)).toEqual([later.headers.get("x-gateway-receipt")]);
  expect(await balance()).toBeCloseTo(1 - 2 * (1 - left), 9);
  expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({ drift_nano: "0", drifts: [] });
  await until(() => gateway.logged.some((line) => line.includes("receipts deleted")));
});
