import { afterAll, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/** A host that tells what each answer cost there, as OpenRouter does. Here, an answer costs 0.005. */
let reportedUsd: unknown = 0;
const host = await startFakeHost((sent) => {
  const { events, whole } = chatText(["Yes."], { input: 0, output: 1_000, cost: reportedUsd });
  return sent.json().stream === true ? sse(events) : json(whole);
});
const model = (id: string) => `
  - id: test/${id}
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 0, output: 5 }
    routes: [{ host: a, model: ${id} }]`;
const gateway = await open(`
hosts: [{ id: a, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:${["same", "costly", "streamed"].map(model).join("")}
${model("known").replace("model: known", "model: known, cost: { input: 0, output: 20 }")}
`);
const mine = await gateway.key(10);
afterAll(() => closeAll(gateway, host));

async function request(model: string, cost: unknown, stream = false): Promise<void> {
  reportedUsd = cost;
  const messages = [{ role: "user", content: "Is it?" }];
  const { status } = await gateway.chat(mine.key, {
    model: `test/${model}`,
    max_tokens: 1_000,
    messages,
    stream,
  });
  expect(status).toBe(200);
}

const logged = (model: string) =>
  gateway.logged.filter((line) => line.includes('"host charges more"') && line.includes(`"${model}"`));
const counted = async (model: string) => {
  const text = (await gateway.admin("/metrics")).text;
  const line = new RegExp(`^gateway_host_cost_usd_total{model="test/${model}",host="a"} (.*)$`, "m").exec(
    text,
  );
  return line === null ? null : Number(line[1]);
};

test("a host that charges what balances are charged, or a little more, is counted and not logged", async () => {
  for (const cost of [0.005, 0.0051, 0.005, 0.0049]) await request("same", cost);
  expect(await counted("same")).toBeCloseTo(0.02, 9);
  expect(logged("same")).toEqual([]);
});

test("a host that charges more is logged once, with both sums", async () => {
  for (let n = 0; n < 5; n++) await request("costly", 0.01);
  expect(await counted("costly")).toBeCloseTo(0.05, 9);
  expect(logged("costly")).toHaveLength(1);
  expect(JSON.parse(logged("costly")[0]!)).toMatchObject({
    host: "a",
    model: "costly",
    host_charged_usd: 0.02,
    charged_usd: 0.01,
  });
});

test("where a host reports no cost, the `cost` of the route is counted, and no customer sees it", async () => {
  for (const stream of [false, true]) await request("known", undefined, stream);
  expect(await counted("known")).toBeCloseTo(0.04, 9);
  expect(logged("known")).toHaveLength(1);
  for (const path of ["/v1/catalog", "/v1/models", "/v1/receipts?model=test/known"])
    expect((await gateway.send("GET", path, { bearer: mine.key })).text).not.toContain('"cost"');
  const { json: receipts } = await gateway.send("GET", "/v1/receipts?model=test/known", { bearer: mine.key });
  expect(receipts.data.map(({ cost_usd }: { cost_usd: number }) => cost_usd)).toEqual([0.005, 0.005]);
  expect((await gateway.admin("/admin/config")).text).toContain('"cost":{');
});

const balance = async () => (await gateway.send("GET", "/v1/me", { bearer: mine.key })).json.balance_usd;

test("streams count too, and what a host says changes nothing of what is charged", async () => {
  const before = await balance();
  await request("streamed", 1, true);
  expect(await counted("streamed")).toBe(1);
  expect(logged("streamed")).toHaveLength(1);
  expect(before - (await balance())).toBeCloseTo(0.005, 9);
});

test.each([-1, Number.MAX_VALUE * 2, "0.1", null])("%p is no cost", async (cost) => {
  const before = await counted("same");
  await request("same", cost);
  expect(await counted("same")).toBe(before);
});
