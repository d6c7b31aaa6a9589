import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { freePort } from "../../bench/processes.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";

/**
 * Has Prometheus itself scrape a gateway that serves, and run each query of Grafana's dashboard and of the alerts: which it
 * does not understand, and which find nothing.
 *
 *     bun run test/telemetry/prometheus.ts PROMETHEUS
 */
const [program = "prometheus"] = process.argv.slice(2);
const DEPLOY = join(import.meta.dir, "../../deploy");

const { panels } = await Bun.file(join(DEPLOY, "dashboard.json")).json();
const { groups } = parse(await Bun.file(join(DEPLOY, "alerts.yaml")).text());
const ofPanels: string[] = panels.flatMap(({ targets }: { targets?: { expr: string }[] }) =>
  (targets ?? []).map(({ expr }) => expr.replaceAll("$__rate_interval", "10s")),
);
const ofAlerts: string[] = groups.flatMap(({ rules }: { rules: { expr: string }[] }) =>
  rules.map(({ expr }) => expr),
);

const path = mkdtempSync(join(tmpdir(), "prometheus-"));
const folder = new Folder(`export: { to: "file:${path}/export", every: 1s }\n`);
const gateway = await GatewayProcess.start(folder);
const port = freePort();
writeFileSync(
  join(path, "prometheus.yml"),
  `
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: gateway
    authorization: { credentials: ${ADMIN} }
    static_configs: [{ targets: ["${new URL(gateway.url).host}"] }]
`,
);
const files = [`--config.file=${path}/prometheus.yml`, `--storage.tsdb.path=${path}/data`];
const prometheus = Bun.spawn([program, ...files, `--web.listen-address=127.0.0.1:${port}`], {
  stdout: "ignore",
  stderr: "ignore",
});

async function query(expr: string): Promise<{ readonly error?: string; readonly found: number }> {
  const url = `http://127.0.0.1:${port}/api/v1/query?${new URLSearchParams({ query: expr })}`;
  const { error, data } = await (await fetch(url)).json();
  return { error, found: data?.result.length ?? 0 };
}

try {
  const { key } = await gateway.keyWith(5);
  const chat = (model: string, stream: boolean) =>
    gateway.post(
      "/v1/chat/completions",
      { model, stream, max_tokens: 10, messages: [{ role: "user", content: "Hi" }] },
      key,
    );
  const samples = async () => (await query("count_over_time(gateway_journal_healthy[1m])")).found > 0;
  await until(samples);
  let round = 0;
  /** Rates need what changes between two scrapes. */
  await until(async () => {
    for (const stream of [true, false]) await chat("sim/echo", stream);
    await chat("no/model", false);
    await Bun.sleep(500);
    return ++round >= 20;
  });
  const bad: string[] = [];
  const empty: string[] = [];
  for (const expr of [...ofPanels, ...ofAlerts]) {
    const { error, found } = await query(expr);
    if (error !== undefined) bad.push(`${expr}: ${error}`);
    else if (found === 0 && ofPanels.includes(expr)) empty.push(expr);
  }
  console.log(JSON.stringify({ panels: ofPanels.length, alerts: ofAlerts.length, bad, empty }, null, 1));
  if (bad.length > 0) process.exitCode = 1;
} finally {
  prometheus.kill();
  await prometheus.exited;
  await gateway.stop();
  folder.remove();
  rmSync(path, { recursive: true, force: true });
}
