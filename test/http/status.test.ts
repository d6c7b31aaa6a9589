import { afterEach, beforeEach, expect, test } from "bun:test";
import { sumUsage, type UsageRow } from "../../src/store/usage/usage-sums.ts";
import { ManualClock } from "../fakes/clock.ts";
import { TestGateway } from "./test-gateway.ts";

let gateway: TestGateway;
beforeEach(() => {
  gateway = new TestGateway();
});
afterEach(() => gateway.stop());

const row = (at: number, state: string, firstTokenMs: number): UsageRow => ({
  at,
  keyId: "key_a",
  state,
  charged: 1,
  body: JSON.stringify({
    model: "test/one",
    model_requested: "test/one",
    host: "h",
    attempts: [{ host: "h", outcome: state === "failed" ? "silent" : "opened" }],
    tokens: { input: 1, cache_read: 0, cache_write: 0, output: 1 },
    first_token_ms: firstTokenMs,
  }),
});

const words = async () =>
  (await gateway.send("GET", "/status")).text
    .replace(/<style>.*<\/style>/s, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ");

test("the status page tells the last day's success and first-token time of each model", async () => {
  const now = Date.now();
  const rows = [
    ...Array.from({ length: 999 }, () => row(now, "settled", 1_200)),
    row(now, "failed", 1_200),
    ...Array.from({ length: 500 }, () => row(now - 5 * 3_600_000, "settled", 400)),
  ];
  gateway.usage = async (of) => sumUsage(rows, of, 10_000);
  expect(await words()).toContain("Success 99.9% First token 1.2 s · 95% within 1.2 s available");
  const { text } = await gateway.send("GET", "/status");
  expect(text.match(/<i class="fine" title/g)).toHaveLength(2);
  expect(text).toContain("99.9% of requests succeeded over the last day");
});

test.each([
  [16, 50, "68%"],
  [7, 100, "93%"],
  [1, 2_000, "99.9%"],
])(
  "with %p of %p failed, the share is rounded down and not by a float's error: %s",
  async (failed, of, share) => {
    const rows = Array.from({ length: of }, (_, at) =>
      row(Date.now(), at < failed ? "failed" : "settled", 1),
    );
    gateway.usage = async (query) => sumUsage(rows, query, 10_000);
    expect(await words()).toContain(`Success ${share} First token`);
  },
);

test("a model whose hosts have all failed, and served nobody since, is not called available", async () => {
  gateway.health.unprovenHosts.add("h");
  gateway.health.reports = [];
  gateway.usage = async (of) => sumUsage([row(Date.now(), "failed", 100)], of, 10_000);
  const page = await words();
  expect(page).toContain("2 models: 1 waiting for a request after failures, 1 not used yet.");
  expect(page).not.toContain(" available");
});

test("what nobody has used is not called available, nor tried again because another model failed", async () => {
  expect(await words()).toContain("No model has been used yet.");
  gateway.usage = async (of) => sumUsage([row(Date.now(), "settled", 100)], of, 10_000);
  await gateway.stop();
  gateway = new TestGateway();
  gateway.usage = async (of) => sumUsage([row(Date.now(), "settled", 100)], of, 10_000);
  expect(await words()).toContain("2 models: 1 available, 1 not used yet.");
  const { models } = (await gateway.send("GET", "/status.json")).json;
  expect(models.map(({ state }: { state: string }) => state).sort()).toEqual(["available", "not_used_yet"]);
});

test("how much the gateway is used is not shown", async () => {
  const rows = Array.from({ length: 4_321 }, () => row(Date.now(), "settled", 100));
  gateway.usage = async (of) => sumUsage(rows, of, 10_000);
  expect((await gateway.send("GET", "/status")).text).not.toMatch(/4[,.]?321/);
});

test("receipts are read once, however many look at the page at once and soon after", async () => {
  let reads = 0;
  const gate = Promise.withResolvers<void>();
  gateway.usage = async () => {
    reads++;
    await gate.promise;
    return sumUsage([], { stretchMs: 1 }, 1);
  };
  const first = Array.from({ length: 10 }, () => gateway.send("GET", "/status"));
  gate.resolve();
  await Promise.all(first);
  await gateway.send("GET", "/status");
  expect(reads).toBe(1);
});

test("the page and its JSON are made once a second, however many load them", async () => {
  await gateway.stop();
  const clock = new ManualClock();
  gateway = new TestGateway({ clock });
  let made = 0;
  const { deps } = gateway;
  const usable = deps.health.usable.bind(deps.health);
  deps.health.usable = (route) => {
    made += 1;
    return usable(route);
  };
  const load = () =>
    Promise.all(["/status", "/status.json", "/status"].map((path) => gateway.send("GET", path)));
  await load();
  const once = made;
  expect(once).toBeGreaterThan(0);
  await load();
  expect(made).toBe(once);
  clock.advance(1_000);
  await load();
  expect(made).toBe(2 * once);
});

test("while the receipts cannot be read, the page tells what it knows without them", async () => {
  gateway.usage = async () => null;
  expect(await words()).toContain("No model has been used yet.");
});

test("a browser that opens plain JSON gets the icon that it asks for, once a day, and the pages carry the same", async () => {
  const { status, headers, text } = await gateway.send("GET", "/favicon.ico");
  expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
    200,
    "image/svg+xml",
    "public, max-age=86400",
  ]);
  expect(text).toStartWith("<svg ");
  const [, address] = /<link rel="icon" href="([^"]*)">/.exec((await gateway.send("GET", "/status")).text)!;
  expect(await (await fetch(address!)).text()).toBe(text);
});

test("how fast each host of a model was measured to be is on the page and in JSON, for all workers", async () => {
  const measured = {
    free: false,
    usable: 1,
    resting: 0,
    unproven: 0,
    verifiedFree: false,
    failed: 0,
    lastFailure: null,
  };
  const route = { ...measured, host: "h", model: "m", served: 777, firstTokenMs: 321, tokensPerSecond: 45.5 };
  gateway.routes = [route];
  const { status, json } = await gateway.send("GET", "/status.json");
  expect(status).toBe(200);
  expect(json.models[0]).toEqual({
    id: "test/one",
    state: "available",
    hosts: [{ host: "h", first_token_ms: 321, tokens_per_second: 45.5 }],
  });
  expect(JSON.stringify(json)).not.toContain("777");
  gateway.routes = [{ ...route, firstTokenMs: 999 }];
  await Promise.all(Array.from({ length: 20 }, () => gateway.send("GET", "/status")));
  expect((await gateway.send("GET", "/status.json")).json.models[0].hosts[0].first_token_ms).toBe(321);
});

test("what fails comes first, and what nobody has used is named under the others", async () => {
  gateway.usage = async (of) => sumUsage([row(Date.now(), "settled", 100)], of, 10_000);
  const page = await words();
  expect(page).toContain("1 model not used yet Model test/two test/two");
  expect(page.indexOf("Model test/one")).toBeLessThan(page.indexOf("1 model not used yet"));
});
