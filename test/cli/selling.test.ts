import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../bench/processes.ts";
import { cleanEnvironment } from "../environment.ts";
import { until } from "../fakes/until.ts";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { readyLine } from "../process/gateway.ts";
import { product } from "../process/product.ts";

const folder = mkdtempSync(join(tmpdir(), "selling-"));
const endpoint = new WebhookEndpoint();
const port = freePort();
afterAll(async () => {
  await endpoint.stop();
  rmSync(folder, { recursive: true });
});

/** The commands of "From nothing", as they stand there but for the port and for the endpoint, which is the reader's own. */
const [start, ...later] = [...fromNothing().matchAll(/```sh\n(.*?)```/gs)].map(([, block]) =>
  block!
    .replace("https://ops.example.com/hook", endpoint.url)
    .replace(/"whsec_\$\(.*\)"/, `"${endpoint.secret}"`)
    .replace("127.0.0.1:8080", `127.0.0.1:${port}`),
);

function fromNothing(): string {
  const text = readFileSync(join(import.meta.dir, "../../docs/selling.md"), "utf8");
  const from = text.indexOf("## From nothing");
  return text.slice(from, text.indexOf("\n## ", from));
}

test("the document's commands make two customers, cap an end user, report 80% and write the month, in an empty folder", async () => {
  const bin = join(folder, "bin");
  const shop = join(folder, "shop");
  mkdirSync(bin);
  mkdirSync(shop);
  symlinkSync(await product(), join(bin, "gateway"));
  const clean = cleanEnvironment();
  const terminal = (commands: string) =>
    Bun.spawn(["bash", "-euo", "pipefail", "-c", commands], {
      cwd: shop,
      env: { ...clean, PATH: `${bin}:${clean.PATH}`, PORT: String(port), HOST: "127.0.0.1" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  const gateway = terminal(start!.replace("gateway start", "exec gateway start"));
  try {
    expect(await readyLine(gateway.stdout)).toContain(String(port));
    const reader = terminal(later.join("\n"));
    const [out, err, code] = await Promise.all([
      new Response(reader.stdout).text(),
      new Response(reader.stderr).text(),
      reader.exited,
    ]);
    expect([err, code]).toEqual(["", 0]);
    expect(out).toContain("charged by the price list partner");
    const [served, refused] = [/"finish_reason":"stop"/g, /"code":"budget_exhausted"/g].map(
      (what) => out.match(what)?.length ?? 0,
    );
    expect(served).toBeGreaterThan(10);
    expect(refused).toBeGreaterThan(5);
    const alice = { limit: "budget", budget: "each-user", tag: "user", value: "alice", cap_usd: 1 };
    // Both are crossed within a moment, and deliveries have no order.
    const crossed = (percent: number) =>
      endpoint.of("limit.reached").find(({ data }) => data.threshold_percent === percent)?.data;
    await until(() => crossed(50) !== undefined && crossed(80) !== undefined);
    expect([crossed(50), crossed(80)]).toMatchObject([alice, alice]);
    const csv = (name: string) => readFileSync(join(shop, name), "utf8").trim().split("\n");
    expect(csv("month.csv")).toHaveLength(2);
    const [head, line] = csv("users.csv").map((row) => row.split(","));
    const cell = (name: string) => line![head!.indexOf(name)]!;
    expect([cell("key_name"), cell("tag"), cell("requests")]).toEqual(["Acme", "alice", String(served)]);
    expect(Number(cell("cost_usd"))).toBeLessThanOrEqual(1);
    expect(Number(cell("cost_usd"))).toBeGreaterThan(0.8);
  } finally {
    gateway.kill("SIGTERM");
    await gateway.exited;
  }
}, 300_000);
