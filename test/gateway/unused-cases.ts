import { afterAll, beforeAll, expect, test } from "bun:test";
import { MIGRATION_MS } from "../../src/store/database/postgres.ts";
import { type Clock, DAY_MS, type EpochMs, HOUR_MS, systemClock } from "../../src/units/clock.ts";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, open } from "./open.ts";

/** What becomes of balances and keys that nobody uses, on either store. */
export function unusedCases(store: () => Promise<string>): void {
  let daysLater = 0;
  let hoursIdle = 0;
  /** For a gateway whose days pass when the test says so, and whose hours are over soon. */
  const clock: Clock = {
    ...systemClock,
    now: () => (systemClock.now() + daysLater * DAY_MS) as EpochMs,
    elapsedMs: () => systemClock.elapsedMs() + hoursIdle * HOUR_MS,
    after: (ms, fire) => systemClock.after(ms < 60_000 || ms === MIGRATION_MS ? ms : 200, fire),
  };
  let gateway: OpenGateway;
  beforeAll(async () => {
    const config = `${await store()}\ngeneration: { total_ms: 50000, chunk_gap_ms: 50000 }\nunused_days: 30\n`;
    gateway = await open(config, {}, clock);
  }, 600_000);
  afterAll(() => gateway?.close());

  const status = async (bearer: string) => (await gateway.send("GET", "/v1/keys", { bearer })).status;
  const another = async ({ recovery_secret: bearer }: Made): Promise<Made> =>
    (await gateway.send("POST", "/v1/keys", { bearer, json: {} })).json;
  const revoke = ({ recovery_secret: bearer }: Made, { id }: Made) =>
    gateway.send("DELETE", `/v1/keys/${id}`, { bearer });
  const serve = async ({ key }: Made) =>
    expect((await gateway.chat(key, { model: "gateway/auto:free" })).status).toBe(200);

  test("go after so many days; what has money, a receipt, a newer key or a suspension stays", async () => {
    const unused = [await gateway.key(0), await gateway.key(0)];
    const credited = await gateway.key(1);
    const served = await gateway.key(0);
    await serve(served);
    const suspended = await gateway.key(0);
    await gateway.admin(`/admin/accounts/${suspended.balance_id}/suspend`, { reason: "chargeback" });
    const emptied = await gateway.key(1);
    const debit = { balance_id: emptied.balance_id, amount_usd: "all", idempotency_key: "back" };
    expect((await gateway.admin("/admin/debits", debit)).status).toBe(200);
    const withNewKey = await gateway.key(0);

    const old = { used: await another(served), unused: await another(served), live: await another(served) };
    await serve(old.used);
    for (const one of [old.used, old.unused]) await revoke(served, one);

    daysLater = 20;
    const young = await gateway.key(0);
    await another(withNewKey);
    for (const { key } of unused) expect(await status(key)).toBe(200);

    daysLater = 31;
    // A caller of the gateway is in its memory, and stays until they are idle.
    hoursIdle = 1;
    await until(() => gateway.logged.some((line) => line.includes("unused removed")));
    for (const { key, recovery_secret } of unused) {
      expect(await status(key)).toBe(401);
      expect(await status(recovery_secret)).toBe(401);
    }
    for (const { recovery_secret } of [credited, served, suspended, emptied, withNewKey, young])
      expect(await status(recovery_secret)).toBe(200);
    const ids = async () => {
      const { data } = (await gateway.send("GET", "/v1/keys", { bearer: served.recovery_secret })).json;
      return (data as Made[]).map(({ id }) => id).toSorted();
    };
    // Once what was granted is given back; and a caller of the list is in memory again for an hour.
    await until(async () => {
      hoursIdle += 1;
      return (await ids()).length <= 3;
    });
    expect(await ids()).toEqual([served.id, old.used.id, old.live.id].toSorted());
    expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({ drift_nano: "0", drifts: [] });
  }, 600_000);
}
