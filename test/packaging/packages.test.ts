import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { readyLine } from "../process/gateway.ts";

/**
 * What `bun run build` makes, each started in an empty folder where there is neither a checkout nor Bun on the
 * path: the executable; and the package, packed and installed by npm as a user does.
 */
const ROOT = join(import.meta.dir, "../..");
let folder: string;
let tarball: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "packages-"));
  await run([process.execPath, join(ROOT, "scripts/build.ts"), "--outdir", folder], folder);
  const packed = await run(["npm", "pack", "--json", join(folder, "npm")], folder);
  tarball = JSON.parse(packed)[0].filename;
  mkdirSync(join(folder, "prefix"));
  // Bun's own package is in npm's cache, because a checkout needs it too.
  const install = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund", join(folder, tarball)];
  await run(install, join(folder, "prefix"));
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ways: [name: string, command: () => string][] = [
  ["the executable", () => join(folder, "gateway")],
  ["the installed package", () => join(folder, "prefix/node_modules/.bin/gateway")],
];

describe.each(ways)("%s", (_, command) => {
  test("starts on nothing, streams an answer, counts tokens, sums usage, shows the dashboard, stops", async () => {
    await using gateway = await start(command());
    const { url, cwd } = gateway;
    for (const path of ["/healthz", "/readyz"]) expect((await fetch(url + path)).status).toBe(200);

    const made = (await (await fetch(`${url}/v1/keys`, { method: "POST" })).json()) as { key: string };
    const headers = { authorization: `Bearer ${made.key}` };
    const messages = [{ role: "user", content: "Hello" }];
    const post = (path: string, body: object) =>
      fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    const stream = await post("/v1/chat/completions", { model: "gateway/auto:free", stream: true, messages });
    expect(await stream.text()).toEndWith("data: [DONE]\n\n");
    const count = await post("/v1/messages/count_tokens", { model: "sim/echo", messages });
    // Counted, not estimated: by its thread, with its vocabulary.
    expect(await count.json()).toEqual({ input_tokens: 8 });
    const usage = await fetch(`${url}/v1/usage`, { headers });
    expect(await usage.json()).toMatchObject({ object: "usage" });
    const page = await (await fetch(`${url}/dashboard`)).text();
    const script = /src="([^"]+\.js)"/.exec(page)![1]!;
    const loaded = await fetch(new URL(script, `${url}/dashboard`));
    expect(loaded.headers.get("content-type")).toStartWith("text/javascript");
    expect((await loaded.text()).length).toBeGreaterThan(1_000);

    expect(await gateway.run("health", "--url", url)).toBe(0);
    expect(await gateway.run("audit", "--url", url)).toBe(0);
    gateway.stop();
    expect(await gateway.exited).toBe(0);
    expect(await gateway.run("health", "--url", url)).toBe(4);
    expect(existsSync(join(cwd, "data/gateway.sqlite"))).toBe(true);
  }, 600_000);

  test("after a stop signal, it is not ready, ends its streams and exits with 0", async () => {
    const finish = gate();
    const { events } = chatText(["The ", "tide."]);
    const last = (n: number) => n === events.length - 1 && finish.passed;
    const host = await startFakeHost(() => sse(events, { before: last }));
    try {
      await using gateway = await start(command(), configuration(host.url));
      const { url } = gateway;
      const made = await (await fetch(`${url}/v1/keys`, { method: "POST" })).json();
      const { key, balance_id } = made as { key: string; balance_id: string };
      expect(await gateway.run("credit", balance_id, "1", "--url", url)).toBe(0);
      const stream = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: "paid", stream: true, messages: [{ role: "user", content: "?" }] }),
      });
      expect(stream.status).toBe(200);
      gateway.stop();
      await until(async () => (await fetch(`${url}/readyz`)).status === 503);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      // Another signal, which is not the same one passed on by a terminal, ends the delay and closes the port.
      const isClosed = () =>
        fetch(url).then(
          () => false,
          () => true,
        );
      await until(() => {
        gateway.stop();
        return isClosed();
      });
      finish.open();
      expect(await stream.text()).toEndWith("data: [DONE]\n\n");
      expect(await gateway.exited).toBe(0);
    } finally {
      await host.close();
    }
  }, 600_000);
});

test("started by npx, it stops when npx does", async () => {
  const cwd = mkdtempSync(join(folder, "npx-"));
  const path = [dirname(Bun.which("node")!), "/usr/bin", "/bin"].join(":");
  const installed = join(folder, "prefix/node_modules/.bin/gateway");
  // As npx starts it: below a shell, in an environment that names npm's command.
  const npx = Bun.spawn(["sh", "-c", `"${installed}" start; exit $?`], {
    cwd,
    env: { PATH: path, HOME: cwd, PORT: "0", npm_command: "exec" },
    stdout: "pipe",
    stderr: "ignore",
  });
  const url = await readyLine(npx.stdout);
  npx.kill("SIGKILL");
  await until(() =>
    fetch(`${url}/healthz`).then(
      () => false,
      () => true,
    ),
  );
}, 600_000);

test("the package brings nothing but itself and Bun", async () => {
  const installed = join(folder, "prefix/node_modules");
  const brought = readdirSync(installed).filter((name) => !name.startsWith("."));
  expect(brought.sort()).toEqual(["@oven", "bun", "text-generation-gateway"]);
  const own = join(installed, "text-generation-gateway");
  expect(readdirSync(own).sort()).toEqual([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "docs",
    "gateway.cjs",
    "gateway.example.yaml",
    "lib",
    "package.json",
  ]);
  const row = await Bun.file(join(own, "package.json")).json();
  expect(Object.keys(row.dependencies)).toEqual(["bun"]);
});

const configuration = (url: string): string => `
shutdown_delay_ms: 300000
drain_ms: 300000
hosts: [{ id: fake, base_url: "${url}/v1", speaks: [chat.completions] }]
models:
  - id: test/paid
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 2 }
    routes: [{ host: fake, model: m }]
`;

/** In a folder of its own, with nothing but Node.js, the system's programs and the given ones on the path. */
async function start(command: string, file?: string) {
  const cwd = mkdtempSync(join(folder, "empty-"));
  if (file !== undefined) writeFileSync(join(cwd, "gateway.yaml"), file);
  const path = [dirname(Bun.which("node")!), "/usr/bin", "/bin"].join(":");
  // Options for Bun, which are not the gateway's.
  const env = { PATH: path, HOME: cwd, PORT: "0", BUN_OPTIONS: "--no-env-file" };
  const child = Bun.spawn([command, "start"], { cwd, env, stdout: "pipe", stderr: "pipe" });
  const stderr = new Response(child.stderr).text();
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
  };
  const url = await readyLine(child.stdout);
  if (url === null) throw new Error(await stderr);
  return {
    url,
    cwd,
    exited: child.exited,
    stop: () => child.kill("SIGTERM"),
    /** One of its commands, in the same folder. */
    run: (...words: string[]) =>
      Bun.spawn([command, ...words], { cwd, env, stdout: "ignore", stderr: "ignore" }).exited,
    [Symbol.asyncDispose]: end,
  };
}

async function run(command: readonly string[], cwd: string): Promise<string> {
  const child = Bun.spawn([...command], { cwd, stdout: "pipe", stderr: "inherit" });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed: ${text}`);
  return text;
}
