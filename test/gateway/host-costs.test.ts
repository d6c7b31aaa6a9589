import { afterAll, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/** A host that tells what each answer cost there, as OpenRouter does. Here, an answer costs 0.005. */
let saidUsd: unknown = 0;
const host = await startFakeHost((request) => {
  const { events, whole } = chatText(["Yes."], { input: 0, output: 1_000, cost: saidUsd });
  return request.json().stream === true ? sse(events) : json(whole);
});
const model = (id: string) => `
  - id: test/${id}
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 0, output: 5 }
    routes: [{ host: a, model: ${id} }]`;
const gateway = await open(`
hosts: [{ id: a, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:${["same", "dear", "streamed"].map(model).join("")}
`);
const mine = await gateway.key(10);
afterAll(() => closeAll(gateway, host));

async function ask(model: string, cost: unknown, stream = false): Promise<void> {
  saidUsd = cost;
  const messages = [{ role: "user", content: "Is it?" }];
  const { status } = await gateway.chat(mine.key, {
    model: `test/${model}`,
    max_tokens: 1_000,
    messages,
    stream,
  });
  expect(status).toBe(200);
}

const told = (model: string) =>
  gateway.logged.filter((line) => line.includes('"host charges more"') && line.includes(`"${model}"`));
const counted = async (model: string) => {
  const text = (await gateway.admin("/metrics")).text;
  const line = new RegExp(`^gateway_host_cost_usd_total{model="test/${model}",host="a"} (.*)$`, "m").exec(
    text,
  );
  return line === null ? null : Number(line[1]);
};

test("a host that charges what balances are charged, or a little more, is counted and nobody is told", async () => {
  for (const cost of [0.005, 0.0051, 0.005, 0.0049]) await ask("same", cost);
  expect(await counted("same")).toBeCloseTo(0.02, 9);
  expect(told("same")).toEqual([]);
});

test("a host that charges more is told of once, with both sums", async () => {
  for (let request = 0; request < 5; request++) await ask("dear", 0.01);
  expect(await counted("dear")).toBeCloseTo(0.05, 9);
  expect(told("dear")).toHaveLength(1);
  expect(JSON.parse(told("dear")[0]!)).toMatchObject({
    host: "a",
    model: "dear",
    host_charged_usd: 0.02,
    charged_usd: 0.01,
  });
});

const balance = async () => (await gateway.send("GET", "/v1/me", { bearer: mine.key })).json.balance_usd;

test("streams count too, and what a host says changes nothing of what is charged", async () => {
  const before = await balance();
  await ask("streamed", 1, true);
  expect(await counted("streamed")).toBe(1);
  expect(told("streamed")).toHaveLength(1);
  expect(before - (await balance())).toBeCloseTo(0.005, 9);
});

test.each([-1, Number.MAX_VALUE * 2, "0.1", null])("%p is no cost", async (cost) => {
  const before = await counted("same");
  await ask("same", cost);
  expect(await counted("same")).toBe(before);
});
