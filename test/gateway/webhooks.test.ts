import { afterAll, expect, test } from "bun:test";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { open } from "./open.ts";

const endpoint = new WebhookEndpoint();
const keysOnly = new WebhookEndpoint();
const gateway = await open(`
low_credit_usd: 0.5
webhooks:
  endpoints:
    - { url: "${endpoint.url}", secret: [whsec_${"b2xk".repeat(8)}, "${endpoint.secret}"] }
    - { url: "${keysOnly.url}", secret: "${keysOnly.secret}", kinds: [key.revoked] }
`);
afterAll(async () => {
  await gateway.close();
  await endpoint.stop();
  await keysOnly.stop();
});

const SPENDING = { model: "sim/echo", messages: [{ role: "user", content: "word ".repeat(200) }] };
const debit = (balance_id: string, amount_usd: number) =>
  gateway.admin("/admin/debits", { balance_id, amount_usd, idempotency_key: crypto.randomUUID() });

test("the operator's endpoints are sent signed events of what happens to balances, each once", async () => {
  const { id, key, balance_id, recovery_secret } = await gateway.key(1);
  const [created] = await endpoint.events("key.created", 1);
  expect(created!.data).toMatchObject({ balance_id, key_id: id });

  expect((await debit(balance_id, 0.49998)).status).toBe(200);
  expect((await gateway.chat(key, SPENDING)).status).toBe(200);
  const [low] = await endpoint.events("credit.low", 1);
  expect(low!.data).toMatchObject({ balance_id, below_usd: 0.5 });
  expect(low!.data.left_usd).toBeLessThan(0.5);
  expect((await gateway.chat(key, SPENDING)).status).toBe(200);

  await gateway.admin("/admin/debits", { balance_id, amount_usd: "all", idempotency_key: "all" });
  const [exhausted] = await endpoint.events("credit.exhausted", 1);
  expect(exhausted!.data).toEqual({ balance_id, left_usd: 0 });

  const rotated = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: recovery_secret });
  const [event] = await endpoint.events("key.rotated", 1);
  expect(event!.data).toMatchObject({ key_id: id, new_key_id: rotated.json.id });
  await gateway.send("DELETE", `/v1/keys/${rotated.json.id}`, { bearer: recovery_secret });
  await endpoint.events("key.revoked", 1);
  await keysOnly.events("key.revoked", 1);

  for (const { received } of [endpoint, keysOnly])
    expect(new Set(received.map((event) => event.id)).size).toBe(received.length);
  expect(endpoint.of("credit.low")).toHaveLength(1);
  expect(keysOnly.received.every(({ type }) => type === "key.revoked")).toBe(true);
  const words = JSON.stringify(endpoint.received);
  expect(words).not.toContain(key);
  expect(words).not.toContain(recovery_secret);
}, 20_000);
