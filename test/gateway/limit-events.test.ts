import { afterAll, expect, test } from "bun:test";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { open } from "./open.ts";

const endpoint = new WebhookEndpoint();
const gateway = await open(`
webhooks:
  endpoints: [{ url: "${endpoint.url}", secret: "${endpoint.secret}", kinds: [limit.reached, claim.claimed, claim.undone] }]
`);
afterAll(async () => {
  await gateway.close();
  await endpoint.stop();
});

const SPENDING = {
  model: "sim/echo",
  max_tokens: 10,
  messages: [{ role: "user", content: "word ".repeat(200) }],
};
const of = (balance: string) =>
  endpoint
    .of("limit.reached")
    .filter(({ data }) => data.balance_id === balance)
    .map(({ data: { balance_id: _, used_usd: _used, resets_at: _resets, ...data } }) => data);
const reached = async (balance: string, count: number) => {
  for (let tries = 0; of(balance).length < count && tries < 100; tries++) await Bun.sleep(50);
  return of(balance);
};

test("half and four fifths of a key's day, of a budget, of a tag's value and of a run are an event each, once", async () => {
  const { balance_id, recovery_secret: bearer } = await gateway.key(5);
  const budget = (name: string, more: object) =>
    gateway.send("POST", "/v1/budgets", { bearer, json: { name, cap_usd: 1, window: "month", ...more } });
  await budget("team", {});
  await budget("each", { per: "tag:customer" });
  const make = async (json: object) => (await gateway.send("POST", "/v1/keys", { bearer, json })).json;
  const costs = async (key: string, headers: Record<string, string> = {}): Promise<number> => {
    const { headers: answered } = await gateway.send("POST", "/v1/chat/completions", {
      bearer: key,
      json: SPENDING,
      headers,
    });
    const receipt = (
      await gateway.send("GET", `/v1/receipts/${answered.get("x-gateway-receipt")}`, { bearer })
    ).json;
    return receipt.cost_usd as number;
  };
  const plain = await make({ name: "plain" });
  const cost = await costs(plain.key);
  expect(cost).toBeGreaterThan(0);
  const usd = (calls: number) => Number((calls * cost).toFixed(9));
  const change = (path: string, json: object) => gateway.send("PATCH", path, { bearer, json });

  const { id, key } = await make({ name: "day", daily_limit_usd: usd(3.9) });
  await costs(key);
  await costs(key);
  const day = { limit: "day", key_id: id, name: "day", window: "day" };
  expect(await reached(balance_id, 1)).toEqual([{ threshold_percent: 50, cap_usd: usd(3.9), ...day }]);
  // Half is reached once more, of a limit that was raised: that is no further event.
  await change(`/v1/keys/${id}`, { daily_limit_usd: usd(6) });
  await costs(key);
  await change(`/v1/keys/${id}`, { daily_limit_usd: usd(4.9) });
  await costs(key);
  expect((await reached(balance_id, 2)).slice(1)).toEqual([
    { threshold_percent: 80, cap_usd: usd(4.9), ...day },
  ]);

  await change("/v1/budgets/team", { cap_usd: usd(2) });
  const teamed = await make({ name: "team", budget: "team" });
  await costs(teamed.key);
  expect((await reached(balance_id, 3)).slice(2)).toEqual([
    { threshold_percent: 50, cap_usd: usd(2), limit: "budget", budget: "team", window: "month" },
  ]);

  await change("/v1/budgets/each", { cap_usd: usd(2) });
  const tagged = await make({ name: "tagged", budget: "each" });
  await costs(tagged.key, { "x-gateway-tags": "customer=acme" });
  await costs(tagged.key, { "x-gateway-tags": "customer=other" });
  const values = (await reached(balance_id, 5)).slice(3);
  expect(values.map(({ tag, value, threshold_percent }) => [tag, value, threshold_percent]).sort()).toEqual([
    ["customer", "acme", 50],
    ["customer", "other", 50],
  ]);

  const run = { "x-gateway-run": `job; usd=${usd(2)}` };
  await costs(plain.key, run);
  expect((await reached(balance_id, 6)).slice(5)).toEqual([
    { threshold_percent: 50, cap_usd: usd(2), limit: "run", run: "job" },
  ]);
  const ids = endpoint.of("limit.reached").map((one) => one.id);
  expect(new Set(ids).size).toBe(ids.length);
}, 60_000);

test("a claim that takes effect and one that is undone are events", async () => {
  const { balance_id, key, recovery_secret: bearer } = await gateway.key(1);
  await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { email: "somebody@example.com" } });
  await gateway.send("DELETE", "/v1/me/claim", { bearer });
  const [undone] = await endpoint.events("claim.undone", 1);
  expect(undone!.data).toMatchObject({ balance_id });
});
