import { afterAll, expect, test } from "bun:test";
import { until } from "../fakes/until.ts";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { open } from "./open.ts";

const endpoint = new WebhookEndpoint();
const gateway = await open(`
webhooks: { endpoints: [{ url: "${endpoint.url}", secret: "${endpoint.secret}", kinds: [key.revoked] }] }
`);
afterAll(async () => {
  await gateway.close();
  await endpoint.stop();
});

test("a balance's events are listed to its owner, the newest first, page by page and by type", async () => {
  const { id, balance_id, recovery_secret: bearer } = await gateway.key(1);
  const other = await gateway.key(1);
  const more = await gateway.send("POST", "/v1/keys", { bearer, json: {} });
  await gateway.send("DELETE", `/v1/keys/${id}`, { bearer });
  const list = async (query = "") => (await gateway.send("GET", `/v1/events${query}`, { bearer })).json;

  const { data, has_more } = await list();
  expect(has_more).toBe(false);
  expect(data.map((one: { type: string; data: object }) => [one.type, one.data])).toEqual([
    ["key.revoked", { balance_id, key_id: id, name: null }],
    ["key.created", { balance_id, key_id: more.json.id, name: null }],
    ["key.created", { balance_id, key_id: id, name: null }],
  ]);
  const first = await list("?limit=1");
  expect(first).toEqual({ object: "list", data: [data[0]], has_more: true });
  expect((await list(`?limit=2&before=${data[0].id}`)).data).toEqual(data.slice(1));
  expect((await list("?type=key.revoked")).data).toEqual(data.slice(0, 1));

  const foreign = (await gateway.send("GET", "/v1/events", { bearer: other.recovery_secret })).json.data;
  for (const before of ["evt_none", foreign[0].id]) {
    const refused = await gateway.send("GET", `/v1/events?before=${before}`, { bearer });
    expect([refused.status, refused.json.error.param]).toEqual([400, "before"]);
  }
  const refused = await gateway.send("GET", "/v1/events?type=key.lost", { bearer });
  expect([refused.status, refused.json.error.param]).toEqual([400, "type"]);
}, 20_000);

test("the operator sees everybody's events, and which endpoints took them; an owner sees no operator's endpoint", async () => {
  const { id, balance_id, recovery_secret: bearer } = await gateway.key(1);
  await gateway.send("DELETE", `/v1/keys/${id}`, { bearer });
  await until(() => endpoint.of("key.revoked").some(({ data }) => data.key_id === id));
  const list = async () => (await gateway.admin(`/admin/events?balance_id=${balance_id}`)).json.data;
  await until(async () => (await list())[0].deliveries[0]?.delivered_at != null);
  const [revoked, created] = await list();
  expect(revoked).toMatchObject({ type: "key.revoked", balance_id, deliveries: [{}] });
  expect(created).toMatchObject({ type: "key.created", balance_id, deliveries: [] });
  const own = (await gateway.send("GET", "/v1/events", { bearer })).json.data;
  expect(own[0]).toMatchObject({ type: "key.revoked", deliveries: [] });
}, 20_000);
