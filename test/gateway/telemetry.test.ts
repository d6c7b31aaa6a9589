import { afterAll, expect, test } from "bun:test";
import { hashSecret } from "../../src/units/secret-hash.ts";
import { json, sse, status } from "../fakes/behaviours.ts";
import { REFUSED_PORT, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/** A collector that keeps what it is sent, and fails when the test says so. */
interface Sent {
  readonly headers: Headers;
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent
  readonly body: any;
}
const sent: Sent[] = [];
const metrics: Sent[] = [];
let failing = 0;

const PROMPT = "the-canary-of-the-prompt";
const ANSWER = "the-canary-of-the-answer";

const collector = Bun.serve({
  port: 0,
  async fetch(request) {
    const body = await request.json();
    const path = new URL(request.url).pathname;
    if (path === "/v1/metrics") {
      metrics.push({ headers: request.headers, path, body });
      return Response.json({ partialSuccess: {} });
    }
    if (failing-- > 0) return new Response("busy", { status: 503, headers: { "retry-after": "0" } });
    sent.push({ headers: request.headers, path, body });
    return Response.json({ partialSuccess: {} });
  },
});
const { whole, events } = chatText([ANSWER], { input: 10, cached: 4, output: 3 });
// A host's error repeats the prompt, as some do.
const broken = await startFakeHost((request) => status(500, {}, `cannot answer ${request.text()}`));
const good = await startFakeHost((request) => (request.json().stream === true ? sse(events) : json(whole)));
const gateway = await open(
  `
log: json
hosts:
  - { id: broken, base_url: "${broken.url}/v1", speaks: [chat.completions], api_key: canary-of-the-operator }
  - { id: good, base_url: "${good.url}/v1", speaks: [chat.completions] }
  - { id: gone, base_url: "http://127.0.0.1:${REFUSED_PORT}/v1", speaks: [chat.completions] }
  - { id: ill, base_url: "${broken.url}/v1", speaks: [chat.completions] }
models:
  - id: test/down
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes: [{ host: gone, model: m }, { host: ill, model: m }]
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes: [{ host: broken, model: m }, { host: good, model: m }]
`,
  {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}/`,
    OTEL_EXPORTER_OTLP_HEADERS: "x-token=a%20secret",
    OTEL_BSP_SCHEDULE_DELAY: "20",
    OTEL_METRIC_EXPORT_INTERVAL: "1000",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test",
  },
);
const key = (await gateway.key(10)).key;
afterAll(async () => {
  await gateway.close();
  await Promise.all([broken.close(), good.close(), collector.stop(true)]);
});

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";

// biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent
type Any = any;

const chat = (headers: Record<string, string> = {}, more: object = {}) =>
  gateway.send("POST", "/v1/chat/completions", {
    bearer: key,
    headers,
    json: { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: PROMPT }], ...more },
  });

async function spansOf(receipt: string): Promise<Any[]> {
  let found: Any[] = [];
  await until(() => {
    const all = sent.flatMap(({ body }): Any[] => body.resourceSpans[0].scopeSpans[0].spans);
    const own = all.find((span) => attribute(span, "gateway.receipt") === receipt);
    found = all.filter(({ traceId }) => traceId === own?.traceId);
    return own !== undefined;
  });
  return found;
}

function attribute(span: Any, name: string): unknown {
  const value = span.attributes.find(({ key: one }: Any) => one === name)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}

test("a request is a span in its client's trace, and each host that was asked is a span beneath it", async () => {
  const reply = await chat(
    { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: "vendor=1", "x-session-id": "chat-7" },
    { stream: true },
  );
  const [own, first, second] = await spansOf(reply.headers.get("x-gateway-receipt")!);
  expect(own).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, name: "chat test/model", kind: 2 });
  expect(first).toMatchObject({ traceId: TRACE, parentSpanId: own.spanId, kind: 3, status: { code: 2 } });
  expect(second).toMatchObject({ traceId: TRACE, parentSpanId: own.spanId, kind: 3, status: {} });
  expect(attribute(first, "gateway.outcome")).toBe("refused");
  expect(attribute(first, "error.type")).toBe("500");
  expect(attribute(first, "http.response.status_code")).toBe("500");
  expect(attribute(second, "gen_ai.provider.name")).toBe("good");
  expect(attribute(second, "server.port")).toBe(String(good.port));
  expect(attribute(own, "gen_ai.operation.name")).toBe("chat");
  expect(attribute(own, "gen_ai.usage.input_tokens")).toBe("10");
  expect(attribute(own, "gen_ai.usage.cache_read.input_tokens")).toBe("4");
  expect(attribute(own, "gen_ai.usage.output_tokens")).toBe("3");
  expect(attribute(own, "gen_ai.usage.reasoning.output_tokens")).toBe("0");
  expect(attribute(own, "gen_ai.conversation.id")).toBe("chat-7");
  expect(attribute(own, "gen_ai.request.stream")).toBe(true);
  const firstTokenMs = Number(attribute(own, "gateway.first_token_ms"));
  expect(attribute(own, "gen_ai.response.time_to_first_chunk")).toBe(firstTokenMs / 1_000);
  expect(attribute(own, "http.response.status_code")).toBe("200");
  for (const span of [own, first, second])
    expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
  expect(BigInt(second.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(first.endTimeUnixNano));
  // Each host receives its own span.
  const received = [broken, good].map((host) => host.requests.at(-1)!.headers);
  expect(received.map(({ traceparent }) => traceparent)).toEqual(
    [first, second].map(({ spanId }) => `00-${TRACE}-${spanId}-01`),
  );
  expect(received[0]!.tracestate).toBe("vendor=1");
});

test("a client without a trace begins one; one that records nothing is not recorded here either", async () => {
  const before = sent.length;
  const unrecorded = await chat({ traceparent: `00-${TRACE}-${PARENT}-00` });
  expect(good.requests.at(-1)!.headers.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
  const reply = await chat({ traceparent: "nonsense", tracestate: "a=b" });
  expect(good.requests.at(-1)!.headers.tracestate).toBeUndefined();
  const [own] = await spansOf(reply.headers.get("x-gateway-receipt")!);
  expect(own.traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(own.traceId).not.toBe(TRACE);
  expect(own.parentSpanId).toBeUndefined();
  const receipts = JSON.stringify(sent.slice(before));
  expect(receipts).not.toContain(unrecorded.headers.get("x-gateway-receipt")!);
});

test("a collector that is busy is asked again; what it is sent says whose it is", async () => {
  failing = 2;
  const reply = await chat();
  await spansOf(reply.headers.get("x-gateway-receipt")!);
  const { headers, path, body } = sent.at(-1)!;
  expect([path, headers.get("content-type"), headers.get("x-token")]).toEqual([
    "/v1/traces",
    "application/json",
    "a secret",
  ]);
  expect(body.resourceSpans[0].resource.attributes).toEqual([
    { key: "service.name", value: { stringValue: "text-generation-gateway" } },
    { key: "deployment.environment", value: { stringValue: "test" } },
  ]);
});

test("durations and tokens are histograms by the names and bounds of the GenAI conventions", async () => {
  const isOver = (points: Any[]) => points.some((point) => Number(point.count) > 0);
  let [duration, tokens]: Any[] = [];
  const of = (name: string) => {
    const all = metrics.at(-1)!.body.resourceMetrics[0].scopeMetrics[0].metrics;
    return all.find((metric: Any) => metric.name === name);
  };
  await chat();
  const before = metrics.length;
  await until(() => {
    duration = of("gen_ai.client.operation.duration");
    tokens = of("gen_ai.client.token.usage");
    return metrics.length > before + 1 && isOver(tokens.histogram.dataPoints);
  });
  expect([duration.unit, tokens.unit]).toEqual(["s", "{token}"]);
  const { dataPoints, aggregationTemporality } = duration.histogram;
  expect(aggregationTemporality).toBe(2);
  const served = dataPoints.find((point: Any) => attribute(point, "gen_ai.provider.name") === "good");
  expect(served.explicitBounds).toEqual([
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
  ]);
  expect(served.bucketCounts.reduce((sum: number, count: string) => sum + Number(count), 0)).toBe(
    Number(served.count),
  );
  expect(served.attributes.map(({ key: name }: Any) => name).sort()).toEqual([
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
  ]);
  const output = tokens.histogram.dataPoints.find(
    (point: Any) => attribute(point, "gen_ai.token.type") === "output",
  );
  expect(output.sum).toBe(3 * Number(output.count));
  expect(output.explicitBounds.at(-1)).toBe(67_108_864);
  const { attributes } = metrics.at(-1)!.body.resourceMetrics[0].resource;
  expect(attributes.map(({ key: name }: Any) => name)).toContain("service.instance.id");
}, 30_000);

test("the request log has a line for each request", async () => {
  const reply = await chat();
  const receipt = reply.headers.get("x-gateway-receipt")!;
  await until(() => gateway.lines.includes(receipt));
  const line = JSON.parse(gateway.lines.split("\n").find((one) => one.includes(receipt))!);
  expect(line).toMatchObject({
    event: "request",
    surface: "chat.completions",
    model_requested: "test/model",
    model: "test/model",
    host: "good",
    status: 200,
    state: "settled",
    error_code: null,
    tokens: { input: 6, cache_read: 4, output: 3 },
  });
  expect(line.attempts.at(-1)).toMatchObject({ host: "good", outcome: "answered" });
});

test("a line says with which status a host refused, or what broke", async () => {
  const { headers } = await chat({}, { model: "test/down" });
  const receipt = headers.get("x-gateway-receipt")!;
  await until(() => gateway.lines.includes(receipt));
  const line = JSON.parse(gateway.lines.split("\n").find((one) => one.includes(receipt))!);
  expect(line.attempts).toMatchObject([
    { host: "gone", outcome: "unreachable", fault: "refused" },
    { host: "ill", outcome: "refused", status: 500 },
  ]);
  // Nor do customers see where a host stands.
  const { text } = await gateway.send("GET", `/v1/receipts/${receipt}`, { bearer: key });
  expect(text).not.toContain("127.0.0.1");
});

test("no prompt, answer, key or hash is in logs, metrics or traces, whatever goes wrong", async () => {
  const bearer = (secret: string) =>
    gateway.send("POST", "/v1/chat/completions", { bearer: secret, json: {} });
  const secrets = [
    PROMPT,
    ANSWER,
    key,
    hashSecret(key),
    "canary-of-the-operator",
    "or-live-wrong",
    "a secret",
  ];
  await chat({}, { stream: true });
  await chat({}, { max_tokens: PROMPT });
  await chat({}, { model: key });
  await chat({}, { model: `${PROMPT}/x`, messages: PROMPT });
  await bearer("or-live-wrong");
  await gateway.send("POST", "/v1/chat/completions", { bearer: key, bytes: `{"messages": ${PROMPT}` });
  const last = await chat({ "x-title": PROMPT, baggage: PROMPT });
  const receipt = last.headers.get("x-gateway-receipt")!;
  await spansOf(receipt);
  await until(() => gateway.lines.includes(receipt));
  const { text: metrics } = await gateway.admin("/metrics");
  const exported = [
    gateway.lines,
    gateway.logged.join("\n"),
    metrics,
    JSON.stringify(sent.map(({ body }) => body)),
  ];
  expect(exported.every((one) => one.length > 100)).toBe(true);
  for (const one of exported) for (const secret of secrets) expect(one).not.toContain(secret);
});
