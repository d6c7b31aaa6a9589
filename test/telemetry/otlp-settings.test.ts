import { describe, expect, test } from "bun:test";
import { isSampled, metricExportSettings, tracingSettings } from "../../src/telemetry/otlp-settings.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };
const settings = (env: Record<string, string>) => tracingSettings({ ...ENDPOINT, ...env })!;

test.each<[string, Record<string, string>, string | null]>([
  ["nothing", {}, null],
  ["an empty endpoint", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }, null],
  ["an endpoint", ENDPOINT, "http://collector:4318/v1/traces"],
  ["one with a path", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c/otlp/" }, "http://c/otlp/v1/traces"],
  ["one for traces", { ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t/x" }, "http://t/x"],
  ["an endpoint and no SDK", { ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }, null],
  ["an endpoint and no traces", { ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }, null],
])("with %s in the environment, traces go where it says", (_what, env, url) => {
  expect(tracingSettings(env)?.url ?? null).toBe(url);
});

test.each<[string, Record<string, string>, string | null, number]>([
  ["an endpoint", ENDPOINT, "http://collector:4318/v1/metrics", 60_000],
  ["one for metrics", { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://m/x" }, "http://m/x", 60_000],
  ["a time", { ...ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL: "5000" }, "http://collector:4318/v1/metrics", 5_000],
  ["no time", { ...ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL: "0" }, "http://collector:4318/v1/metrics", 60_000],
  ["an endpoint and no metrics", { ...ENDPOINT, OTEL_METRICS_EXPORTER: "none" }, null, 0],
  ["one for traces alone", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t/x" }, null, 0],
])("with %s in the environment, metrics go where it says", (_what, env, url, intervalMs) => {
  const found = metricExportSettings(env, "one");
  expect(found?.url ?? null).toBe(url);
  expect(found?.intervalMs ?? 0).toBe(intervalMs);
  if (found !== null) expect(found.resource["service.instance.id"]).toBe("one");
});

test("headers and the resource are pairs, written as in URLs; what is none is passed over", () => {
  const { headers, resource } = settings({
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20abc=, broken, x=%zz",
    OTEL_SERVICE_NAME: "mine",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=other,region=eu",
  });
  expect(headers).toEqual({ authorization: "Basic abc=", x: "%zz" });
  expect(resource).toEqual({ "service.name": "mine", region: "eu" });
});

describe("which requests are recorded", () => {
  const LOW = `${"a".repeat(24)}00000001`;
  const HIGH = `${"a".repeat(24)}ffffffff`;
  const parent = (sampled: boolean) => ({ traceId: LOW, spanId: "b".repeat(16), sampled });
  const ratio = { OTEL_TRACES_SAMPLER_ARG: "0.25" };

  test.each<[string, Record<string, string>, [boolean, boolean, boolean, boolean]]>([
    // A low trace id; a high one; a client that does not record; a client that does.
    ["unset", {}, [true, true, false, true]],
    ["always_on", {}, [true, true, true, true]],
    ["always_off", {}, [false, false, false, false]],
    ["parentbased_always_off", {}, [false, false, false, true]],
    ["traceidratio", ratio, [true, false, true, true]],
    ["parentbased_traceidratio", ratio, [true, false, false, true]],
    ["traceidratio", { OTEL_TRACES_SAMPLER_ARG: "many" }, [true, true, true, true]],
    ["traceidratio", { OTEL_TRACES_SAMPLER_ARG: "" }, [true, true, true, true]],
    ["traceidratio", { OTEL_TRACES_SAMPLER_ARG: "0" }, [false, false, false, false]],
  ])("%s %p", (sampler, more, expected) => {
    const chosen = settings(sampler === "unset" ? more : { ...more, OTEL_TRACES_SAMPLER: sampler });
    expect([
      isSampled(chosen, null, LOW),
      isSampled(chosen, null, HIGH),
      isSampled(chosen, parent(false), LOW),
      isSampled(chosen, parent(true), LOW),
    ]).toEqual(expected);
  });
});
