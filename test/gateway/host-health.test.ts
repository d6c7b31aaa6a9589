import { afterAll, expect, test } from "bun:test";
import { rateLimited, sse, status } from "../fakes/behaviours.ts";
import { type Behaviour, type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { type OpenGateway, open } from "./open.ts";

const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

async function host(script: (n: number) => Behaviour): Promise<FakeHost> {
  const started = await startFakeHost((_, n) => script(n));
  closing.push(() => started.close());
  return started;
}

async function gatewayOn(first: FakeHost, second: FakeHost): Promise<OpenGateway> {
  const gateway = await open(`
hosts:
  - { id: first, base_url: "${first.url}", speaks: [chat.completions] }
  - { id: second, base_url: "${second.url}", speaks: [chat.completions] }
models:
  - id: test/model
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 1, output: 1 }
    routes:
      - { host: first, model: m }
      - { host: second, model: m }
`);
  closing.unshift(() => gateway.close());
  return gateway;
}

const FINE = sse(chatText().events);
const metric = (text: string, name: string): number =>
  Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);

test("a host that fails three times in a row is left out; /metrics and /status say so", async () => {
  const first = await host(() => status(500));
  const second = await host(() => FINE);
  const gateway = await gatewayOn(first, second);
  const { key } = await gateway.key(1);
  for (let count = 0; count < 5; count++)
    expect((await gateway.chat(key, { stream: true })).status).toBe(200);
  expect([first.requests.length, second.requests.length]).toEqual([3, 5]);

  const { text } = await gateway.admin("/metrics");
  expect(metric(text, 'gateway_host_usable{host="first"}')).toBe(0);
  expect(metric(text, 'gateway_host_usable{host="second"}')).toBe(1);
  expect(metric(text, 'gateway_host_failed_total{host="first"}')).toBe(3);
  expect(metric(text, 'gateway_host_served_total{host="second"}')).toBe(5);
  expect(metric(text, 'gateway_host_first_token_seconds{host="second"}')).toBeGreaterThan(0);
  expect((await gateway.send("GET", "/status")).text).toContain("not available");
});

test("a host that asks for a rest gets it at once", async () => {
  const first = await host(() => rateLimited(60));
  const second = await host(() => FINE);
  const gateway = await gatewayOn(first, second);
  const { key } = await gateway.key(1);
  for (let count = 0; count < 3; count++)
    expect((await gateway.chat(key, { stream: true })).status).toBe(200);
  expect([first.requests.length, second.requests.length]).toEqual([1, 3]);
});

test("when all hosts rest, the answer says when the first is back", async () => {
  const first = await host(() => rateLimited(60));
  const second = await host(() => rateLimited(7));
  const gateway = await gatewayOn(first, second);
  const { key } = await gateway.key(1);
  const isListed = async () =>
    (await gateway.send("GET", "/v1/catalog", { bearer: key })).json.data.map(
      ({ available }: { available: boolean }) => available,
    );
  expect(await isListed()).toContain(true);
  const { status: code, headers, json } = await gateway.chat(key);
  expect([code, json.error.code]).toEqual([503, "model_unavailable"]);
  expect(await isListed()).not.toContain(true);
  expect(Number(headers.get("retry-after"))).toBeWithin(6, 8);
});

test("requests that a host rejects never count against it", async () => {
  const first = await host((n) => (n < 10 ? status(400) : FINE));
  const second = await host(() => FINE);
  const gateway = await gatewayOn(first, second);
  const { key } = await gateway.key(1);
  for (let count = 0; count < 10; count++)
    expect((await gateway.chat(key, { stream: true })).status).toBe(400);
  expect((await gateway.chat(key, { stream: true })).status).toBe(200);
  expect([first.requests.length, second.requests.length]).toEqual([11, 0]);
});
