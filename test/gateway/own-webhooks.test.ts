import { afterAll, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

interface Delivery {
  readonly headers: Record<string, string>;
  readonly body: string;
}
/** By path: what arrived there, and the status that it is answered with. */
const deliveries = new Map<string, Delivery[]>();
const statuses = new Map<string, number>();
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const delivery = { headers: Object.fromEntries(request.headers), body: await request.text() };
    deliveries.set(pathname, [...(deliveries.get(pathname) ?? []), delivery]);
    return new Response("", { status: statuses.get(pathname) ?? 204 });
  },
});
const at = (path: string) => `http://127.0.0.1:${server.port}${path}`;
const arrived = async (path: string, count: number): Promise<readonly Delivery[]> => {
  await until(() => (deliveries.get(path)?.length ?? 0) >= count);
  return deliveries.get(path)!;
};

const gateway = await open("webhooks: { owners: loopback }\n");
const strict = await open("");
afterAll(async () => {
  await gateway.close();
  await strict.close();
  await server.stop(true);
});

const verified = ({ headers, body }: Delivery, secret: string) =>
  new Webhook(secret).verify(body, headers) as { type: string; data: Record<string, unknown> };

async function owner(usd = 1) {
  const { balance_id, recovery_secret: bearer } = await gateway.key(usd);
  const send = (method: string, path: string, json?: object) =>
    gateway.send(method, path, { bearer, ...(json === undefined ? {} : { json }) });
  return { balance_id, send };
}

test("an owner's endpoint gets the events of its own balance, signed, with a secret that is shown once", async () => {
  const mine = await owner();
  const other = await owner();
  const made = await mine.send("POST", "/v1/webhooks", {
    url: at("/mine"),
    events: ["key.created", "key.revoked"],
  });
  expect(made.status).toBe(201);
  expect(made.json).toMatchObject({
    events: ["key.created", "key.revoked"],
    state: "active",
    format: "signed",
  });
  const { id, secret } = made.json;
  expect(secret).toMatch(/^whsec_/);
  for (const path of ["/v1/webhooks", `/v1/webhooks/${id}`])
    expect((await mine.send("GET", path)).text).not.toContain("whsec_");

  await other.send("POST", "/v1/keys", {});
  const key = (await mine.send("POST", "/v1/keys", { name: "a" })).json.id;
  await mine.send("POST", `/v1/keys/${key}/rotate`);
  await mine.send("DELETE", `/v1/keys/${key}`);
  const events = (await arrived("/mine", 2)).map((one) => verified(one, secret));
  expect(events.map(({ type, data }) => [type, data])).toEqual([
    ["key.created", { balance_id: mine.balance_id, key_id: key, name: "a" }],
    ["key.revoked", { balance_id: mine.balance_id, key_id: key, name: "a" }],
  ]);
  await until(async () => {
    const { data } = (await mine.send("GET", "/v1/events?type=key.revoked")).json;
    return data[0].deliveries[0].webhook_id === id && data[0].deliveries[0].delivered_at !== null;
  });

  for (const [method, path, json] of [
    ["GET", `/v1/webhooks/${id}`],
    ["PATCH", `/v1/webhooks/${id}`, { paused: true }],
    ["DELETE", `/v1/webhooks/${id}`],
    ["POST", `/v1/webhooks/${id}/test`],
    ["POST", `/v1/webhooks/${id}/rotate`],
  ] as const) {
    const refused = await other.send(method, path, json);
    expect([refused.status, refused.json.error.param]).toEqual([400, "id"]);
  }
}, 30_000);

test("after a rotation both secrets sign, and a test is delivered at once", async () => {
  const { send } = await owner();
  const { id, secret: old } = (await send("POST", "/v1/webhooks", { url: at("/rotated") })).json;
  const { secret } = (await send("POST", `/v1/webhooks/${id}/rotate`)).json;
  expect(secret).not.toBe(old);
  expect((await send("POST", `/v1/webhooks/${id}/test`)).json).toEqual({
    id,
    delivered: true,
    problem: null,
  });
  const [delivery] = await arrived("/rotated", 1);
  for (const one of [old, secret]) expect(verified(delivery!, one).type).toBe("webhook.test");
  expect(() => verified(delivery!, `whsec_${"b2xk".repeat(8)}`)).toThrow();
  statuses.set("/rotated", 503);
  const failed = (await send("POST", `/v1/webhooks/${id}/test`)).json;
  expect(failed).toEqual({ id, delivered: false, problem: "the endpoint answered 503" });
});

test("an endpoint that is gone is paused, says why, and can be started again", async () => {
  const { send } = await owner();
  statuses.set("/gone", 410);
  const { id } = (await send("POST", "/v1/webhooks", { url: at("/gone") })).json;
  await send("POST", "/v1/keys", {});
  await until(async () => (await send("GET", `/v1/webhooks/${id}`)).json.state === "paused");
  expect((await send("GET", `/v1/webhooks/${id}`)).json).toMatchObject({
    problem: "the endpoint answered 410",
  });
  statuses.delete("/gone");
  expect((await send("PATCH", `/v1/webhooks/${id}`, { paused: false })).json.state).toBe("active");
  await send("POST", "/v1/keys", {});
  await arrived("/gone", 2);
  expect((await send("PATCH", `/v1/webhooks/${id}`, { paused: true })).json).toMatchObject({
    state: "paused",
  });
  expect((await send("DELETE", `/v1/webhooks/${id}`)).json).toEqual({ id, deleted: true });
  expect((await send("GET", "/v1/webhooks")).json.data).toEqual([]);
}, 30_000);

test("an endpoint of Slack gets sentences", async () => {
  const { send, balance_id } = await owner();
  const made = await send("POST", "/v1/webhooks", { url: at("/slack"), format: "slack" });
  expect(made.json.secret).toBeNull();
  const { id } = (await send("POST", "/v1/keys", { name: "a & b" })).json;
  const [delivery] = await arrived("/slack", 1);
  expect(JSON.parse(delivery!.body)).toEqual({ text: `Key a &amp; b (${id}) was created (${balance_id})` });
  expect((await send("POST", `/v1/webhooks/${made.json.id}/rotate`)).status).toBe(400);
}, 30_000);

test("what may not be an endpoint is refused by its name, and so are more than five, and tests without end", async () => {
  const { send } = await owner();
  for (const [json, param] of [
    [{}, "url"],
    [{ url: 5 }, "url"],
    [{ url: "http://10.0.0.1/x" }, "url"],
    [{ url: "https://169.254.169.254/latest" }, "url"],
    [{ url: "https://localhost:8443/" }, "url"],
    [{ url: at("/x"), events: [] }, "events"],
    [{ url: at("/x"), events: ["key.lost"] }, "events"],
    [{ url: at("/x"), format: "teams" }, "format"],
    [{ url: at("/x"), secret: "mine" }, "secret"],
  ] as const) {
    const refused = await send("POST", "/v1/webhooks", json);
    expect([json, refused.status, refused.json.error.param]).toEqual([json, 400, param]);
  }
  const made = await Promise.all(
    Array.from({ length: 8 }, () => send("POST", "/v1/webhooks", { url: at("/x") })),
  );
  expect(made.filter(({ status }) => status === 201)).toHaveLength(5);
  expect((await send("GET", "/v1/webhooks")).json.data).toHaveLength(5);
  const { id } = made.find(({ status }) => status === 201)!.json;
  const bad = await send("PATCH", `/v1/webhooks/${id}`, { url: "https://10.0.0.1/" });
  expect([bad.status, bad.json.error.param]).toEqual([400, "url"]);
  for (let tests = 0; tests < 20; tests++) await send("POST", `/v1/webhooks/${id}/test`);
  const tooMany = await send("POST", `/v1/webhooks/${id}/test`);
  expect([tooMany.status, tooMany.headers.has("retry-after")]).toEqual([429, true]);
}, 30_000);

test("without credit, and by default on this machine, there is no endpoint", async () => {
  const poor = await owner(0);
  const refused = await poor.send("POST", "/v1/webhooks", { url: at("/poor") });
  expect([refused.status, refused.json.error.code]).toEqual([402, "insufficient_credit"]);
  const { recovery_secret: bearer } = await strict.key(1);
  const local = await strict.send("POST", "/v1/webhooks", { bearer, json: { url: at("/strict") } });
  expect([local.status, local.json.error.param]).toEqual([400, "url"]);
  expect(deliveries.has("/poor") || deliveries.has("/strict")).toBe(false);
});

test("endpoints end with the claim that is undone", async () => {
  const { balance_id, key, recovery_secret: bearer } = await gateway.key(1);
  await gateway.send("POST", "/v1/webhooks", { bearer, json: { url: at("/claimed") } });
  await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { email: "thief@example.com" } });
  expect((await gateway.send("GET", "/v1/webhooks", { bearer })).json.data).toHaveLength(1);
  expect((await gateway.send("DELETE", "/v1/me/claim", { bearer })).status).toBe(200);
  expect((await gateway.send("GET", "/v1/webhooks", { bearer })).json.data).toEqual([]);
  expect(balance_id).toStartWith("bal_");
});

test("what owners do with endpoints is in the log of changes, without address and secret", async () => {
  const { send } = await owner();
  const { id, secret } = (await send("POST", "/v1/webhooks", { url: at("/logged?token=hush") })).json;
  await send("PATCH", `/v1/webhooks/${id}`, { url: at("/moved") });
  await send("POST", `/v1/webhooks/${id}/rotate`);
  await send("DELETE", `/v1/webhooks/${id}`);
  const { json, text } = await send("GET", "/v1/changes?limit=4");
  const rows = json.data.map(({ action, subject }: { action: string; subject: string }) => [action, subject]);
  expect(rows).toEqual([
    ["webhook.deleted", id],
    ["webhook.changed", id],
    ["webhook.changed", id],
    ["webhook.created", id],
  ]);
  for (const hidden of [secret, "hush", "/moved"]) expect(text).not.toContain(hidden);
});
