import { afterAll, describe, expect, test } from "bun:test";
import { json, sse, status } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

const { whole, events } = chatText(["ok"], { input: 10, cached: 4, output: 3, reasoning: 1 });
const host = await startFakeHost((request) => (request.json().stream === true ? sse(events) : json(whole)));
const broken = await startFakeHost(() => status(500));
const gateway = await open(`
hosts:
  - { id: good, base_url: "${host.url}/v1", speaks: [chat.completions], max_concurrent: 7 }
  - { id: broken, base_url: "${broken.url}/v1", speaks: [chat.completions] }
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1000, output: 1000, cache_read: 0 }
    routes: [{ host: broken, model: m }, { host: good, model: m }]
defaults:
  accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }
`);
const key = (await gateway.key(100)).key;
afterAll(() => closeAll(gateway, host, broken));

/** Samples by name and labels. */
async function scrape(): Promise<Map<string, number>> {
  const { text } = await gateway.admin("/metrics");
  const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );
}

test("requests are counted by surface, model, host and outcome, with their tokens, cost and times", async () => {
  for (const stream of [true, false]) expect((await gateway.chat(key, { stream })).status).toBe(200);
  const samples = await scrape();
  const way = 'surface="chat.completions",model="test/model",host="good"';
  expect(samples.get(`gateway_requests_total{${way},outcome="settled",code=""}`)).toBe(2);
  expect(samples.get('gateway_attempts_total{host="broken",outcome="refused"}')).toBe(2);
  const tokens = (kind: string) =>
    samples.get(`gateway_tokens_total{model="test/model",host="good",kind="${kind}"}`);
  expect(["input", "cache_read", "output", "reasoning"].map(tokens)).toEqual([12, 8, 6, 2]);
  expect(samples.get('gateway_cost_usd_total{model="test/model",host="good"}')).toBeCloseTo(0.018, 9);
  for (const name of ["gateway_first_token_seconds", "gateway_request_seconds"]) {
    expect(samples.get(`${name}_bucket{${way},le="+Inf"}`)).toBe(2);
    expect(samples.get(`${name}_count{${way}}`)).toBe(2);
    expect(samples.get(`${name}_sum{${way}}`)).toBeGreaterThan(0);
  }
  expect(samples.get('gateway_host_limit{host="good"}')).toBe(7);
  expect(samples.get('gateway_host_in_flight{host="good"}')).toBe(0);
  expect(samples.get("gateway_open_holds")).toBe(0);
  expect(samples.get("gateway_journal_undurable")).toBeGreaterThanOrEqual(0);
});

describe("what is refused is counted too", () => {
  test.each<[string, () => Promise<unknown>, string]>([
    [
      "a bad key",
      () => gateway.chat("or-live-nobody"),
      'model="unknown",host="",outcome="refused",code="invalid_api_key"',
    ],
    [
      "no key",
      () => gateway.send("POST", "/v1/chat/completions", { json: {} }),
      'model="unknown",host="",outcome="refused",code="missing_api_key"',
    ],
    [
      "no credit",
      async () => gateway.chat((await gateway.key(0)).key),
      'model="test/model",host="",outcome="refused",code="insufficient_credit"',
    ],
  ])("%s", async (_name, send, labels) => {
    await send();
    expect((await scrape()).get(`gateway_requests_total{surface="chat.completions",${labels}}`)).toBe(1);
  });

  test("models that clients make up share one label", async () => {
    const before = (await scrape()).size;
    for (let index = 0; index < 50; index++) await gateway.chat(key, { model: `made/up"${index}` });
    const after = await scrape();
    expect(after.size - before).toBeLessThan(40);
    const unknown = 'model="unknown",host="",outcome="refused",code="unknown_model"';
    expect(after.get(`gateway_requests_total{surface="chat.completions",${unknown}}`)).toBe(50);
  });
});

test("the text is what Prometheus reads: each family has its type once, before its samples", async () => {
  const { text, headers } = await gateway.admin("/metrics");
  expect(headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
  const types = text.split("\n").filter((line) => line.startsWith("# TYPE"));
  expect(new Set(types).size).toBe(types.length);
  for (const line of text.split("\n").filter((one) => one !== "" && !one.startsWith("#")))
    expect(line).toMatch(/^[a-z_]+(\{[a-z_]+="(\\.|[^"\\])*"(,[a-z_]+="(\\.|[^"\\])*")*\})? -?[\d.e+-]+$/);
});
