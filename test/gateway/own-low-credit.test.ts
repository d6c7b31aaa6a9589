import { afterAll, expect, test } from "bun:test";
import { MailServer } from "../fakes/mail-server.ts";
import { ADMIN } from "../process/gateway.ts";
import { open } from "./open.ts";
import { notifiesOwnersOnce } from "./own-low-credit.ts";

const server = await MailServer.start();
const gateway = await open(`smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }\n`);
afterAll(async () => {
  await gateway.close();
  await server.stop();
});

test("owners are notified once of each crossing of their own threshold, and of none where they want none", () =>
  notifiesOwnersOnce([gateway.url]));

test("an owner with an address gets a mail below their own threshold, without one of the operator", async () => {
  const { key, balance_id, recovery_secret: bearer } = await gateway.key(1);
  await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { email: "kim@example.com" } });
  const token = /#signin=(or-link-\w+)/.exec((await server.mail(1)).text)![1]!;
  await gateway.send("POST", "/v1/auth/email/verify", { json: { token } });
  await gateway.send("PATCH", "/v1/me", { bearer, json: { low_credit_usd: 0.75 } });
  await gateway.admin("/admin/debits", { balance_id, amount_usd: 0.5, idempotency_key: "half" });
  const { to, text } = await server.mail(2);
  expect(to).toEqual(["kim@example.com"]);
  expect(text).toContain(`Your balance ${balance_id} has $0.50`);
  expect(text).toContain("falls below $0.75");
}, 30_000);

const WRONG: readonly (readonly [body: object, param: string])[] = [
  [{ low_credit_usd: -1 }, "low_credit_usd"],
  [{ low_credit_usd: "5" }, "low_credit_usd"],
  [{ low_credit_usd: 0.00000000001 }, "low_credit_usd"],
  [{ low_credit_usd: 8_000_001 }, "low_credit_usd"],
  [{ low_credit_usd: 1e300 }, "low_credit_usd"],
  [{ low_credit_usd: true }, "low_credit_usd"],
  [{}, "low_credit_usd"],
  [{ low_credit_usd: 5, price_list: "mine" }, "price_list"],
];

test.each(WRONG)("%j is refused, names the field and changes nothing", async (json, param) => {
  const { recovery_secret: bearer } = await gateway.key(0);
  await gateway.send("PATCH", "/v1/me", { bearer, json: { low_credit_usd: 7 } });
  const refused = await gateway.send("PATCH", "/v1/me", { bearer, json });
  expect([refused.status, refused.json.error.param]).toEqual([400, param]);
  expect((await gateway.send("GET", "/v1/me", { bearer })).json.low_credit_usd).toBe(7);
});

test("a key, nobody and another owner change it for no one; the operator does for one balance", async () => {
  const mine = await gateway.key(0);
  const other = await gateway.key(0);
  const json = { low_credit_usd: 3 };
  const statusOf = async (bearer: string) => (await gateway.send("PATCH", "/v1/me", { bearer, json })).status;
  expect([await statusOf(mine.key), await statusOf("or-rec-nobody")]).toEqual([400, 401]);
  expect(await statusOf(other.recovery_secret)).toBe(200);
  const shown = async ({ recovery_secret: bearer }: { recovery_secret: string }) =>
    (await gateway.send("GET", "/v1/me", { bearer })).json.low_credit_usd;
  expect([await shown(mine), await shown(other)]).toEqual([null, 3]);

  const path = `/admin/balances/${mine.balance_id}`;
  const by = (low_credit_usd: unknown) =>
    gateway.send("PATCH", path, { bearer: ADMIN, json: { low_credit_usd } });
  expect((await by(12.5)).json).toMatchObject({ low_credit_usd: 12.5, price_list: null });
  expect((await by(-1)).json.error.param).toBe("low_credit_usd");
  expect([await shown(mine), await shown(other)]).toEqual([12.5, 3]);

  const changes = async ({ recovery_secret: bearer }: { recovery_secret: string }) =>
    (await gateway.send("GET", "/v1/changes?action=balance.changed", { bearer })).json.data;
  expect(await changes(mine)).toMatchObject([
    { before: { low_credit_usd: null }, after: { low_credit_usd: 12.5 } },
  ]);
  expect((await changes(other))[0].by.kind).toBe("owner");
});
