import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { banner } from "../../src/config/banner.ts";
import { listeningUrl } from "../../src/config/config.ts";
import { type FoundConfig, findConfig } from "../../src/config/find-config.ts";
import { formatProblems } from "../../src/config/problem.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { type Env, GOOD, GOOD_ENV, SIMULATED_URL } from "./fixture.ts";

const NOW = Date.UTC(2026, 10, 21) as EpochMs;
let cwd = "";
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "config-"));
});
afterEach(() => rmSync(cwd, { recursive: true }));

const find = (env: Env) => findConfig({ env, cwd, now: NOW, simulatedUrl: SIMULATED_URL });

async function found(env: Env): Promise<FoundConfig> {
  const result = await find(env);
  if (Array.isArray(result)) throw new Error(formatProblems(result));
  return result;
}

async function problems(env: Env): Promise<string> {
  const result = await find(env);
  return Array.isArray(result) ? formatProblems(result) : "";
}

test.each(["sk-1\n", '"sk-1"', "'sk-1'\n"])(
  "a provider's key that was put into the environment as %j is the key alone",
  async (written) => {
    const { config } = await found({ GROQ_API_KEY: written });
    expect(config.catalog.hosts.get("groq")?.apiKey).toBe("sk-1");
  },
);

test("a provider's key that no header can hold is refused by name, where its host would serve", async () => {
  const env = { ...GOOD_ENV, GROQ_API_KEY: "gsk-…" };
  expect(await problems(env)).toBe(
    "environment: GROQ_API_KEY: found a string with characters that a header cannot hold, expected a secret in printable ASCII",
  );
  writeFileSync(join(cwd, "gateway.yaml"), GOOD);
  expect(await problems(env)).toBe("");
});

describe("which file", () => {
  test("none: the built-in defaults", async () => {
    const { config } = await found({});
    expect(config.file).toBeNull();
    expect([...config.catalog.models.keys()]).toEqual(["sim/echo"]);
    expect(config.catalog.auto.get("free")).toEqual(["sim/echo"]);
    expect(config.catalog.hosts.get("sim")?.baseUrl).toBe(SIMULATED_URL);
  });

  test("gateway.yaml of the working folder", async () => {
    writeFileSync(join(cwd, "gateway.yaml"), GOOD);
    const { config } = await found(GOOD_ENV);
    expect(config.file).toBe(join(cwd, "gateway.yaml"));
    expect(config.catalog.hosts.has("sim")).toBe(false);
  });

  test("the one that GATEWAY_CONFIG names, before that", async () => {
    writeFileSync(join(cwd, "gateway.yaml"), "unknown: 1");
    writeFileSync(join(cwd, "mine.yaml"), "drain_ms: 7");
    expect((await found({ GATEWAY_CONFIG: "mine.yaml" })).config.drainMs).toBe(7);
  });

  test("GATEWAY_CONFIG names none: that is a problem, not the defaults", async () => {
    expect(await problems({ GATEWAY_CONFIG: "gone.yaml" })).toBe(
      `${join(cwd, "gone.yaml")}:1:1: there is no such file: correct GATEWAY_CONFIG, or the name in the command`,
    );
  });

  test("a folder, or bytes that are no text, are problems", async () => {
    expect(await problems({ GATEWAY_CONFIG: cwd })).toContain("this is a folder: name a file");
    writeFileSync(join(cwd, "gateway.yaml"), new Uint8Array([0x61, 0xff]));
    expect(await problems({})).toContain("the file is not text in UTF-8");
  });
});

describe("hosts of the environment", () => {
  test("one model through several hosts has a route to each, its author first", async () => {
    const { catalog } = (await found({ OPENROUTER_API_KEY: "a", ANTHROPIC_API_KEY: "b" })).config;
    const routes = catalog.models.get("anthropic/claude-haiku-4-5")!.routes;
    expect(routes.map(({ host, model }) => [host.id, model])).toEqual([
      ["anthropic", "claude-haiku-4-5-20251001"],
      ["openrouter", "anthropic/claude-haiku-4.5"],
    ]);
  });

  test("a model keeps its id whichever hosts are there", async () => {
    const direct = (await found({ ANTHROPIC_API_KEY: "b" })).config.catalog.models;
    const resold = (await found({ OPENROUTER_API_KEY: "a" })).config.catalog.models;
    expect(direct.has("anthropic/claude-haiku-4-5")).toBe(true);
    expect(resold.has("anthropic/claude-haiku-4-5")).toBe(true);
  });

  test("automatic routes are made of what is there", async () => {
    const { auto, models } = (await found({ OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b" })).config.catalog;
    expect([...auto.keys()]).toEqual(["fast", "best", "free"]);
    const price = (id: string) => models.get(id)!.price!.output;
    for (const [index, id] of auto.get("fast")!.entries()) {
      expect(price(id)).toBeLessThan(price(auto.get("best")!.at(index)!));
    }
    expect(
      auto
        .get("fast")!
        .map((id) => id.split("/")[0]!)
        .sort(),
    ).toEqual(["anthropic", "openai"]);
  });

  test("an empty variable is no host", async () => {
    expect([...(await found({ OPENAI_API_KEY: " " })).config.catalog.hosts.keys()]).toEqual(["sim"]);
  });
});

describe("Ollama is asked what it serves", () => {
  test("its models are published on free routes", async () => {
    using ollama = tags({
      models: [{ name: "llama3.2:latest" }, { name: "qwen3:0.6b" }, { name: "hf.co/a/b:Q4" }],
    });
    const { catalog } = (await found({ OLLAMA_HOST: `127.0.0.1:${ollama.port}` })).config;
    expect([...catalog.models.keys()]).toEqual([
      "ollama/llama3.2",
      "ollama/qwen3:0.6b",
      "ollama/hf.co-a-b:Q4",
      "sim/echo",
    ]);
    const model = catalog.models.get("ollama/llama3.2")!;
    expect([model.price, model.contextLength]).toEqual([null, 4096]);
    expect(model.routes.map(({ free, price, model: name }) => [free, price, name])).toEqual([
      [true, null, "llama3.2:latest"],
    ]);
    // A free model that answers goes before the one that only repeats its prompt.
    expect(catalog.auto.get("free")).toEqual([...catalog.models.keys()].slice(0, 3));
  });

  test("its own variable tells the context that it was started with", async () => {
    using ollama = tags({ models: [{ name: "llama3.2" }] });
    const env = { OLLAMA_HOST: `http://127.0.0.1:${ollama.port}`, OLLAMA_CONTEXT_LENGTH: "32768" };
    expect((await found(env)).config.catalog.models.get("ollama/llama3.2")?.contextLength).toBe(32_768);
  });

  test.each([
    ["a list of nothing", { models: [null, { name: 3 }, {}] }],
    ["no list", {}],
    ["no object", null],
  ])("%s: the host is found, and serves nothing", async (_what, answer) => {
    using ollama = tags(answer);
    const { catalog } = (await found({ OLLAMA_HOST: `127.0.0.1:${ollama.port}` })).config;
    expect([...catalog.hosts.keys()]).toEqual(["ollama", "sim"]);
    expect([...catalog.models.keys()]).toEqual(["sim/echo"]);
  });

  test("nobody answers: the gateway starts all the same", async () => {
    const gone = tags({});
    const { port } = gone;
    gone[Symbol.dispose]();
    expect((await found({ OLLAMA_HOST: `127.0.0.1:${port}` })).config.catalog.hosts.has("ollama")).toBe(true);
  });
});

describe("the start's message", () => {
  const lines = async (env: Env, hostname = "127.0.0.1", damagedFiles: string[] = []) => {
    const facts = await found(env);
    return banner({
      ...facts,
      schema: 20,
      listening: listeningUrl(hostname, 8080),
      hostname,
      adminTokenPath: "data/admin-token",
      dataPath: "data",
      guessableToken: "The admin token can be guessed.",
      damagedFiles,
    }).join("\n");
  };

  test("says of an admin token that it can be guessed", async () => {
    expect(await lines({})).toContain("  The admin token can be guessed.");
  });

  test("names journals that were damaged, for as long as they are kept", async () => {
    expect(await lines({}, "127.0.0.1", ["/data/journal-00000007.damaged"])).toContain(
      "/data/journal-00000007.damaged is a journal",
    );
    expect(await lines({})).not.toContain("damage");
  });

  test("says where it listens in the first line, and how to make and use a key in the last ones", async () => {
    const text = await lines({ OPENAI_API_KEY: "sk-secret" });
    expect(text.split("\n")[0]).toBe("listening on http://127.0.0.1:8080");
    expect(text).toContain("openai (OPENAI_API_KEY), sim (built in, simulated)");
    expect(text).toContain("data/admin-token");
    expect(text).toContain("-X POST http://127.0.0.1:8080/v1/keys");
    expect(text).toContain('"model":"gateway/auto:free","stream":true');
    expect(text).not.toContain("sk-secret");
  });

  test("where nothing is free, says how to give the key credit", async () => {
    expect(await lines({})).not.toContain("/admin/credits");
    writeFileSync(
      join(cwd, "gateway.yaml"),
      "hosts: [{ id: h, base_url: simulated, speaks: [messages] }]\nmodels: [{ id: a/b, context_length: 9000, max_output_tokens: 900, price: { input: 1, output: 1 }, routes: [{ host: h, model: echo }] }]\n",
    );
    const text = await lines({});
    expect(text).toContain(
      `curl -s -X POST http://127.0.0.1:8080/admin/credits -H "Authorization: Bearer $(cat 'data/admin-token')"`,
    );
    expect(text).toContain('"model":"a/b"');
  });

  test("says that it listens everywhere, and that others cannot follow links to localhost", async () => {
    expect(await lines({})).not.toContain("every other address");
    for (const hostname of ["0.0.0.0", "::"]) {
      const [first, second] = (await lines({}, hostname)).split("\n");
      expect(first).toBe("listening on http://localhost:8080");
      expect(second).toContain("at every other address of this machine. Messages and links name localhost");
    }
    writeFileSync(join(cwd, "gateway.yaml"), "base_url: https://gateway.test\n");
    expect((await lines({}, "0.0.0.0")).split("\n")[1]).toBe("  and at every other address of this machine.");
  });

  test("names a host whose models nobody knows", async () => {
    expect(await lines({ TOGETHER_API_KEY: "k" })).toContain(
      "together (TOGETHER_API_KEY) serves nothing yet",
    );
  });

  test("says of a host that names its models itself that it named none, whether it is down or empty", async () => {
    using ollama = tags({ models: [] });
    expect(await lines({ OLLAMA_HOST: `127.0.0.1:${ollama.port}` })).toContain(
      "ollama (OLLAMA_HOST) named no models when it was asked: start it or give it one, and reload.",
    );
  });

  test("is silent about found hosts that the file's models leave out", async () => {
    writeFileSync(join(cwd, "gateway.yaml"), GOOD.slice(GOOD.indexOf("models:")));
    expect(await lines({ ...GOOD_ENV, TOGETHER_API_KEY: "k" })).not.toContain("serves nothing");
  });

  test("asks whether a price was meant so", async () => {
    writeFileSync(join(cwd, "gateway.yaml"), GOOD.replace("input: 0.15", "input: 0.00000015"));
    expect(await lines(GOOD_ENV)).toContain(
      "openai/gpt-4o-mini at openai is priced at 0.00000015 USD (input): is that per million tokens?",
    );
    writeFileSync(join(cwd, "gateway.yaml"), GOOD);
    expect(await lines(GOOD_ENV)).not.toContain("is priced at");
  });

  test("shows the base address that clients use, where one is configured", async () => {
    writeFileSync(join(cwd, "gateway.yaml"), "base_url: https://ai.example.com\n");
    const text = await lines({});
    expect(text).toContain("-X POST https://ai.example.com/v1/keys");
    expect(text.split("\n")[0]).toBe("listening on http://127.0.0.1:8080");
  });

  test("shows a model of the file where nothing is free", async () => {
    writeFileSync(join(cwd, "gateway.yaml"), GOOD);
    expect(await lines(GOOD_ENV)).toContain('"model":"openai/gpt-4o-mini"');
  });

  test("its first command puts the key of the answer into the shell", async () => {
    const text = await lines({});
    const command = text
      .split("\n")
      .find((line) => line.includes("KEY="))!
      .trim();
    const answer = JSON.stringify({ id: "key_1", key: `or-live-${"a1".repeat(16)}`, prefix: "or-live-a1a1" });
    const shell = command.replace(/curl -s -X POST [^\s)]+/, `printf %s '${answer}'`);
    const { stdout } = Bun.spawnSync(["sh", "-c", `${shell} && printf %s "$KEY"`]);
    expect(stdout.toString()).toBe(`${answer}\nor-live-${"a1".repeat(16)}`);
  });
});

function tags(answer: unknown) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) =>
      url.endsWith("/api/tags") ? Response.json(answer) : new Response(null, { status: 404 }),
  });
  return { port: server.port, [Symbol.dispose]: () => void server.stop(true) };
}
