import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readyLine } from "../process/gateway.ts";

/** What `bun run build` makes, each started where there is neither a checkout nor node_modules. */
const ROOT = join(import.meta.dir, "../..");
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "packages-"));
  const built = Bun.spawn([process.execPath, join(ROOT, "scripts/build.ts"), "--outdir", folder], {
    cwd: folder,
    stdout: "ignore",
    stderr: "inherit",
  });
  if ((await built.exited) !== 0) throw new Error("the build failed");
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ways: [name: string, command: () => string[]][] = [
  ["the executable", () => [join(folder, "gateway")]],
  ["npm's package", () => [process.execPath, join(folder, "npm/lib/main.js")]],
];

describe.each(ways)("%s", (_, command) => {
  test("starts on nothing, streams an answer, counts tokens, sums usage, shows the dashboard, stops", async () => {
    const cwd = mkdtempSync(join(folder, "empty-"));
    const env = { PATH: process.env.PATH ?? "", HOME: cwd, PORT: "0", GATEWAY_DATA: join(cwd, "data") };
    const child = Bun.spawn([...command(), "start"], { cwd, env, stdout: "pipe", stderr: "pipe" });
    const told = new Response(child.stderr).text();
    try {
      const url = await readyLine(child.stdout);
      if (url === null) throw new Error(await told);

      const made = (await (await fetch(`${url}/v1/keys`, { method: "POST" })).json()) as { key: string };
      const headers = { authorization: `Bearer ${made.key}` };
      const messages = [{ role: "user", content: "Hello" }];
      const post = (path: string, body: object) =>
        fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
      const stream = await post("/v1/chat/completions", {
        model: "gateway/auto:free",
        stream: true,
        messages,
      });
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

      const asked = Bun.spawn([...command(), "health", "--url", url], { cwd, env, stdout: "ignore" });
      expect(await asked.exited).toBe(0);
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
      const gone = Bun.spawn([...command(), "health", "--url", url], { cwd, env, stderr: "ignore" });
      expect(await gone.exited).toBe(4);
      expect(existsSync(join(cwd, "data/gateway.sqlite"))).toBe(true);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
  }, 300_000);
});

test("npm's package needs nothing but Bun", async () => {
  const row = await Bun.file(join(folder, "npm/package.json")).json();
  expect(Object.keys(row.dependencies)).toEqual(["bun"]);
  expect(row.bin.gateway).toBe("gateway.cjs");
});
