import { afterAll, expect, test } from "bun:test";
import { until } from "../fakes/until.ts";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { Folder } from "../process/gateway.ts";
import { openIn } from "./open.ts";

const endpoint = new WebhookEndpoint();
interface Sold {
  readonly input: number;
  readonly factor?: number;
  readonly more?: string;
}
const fileAt = ({ input, factor = 2, more = "" }: Sold) => `
webhooks: { endpoints: [{ url: "${endpoint.url}", secret: "${endpoint.secret}" }] }
hosts: [{ id: h, base_url: "http://127.0.0.1:9/v1", speaks: [chat.completions] }]
models:
  - id: test/model
    context_length: 10000
    max_output_tokens: 1000
    price: { input: ${input}, output: 10 }
    routes: [{ host: h, model: m }]
${more}
price_lists: { partner: [{ model: "test/*", factor: ${factor} }] }
`;
const OTHER = `
  - id: test/other
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 7, output: 70 }
    routes: [{ host: h, model: other }]`;

const folder = new Folder(fileAt({ input: 1 }));
let gateway = await openIn(folder);
afterAll(async () => {
  await gateway.close();
  await endpoint.stop();
});

const changed = () => gateway.admin("/admin/events?type=price.changed");
const reload = async (sold: Sold) => {
  folder.configure(fileAt(sold));
  expect((await gateway.admin("/admin/reload", {})).status).toBe(200);
};
/** The newest, once there are so many. */
const newest = async (count: number) => {
  const { data } = (await endpoint.events("price.changed", count)).at(-1)!;
  return data as { readonly prices: readonly object[]; readonly price_lists: readonly string[] };
};
const entry = (input: number, output: number) => expect.objectContaining({ input, output });

test.each([
  [
    "a price that changed",
    { input: 2 },
    [{ model: "test/model", host: "h", before: entry(1, 10), after: entry(2, 10) }],
    ["partner"],
  ],
  [
    "a model that is new",
    { input: 2, more: OTHER },
    [{ model: "test/other", host: "h", before: null, after: entry(7, 70) }],
    ["partner"],
  ],
  ["a list alone", { input: 2, more: OTHER, factor: 3 }, [], ["partner"]],
  [
    "a model that is gone",
    { input: 2, factor: 3 },
    [{ model: "test/other", host: "h", before: entry(7, 70), after: null }],
    ["partner"],
  ],
  [
    "a price that is again what it was",
    { input: 1 },
    [{ model: "test/model", host: "h", before: entry(2, 10), after: entry(1, 10) }],
    ["partner"],
  ],
])("a reload tells the operator's endpoints of %s, once", async (_, sold, prices, lists) => {
  await until(async () => (await changed()).status === 200);
  const before = endpoint.of("price.changed").length;
  await reload(sold);
  expect(await newest(before + 1)).toMatchObject({ changed: prices.length, prices, price_lists: lists });
  await reload(sold);
});

test("each change is an event of its own, listed to the operator without a balance, and to no owner", async () => {
  const { data } = (await changed()).json;
  expect(data).toHaveLength(5);
  expect(new Set(data.map(({ id }: { id: string }) => id)).size).toBe(5);
  expect(data[0]).toMatchObject({ balance_id: null, deliveries: [{}] });
  expect(data[0].data.balance_id).toBeUndefined();
  const { recovery_secret: bearer } = await gateway.key(1);
  const refused = await gateway.send("GET", "/v1/events?type=price.changed", { bearer });
  expect([refused.status, refused.json.error.param]).toEqual([400, "type"]);
  const json = { url: "https://example.com/hook", events: ["price.changed"] };
  const own = await gateway.send("POST", "/v1/webhooks", { bearer, json });
  expect([own.status, own.json.error.param]).toEqual([400, "events"]);
  const { json: seen } = await gateway.send("GET", "/v1/events", { bearer });
  expect(JSON.stringify(seen)).not.toContain("price.changed");
});

test("a start with other prices tells of them, and one with the same does not", async () => {
  await gateway.gateway.stop();
  gateway = await openIn(folder);
  await gateway.gateway.stop();
  folder.configure(fileAt({ input: 5 }));
  gateway = await openIn(folder);
  expect(await newest(6)).toMatchObject({ prices: [{ before: entry(1, 10), after: entry(5, 10) }] });
  expect((await changed()).json.data).toHaveLength(6);
}, 20_000);
