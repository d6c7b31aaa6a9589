import { afterAll, expect, test } from "bun:test";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { gateway as command } from "./command.ts";

const endpoint = new WebhookEndpoint();
const gateway = await open(`
webhooks:
  owners: loopback
  endpoints: [{ url: "${endpoint.url}", secret: "${endpoint.secret}", kinds: [key.revoked] }]
`);
const taking = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("") });
afterAll(async () => {
  await gateway.close();
  await endpoint.stop();
  await taking.stop(true);
});

const operator = (...args: string[]) =>
  command(args, { GATEWAY_URL: gateway.url, GATEWAY_ADMIN_TOKEN: ADMIN });

test("an owner adds, lists, tests, rotates and removes an endpoint; its secret is printed once", async () => {
  const { recovery_secret, balance_id } = await gateway.key(1);
  const owner = (...args: string[]) =>
    command(args, { GATEWAY_URL: gateway.url, GATEWAY_OWNER: recovery_secret });
  const added = await owner(
    "webhooks",
    "add",
    taking.url.href,
    "--event",
    "key.created",
    "--event",
    "key.revoked",
  );
  expect([added.code, added.out]).toEqual([
    0,
    expect.stringContaining("is sent key.created key.revoked events"),
  ]);
  const id = /wh_\S+/.exec(added.out)![0];
  const secret = /^whsec_\S+/m.exec(added.out)![0];
  const listed = await owner("webhooks");
  expect(listed.out).toContain(id);
  expect(listed.out).not.toContain(secret);
  expect((await owner("webhooks", "test", id)).code).toBe(0);
  expect(/^whsec_\S+/m.exec((await owner("webhooks", "rotate", id)).out)![0]).not.toBe(secret);
  const shown = await operator("webhooks", "list", "--balance", balance_id);
  expect(shown.out).toContain(taking.url.origin);
  expect((await owner("webhooks", "add", "mail")).err).toContain("an account with an email address");
  expect((await owner("webhooks", "remove", id)).out).toBe(`${id} is removed.\n`);
  expect((await owner("webhooks", "test", id)).code).toBe(3);
  const events = await owner("events", "--type", "key.created");
  expect(events.out).toContain("key.created");
}, 30_000);

test("the operator lists and tests the configuration's endpoints, and reads everybody's events", async () => {
  const { balance_id } = await gateway.key(0);
  const { data: all } = JSON.parse((await operator("webhooks", "--json")).out);
  const data = all.filter(({ origin }: { origin: string }) => origin !== "mail");
  expect(data).toMatchObject([{ origin: new URL(endpoint.url).origin, events: ["key.revoked"], waiting: 0 }]);
  expect((await operator("webhooks", "test", data[0].id)).code).toBe(0);
  endpoint.refusals.push(500);
  const failed = await operator("webhooks", "test", data[0].id);
  expect([failed.code, failed.err]).toEqual([1, expect.stringContaining("answered 500")]);
  expect((await operator("webhooks", "test", "wh_none")).code).toBe(3);
  expect((await operator("webhooks", "add", "https://a.example/")).code).toBe(2);
  expect((await operator("events", "--balance", balance_id)).out).toContain(balance_id);
}, 30_000);
