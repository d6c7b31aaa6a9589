import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/** Grafana's dashboard and Prometheus' rules name metrics and labels; a name that the gateway does not export shows nothing. */
const DEPLOY = join(import.meta.dir, "../../deploy");
interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}
interface Rule {
  readonly alert: string;
  readonly expr: string;
}
const { panels } = (await Bun.file(join(DEPLOY, "dashboard.json")).json()) as { panels: Panel[] };
const { groups } = parse(await Bun.file(join(DEPLOY, "alerts.yaml")).text()) as {
  groups: { rules: Rule[] }[];
};

const { whole, events } = chatText(["ok"], { input: 10, output: 3 });
const host = await startFakeHost((request) => (request.json().stream === true ? sse(events) : json(whole)));
const target = mkdtempSync(join(tmpdir(), "export-"));
const gateway = await open(`
export: { to: "file:${target}" }
hosts: [{ id: good, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1000, output: 1000 }
    routes: [{ host: good, model: m }]
`);
afterAll(async () => {
  await closeAll(gateway, host);
  rmSync(target, { recursive: true, force: true });
});
const key = (await gateway.key(1)).key;
for (const stream of [true, false]) await gateway.chat(key, { stream });

// Once the first round is over.
await until(async () => (await gateway.admin("/metrics")).text.includes("gateway_export_lag_seconds"));

/** By metric, the labels that any of its samples has. */
const exported = new Map<string, Set<string>>();
for (const line of (await gateway.admin("/metrics")).text.split("\n")) {
  const kind = /^# TYPE (\S+)/.exec(line)?.[1];
  if (kind !== undefined) exported.set(kind, exported.get(kind) ?? new Set());
  const sample = /^(gateway_\w+?)(?:_bucket|_count|_sum)?(?:\{(.*)\})? /.exec(line);
  if (sample === null) continue;
  const labels = exported.get(sample[1]!) ?? new Set();
  for (const [, label] of (sample[2] ?? "").matchAll(/(\w+)="/g)) labels.add(label!);
  exported.set(sample[1]!, labels);
}
/** Exported only where payments are configured. */
const OF_PAYMENTS = /^gateway_(payments|gas)_/;

function unknownIn(expr: string): string[] {
  const metrics = [...expr.matchAll(/\bgateway_\w+/g)].map(([name]) => name.replace(/_bucket$/, ""));
  const named = metrics.filter((name) => !OF_PAYMENTS.test(name));
  const labels = [
    ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) =>
      list!.split(",").map((one) => one.trim()),
    ),
    ...[...expr.matchAll(/[{,]\s*(\w+)(?:=|!=|=~)"/g)].map(([, label]) => label!),
  ].filter((label) => !["le", "job"].includes(label));
  const known = new Set(named.flatMap((name) => [...(exported.get(name) ?? [])]));
  return [
    ...named.filter((name) => !exported.has(name)),
    ...labels.filter((label) => named.length > 0 && !known.has(label)),
  ];
}

describe("each panel of Grafana's dashboard asks for what the gateway exports", () => {
  const asking = panels.filter(({ targets }) => targets !== undefined);
  test.each(asking.map(({ title, targets }) => [title, targets!] as const))("%s", (_, targets) => {
    expect(targets.flatMap(({ expr }) => unknownIn(expr))).toEqual([]);
  });
});

describe("each rule of alerts.yaml asks for what the gateway exports", () => {
  const rules = groups.flatMap((group) => group.rules);
  test.each(rules.map(({ alert, expr }) => [alert, expr] as const))("%s", (_, expr) => {
    expect(unknownIn(expr)).toEqual([]);
  });
});

test("a metric or a label that does not exist is noticed", () => {
  expect(unknownIn("sum by (colour) (rate(gateway_requests_totals[5m]))")).toEqual([
    "gateway_requests_totals",
    "colour",
  ]);
});
