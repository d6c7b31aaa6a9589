import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Route } from "../../src/catalog/catalog.ts";
import { bar, withProgress } from "../../src/cli/progress.ts";
import { findConfig } from "../../src/config/find-config.ts";
import { formatProblems } from "../../src/config/problem.ts";
import { PRESETS } from "../../src/config/provider-presets.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { MailServer } from "../fakes/mail-server.ts";
import { Cluster, hasPostgres } from "../postgres/cluster.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { gateway } from "./command.ts";

/** Commands that look at this machine and at hosts, and need no running gateway. */
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cli-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const host = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/broken/models") return new Response("down", { status: 503 });
    if (pathname === "/busy/models") return new Response("busy", { status: 429 });
    if (pathname === "/moved/models") return Response.redirect("http://127.0.0.1:1/stolen", 307);
    if (pathname === "/page/models")
      return new Response("<html>", { headers: { "content-type": "text/html" } });
    if (pathname !== "/v1/models") return new Response("nothing", { status: 404 });
    const good = request.headers.get("authorization") === "Bearer good-key";
    return Response.json({ data: [{ id: "m" }, { id: "models/n" }] }, { status: good ? 200 : 401 });
  },
});
afterAll(() => host.stop(true));

const configure = (text: string): void => writeFileSync(join(folder, "gateway.yaml"), text);
const configured = (path: string, key: string | null, address = `http://127.0.0.1:${host.port}`): string => `
hosts:
  - { id: h, base_url: "${address}/${path}", speaks: [chat.completions]${key === null ? "" : `, api_key: ${key}`} }
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 2 }
    routes: [{ host: h, model: m }]
`;

/** A port that nothing listens on. */
const freePort = (): string => {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  server.stop(true);
  return String(port);
};

describe("config check", () => {
  test("says what a good file comes to", async () => {
    configure(configured("v1", null));
    const { out, code } = await gateway(["config", "check"], {}, folder);
    expect(code).toBe(0);
    expect(out).toContain("The configuration is valid.");
    const json = JSON.parse((await gateway(["config", "check", "--json"], {}, folder)).out);
    expect(json).toMatchObject({ ok: true, hosts: ["h"], models: 1, unpriced_models: [], unused_hosts: [] });
  });

  test("warns of models that cannot be bought", async () => {
    configure(configured("v1", null).replace(/ +price:.*\n/, ""));
    const { out, code } = await gateway(["config", "check"], {}, folder);
    expect([code, out]).toEqual([0, expect.stringContaining("test/model has no price")]);
  });

  const doubtful: [string, string, string][] = [
    [
      "a price per token",
      "{ input: 0.0000025, output: 0.00001 }",
      "test/model at h is priced at 0.0000025 USD (input)",
    ],
    [
      "a price in another unit",
      "{ input: 0, output: 3000 }",
      "test/model at h is priced at 3000 USD (output)",
    ],
    [
      "a price per thousand of a model that is known",
      "{ input: 0.015, output: 0.6 }",
      "test/model at h is priced at 0.015 USD (input), while its known price is 150: is that per million tokens?",
    ],
  ];
  test.each(doubtful)("asks whether %s is meant so", async (_, price, message) => {
    configure(
      configured("v1", null)
        .replace(/price:.*/, `price: ${price}`)
        .replace("model: m }", "model: o1-pro }"),
    );
    const { out, code } = await gateway(["config", "check"], {}, folder);
    expect([code, out]).toEqual([0, expect.stringContaining(`warning: ${message}`)]);
    const json = JSON.parse((await gateway(["config", "check", "--json"], {}, folder)).out);
    expect(json.doubtful_prices).toHaveLength(1);
  });

  test("does not doubt a price that is what others ask", async () => {
    configure(
      configured("v1", null)
        .replace(/price:.*/, "price: { input: 120, output: 700 }")
        .replace("model: m }", "model: o1-pro }"),
    );
    expect((await gateway(["config", "check"], {}, folder)).out).not.toContain("warning");
  });

  test("lists every problem with its place, and fails", async () => {
    const file = join(folder, "other.yaml");
    writeFileSync(file, "hosts: 3\ncolour: red\n");
    const { err, out, code } = await gateway(["config", "check", file], {}, folder);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain("2 problems in the configuration");
    expect(err).toContain(`${file}:1:8: hosts: found 3`);
    expect(err).toContain(`${file}:2:1: colour`);
    const json = JSON.parse((await gateway(["config", "check", file, "--json"], {}, folder)).out);
    expect(json.problems.map(({ line }: { line: number }) => line)).toEqual([1, 2]);
  });

  test("asks whether times under a second are meant so", async () => {
    configure(`${configured("v1", null)}generation: { first_token_ms: 30 }\ndrain_ms: 0\n`);
    const { out, code } = await gateway(["config", "check"], {}, folder);
    expect(code).toBe(0);
    expect(out).toContain("warning: generation.first_token_ms is 30: is that in milliseconds?");
    expect(out).not.toContain("drain_ms");
  });

  test("--strict fails on a warning, and on nothing else", async () => {
    configure(configured("v1", null));
    expect((await gateway(["config", "check", "--strict"], {}, folder)).code).toBe(0);
    configure(configured("v1", null).replace("input: 1,", "input: 0.000001,"));
    const { err, code } = await gateway(["config", "check", "--strict"], {}, folder);
    expect([code, err]).toEqual([1, expect.stringContaining("1 warning, and --strict allows none")]);
  });

  test("names a file that is not there", async () => {
    const { err, code } = await gateway(["config", "check", "none.yaml"], {}, folder);
    expect([code, err]).toEqual([1, expect.stringContaining("none.yaml:1:1: there is no such file")]);
  });
});

describe("models import", () => {
  test("prints a configuration that is good as it is, keys left in the environment", async () => {
    const env = { ANTHROPIC_API_KEY: "sk-canary", GROQ_API_KEY: "gsk-canary" };
    const { out, code } = await gateway(["models", "import"], env, folder);
    expect(code).toBe(0);
    expect(out).toMatch(/api_key: \$\{ANTHROPIC_API_KEY\}/);
    expect(out).not.toContain("canary");
    configure(out);
    const check = JSON.parse((await gateway(["config", "check", "--json"], env, folder)).out);
    expect(check).toMatchObject({
      ok: true,
      hosts: ["anthropic", "groq"],
      unpriced_models: [],
      unused_hosts: [],
    });
    expect(check.models).toBe(out.match(/^ {2}- id: .+\/.+$/gm)!.length);
  });

  test("prints what the environment alone would serve: every model's hosts, prices and quirks", async () => {
    const env = Object.fromEntries(PRESETS.map((preset) => [preset.env, "k"]));
    const { out } = await gateway(["models", "import"], env, folder);
    const source = { env, cwd: folder, now: Date.now() as EpochMs, simulatedUrl: "http://127.0.0.1:1/v1" };
    const served = async () => {
      const read = await findConfig(source);
      if (Array.isArray(read)) throw new Error(formatProblems(read));
      return [...read.config.catalog.models.values()]
        .filter(({ id }) => id !== "sim/echo")
        .map(({ routes, ...model }) => ({ ...model, routes: routes.map(plain) }));
    };
    const plain = ({ host, quirks = host.quirks, model, price }: Route) => ({
      host: host.id,
      model,
      price,
      quirks: Object.entries(quirks).filter(([, holds]) => holds),
    });
    const found = await served();
    configure(out);
    const imported = await served();
    expect(imported.map(({ id }) => id)).toEqual(found.map(({ id }) => id));
    for (const [at, model] of imported.entries()) expect(model).toMatchObject(found[at]!);
  });

  test("takes hosts whose key is not there yet, and only the models that were asked for", async () => {
    const args = "models import --host openai --host openrouter --match gpt-4o-mini --json".split(" ");
    const rows = JSON.parse((await gateway(args, {}, folder)).out);
    expect(rows.hosts.map(({ id }: { id: string }) => id)).toEqual(["openai", "openrouter"]);
    for (const { id, price, routes } of rows.models) {
      expect(id).toContain("gpt-4o-mini");
      expect(price.input).toBeGreaterThan(0);
      expect(routes.length).toBeGreaterThan(0);
    }
  });

  const wrong: [string, string[], number, string][] = [
    ["no host and no key", [], 2, "--host"],
    ["a host that nobody knows", ["--host", "opena"], 2, "opena: no such host"],
    ["models that there are none of", ["--host", "openai", "--match", "llama-99"], 1, "llama-99"],
  ];
  test.each(wrong)("%s: says what to do", async (_, args, code, message) => {
    const run = await gateway(["models", "import", ...args], {}, folder);
    expect([run.code, run.out]).toEqual([code, ""]);
    expect(run.err).toContain(message);
  });
});

describe("doctor", () => {
  const examine = async (env: Record<string, string> = {}) => {
    const { out, code } = await gateway(["doctor", "--json"], { PORT: freePort(), ...env }, folder);
    return { code, ...(JSON.parse(out) as { ok: boolean; findings: Finding[] }) };
  };
  interface Finding {
    readonly check: string;
    readonly state: string;
    readonly detail: string;
    readonly next: string | null;
  }
  const found = (findings: Finding[], check: string) => findings.find((one) => one.check === check)!;

  test("finds a machine in order, with what was measured, and leaves nothing behind", async () => {
    configure(configured("v1", "good-key"));
    const { code, ok, findings } = await examine();
    expect([code, ok]).toEqual([0, true]);
    expect(findings.map(({ check, state }) => `${check} ${state}`)).toEqual([
      "configuration ok",
      "data folder ok",
      expect.stringMatching(/^disk (ok|warn)$/),
      "port ok",
      "host h ok",
      "prices ok",
    ]);
    expect(found(findings, "disk").detail).toMatch(/takes \d+\.\d\d ms/);
    expect(found(findings, "host h").detail).toContain("its key is accepted");
    expect([...new Bun.Glob("**").scanSync({ cwd: folder, dot: true })]).toEqual(["gateway.yaml"]);
  });

  const hosts: [string, string, string | null, string, string][] = [
    ["a key that is refused", "v1", "bad-key", "fail", "refuses the key"],
    ["a key that is missing", "v1", null, "fail", "needs a key"],
    ["a host that is down", "broken", "good-key", "fail", "answers 503"],
    ["a quota that is used up", "busy", "good-key", "warn", "answers 429"],
    ["a redirect, which is not followed", "moved", "good-key", "warn", "answers 307"],
    ["a page in place of a list", "page", "good-key", "warn", "with text/html in place of JSON"],
    ["a wrong path", "v2", "good-key", "warn", "answers 404"],
  ];
  test.each(hosts)("%s", async (_, path, key, state, detail) => {
    configure(configured(path, key));
    const { code, findings } = await examine();
    expect(found(findings, "host h")).toMatchObject({ state, detail: expect.stringContaining(detail) });
    expect(code).toBe(state === "fail" ? 1 : 0);
  });

  test("a host that cannot be reached", async () => {
    configure(configured("v1", "good-key", "http://127.0.0.1:1"));
    const { code, findings } = await examine();
    expect(code).toBe(1);
    expect(found(findings, "host h").detail).toBe(
      "cannot be reached at http://127.0.0.1:1: nobody listens there (ECONNREFUSED)",
    );
  });

  test("a port that something else has", async () => {
    configure(configured("v1", "good-key"));
    const { code, findings } = await examine({ PORT: String(host.port) });
    expect([code, found(findings, "port").state]).toEqual([1, "fail"]);
    expect(found(findings, "port").next).toContain("PORT");
  });

  test("a gateway that runs is recognised, and so is the folder that it holds", async () => {
    const own = new Folder(simpleConfig([9]));
    const running = await GatewayProcess.start(own);
    const { out } = await gateway(
      ["doctor", "--json"],
      { ...own.env, PORT: new URL(running.url).port },
      folder,
    );
    const elsewhere = await gateway(["doctor", "--json"], { ...own.env, PORT: freePort() }, folder);
    await running.stop();
    own.remove();
    expect(found(JSON.parse(out).findings, "port").detail).toContain("a gateway serves");
    expect(found(JSON.parse(out).findings, "data folder").detail).toContain("in use by the running gateway");
    expect(found(JSON.parse(elsewhere.out).findings, "data folder").state).toBe("warn");
  });

  test("a proxy that the running gateway does not trust is named", async () => {
    const own = new Folder(simpleConfig([9], "trusted_proxies: [10.0.0.0/8]"));
    const running = await GatewayProcess.start(own);
    await fetch(`${running.url}/v1/keys`, { method: "POST", headers: { "x-forwarded-for": "192.0.2.1" } });
    const { out } = await gateway(
      ["doctor", "--json"],
      { ...own.env, PORT: new URL(running.url).port },
      folder,
    );
    await running.stop();
    own.remove();
    expect(found(JSON.parse(out).findings, "proxies")).toMatchObject({
      state: "warn",
      detail: "127.0.0.1 sent X-Forwarded-For (1 request) and is not in trusted_proxies",
    });
  });

  test("metrics on an address of their own: whether it is free, and who reads them", async () => {
    const [open, own] = [freePort(), freePort()];
    configure(`metrics: 0.0.0.0:${open}\n`);
    const metrics = async () =>
      (await examine()).findings
        .filter(({ check }) => check === "metrics")
        .map(({ state, detail }) => [state, detail]);
    expect(await metrics()).toEqual([
      ["ok", `0.0.0.0:${open} is free`],
      ["warn", expect.stringContaining(`anybody who reaches 0.0.0.0:${open} reads them`)],
    ]);
    configure(`metrics: 127.0.0.1:${own}\n`);
    const taken = Bun.serve({ hostname: "127.0.0.1", port: Number(own), fetch: () => new Response("") });
    expect(await metrics()).toEqual([["fail", expect.stringContaining(`cannot listen on 127.0.0.1:${own}`)]]);
    await taken.stop(true);
    expect(await metrics()).toEqual([["ok", `127.0.0.1:${own} is free`]]);
  });

  test("a configuration with problems does not hide what is wrong with the machine", async () => {
    configure("hosts: 3\n");
    const { code, findings } = await examine();
    expect(code).toBe(1);
    expect(findings.map(({ check }) => check)).toEqual(["configuration", "data folder", "disk", "port"]);
  });

  test("keys of hosts are nowhere in what it prints", async () => {
    configure(configured("v1", "canary-key"));
    const { out, err } = await gateway(["doctor"], { PORT: freePort() }, folder);
    expect(out + err).not.toContain("canary-key");
  });
});

describe("the progress bar", () => {
  const bars: [number, number | null, number, string][] = [
    [0, 4, 80, `[${"·".repeat(24)}] 0/4 asking h`],
    [2, 4, 80, `[${"#".repeat(12)}${"·".repeat(12)}] 2/4 asking h`],
    [4, 4, 80, `[${"#".repeat(24)}] 4/4 asking h`],
    [7, null, 80, "7 asking h"],
    [2, 4, 10, "[########"],
  ];
  test("is drawn on a terminal and gone at the end, also of work that fails; elsewhere nothing is written", async () => {
    const written: string[] = [];
    const terminal = (columns: number | null) => ({
      columns,
      err: (text: string) => void written.push(text),
    });
    const failing = withProgress(terminal(80), async (progress) => {
      progress(1, 2, "asking h\u001b[31m");
      throw new Error("no");
    });
    expect(failing).rejects.toThrow("no");
    await failing.catch(() => {});
    expect(written).toHaveLength(2);
    expect(written[0]).toContain("1/2 asking h\uFFFD[31m");
    expect(written[1]).toBe("\r\u001b[2K");

    written.length = 0;
    expect(
      await withProgress(terminal(null), async (progress) => progress(1, 2, "asking h")),
    ).toBeUndefined();
    expect(written).toEqual([]);
  });

  test.each(bars)("%p of %p in %p columns", (done, total, columns, drawn) => {
    expect(bar(done, total, "asking h", columns)).toBe(drawn);
  });
});

test("doctor fails an admin token that could be guessed, and does not show it", async () => {
  configure(configured("v1", "good-key"));
  const doubts = async (token: string) =>
    (await gateway(["doctor"], { PORT: freePort(), GATEWAY_ADMIN_TOKEN: token }, folder)).out;
  const short = await doubts("hunter2");
  expect(short).toContain(
    "FAIL   admin token: GATEWAY_ADMIN_TOKEN must have 16 characters or more, and has 7",
  );
  expect(short).not.toContain("hunter2");
  const guessable = await doubts("gatewayadmin2026");
  expect(guessable).toMatch(/warn +admin token: GATEWAY_ADMIN_TOKEN is made of words or rows/i);
  expect(guessable).not.toContain("gatewayadmin2026");
  expect(await doubts("9f3c1ab2e07d4458a6c1f0b35d2e9781")).not.toContain("admin token");
});

test("doctor doubts a model that the host's own list does not have", async () => {
  configure(
    configured("v1", "good-key").replace(
      "model: m }",
      "model: m }, { host: h, model: n }, { host: h, model: mm }",
    ),
  );
  const { out, code } = await gateway(["doctor"], { PORT: freePort() }, folder);
  expect(code).toBe(0);
  expect(out).toContain("warn   host h: its list of 2 models does not have mm\n");
});

describe("models try", () => {
  const REPLY = {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  };
  const chunk = (rest: object) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", ...rest })}\n\n`;
  const HALF = chunk({
    choices: [{ index: 0, delta: { role: "assistant", content: "Hi." }, finish_reason: null }],
  });
  const WORDS = HALF + chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  const USAGE = chunk({ choices: [], usage: REPLY.usage });
  const stream = (text: string) => new Response(text, { headers: { "content-type": "text/event-stream" } });
  const refusal = (status: number, message: string) => Response.json({ error: { message } }, { status });

  /** By the model's name at the host. */
  const ANSWERS: Record<string, () => Response> = {
    good: () => stream(`${WORDS}${USAGE}data: [DONE]\n\n`),
    uncounted: () => stream(`${WORDS}data: [DONE]\n\n`),
    broken: () => stream(HALF),
    whole: () => Response.json(REPLY),
    misnamed: () => Response.json(REPLY, { headers: { "content-type": "text/event-stream" } }),
    renamed: () =>
      new Response(`${WORDS}${USAGE}data: [DONE]\n\n`, { headers: { "content-type": "application/json" } }),
    gone: () => refusal(404, "The model `gone` does not exist"),
    picky: () => refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
    keyless: () => refusal(401, "No such key: top-secret"),
  };
  const provider = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (!request.url.endsWith("/v1/chat/completions")) return new Response("nothing", { status: 404 });
      return ANSWERS[((await request.json()) as { model: string }).model]!();
    },
  });
  afterAll(() => provider.stop(true));

  const serving = (names: readonly string[], more = ""): string => `
hosts:
  - { id: h, base_url: "http://127.0.0.1:${provider.port}/v1", speaks: [chat.completions]${more} }
models:${names
    .map(
      (name) => `
  - { id: test/${name}, context_length: 1000, max_output_tokens: 100, price: { input: 1, output: 2 }, routes: [{ host: h, model: ${name} }] }`,
    )
    .join("")}
`;

  const OUTCOMES: [name: string, state: string, detail: RegExp, next: RegExp | null][] = [
    ["good", "ok", /^streams, first token in \d+ ms$/, null],
    ["uncounted", "warn", /but reports no usage$/, /counted by the gateway/],
    ["broken", "fail", /without its end mark/, null],
    ["whole", "warn", /^answers whole although/, /no_stream: true/],
    ["misnamed", "warn", /^answers whole although/, /no_stream: true/],
    ["renamed", "ok", /^streams, first token in \d+ ms$/, null],
    ["gone", "fail", /^answers 404: The model `gone` does not exist$/, /`model` \(gone\)/],
    ["picky", "fail", /^answers 400: Unsupported parameter/, /max_completion_tokens: true/],
    ["keyless", "fail", /^answers 401: No such key: \[hidden\]$/, /api_key/],
  ];

  test("asks each model once, and says of each how it answers and what to change", async () => {
    configure(
      serving(
        OUTCOMES.map(([name]) => name),
        ", api_key: top-secret",
      ),
    );
    const { out, err, code } = await gateway(["models", "try", "--json"], {}, folder);
    expect(code).toBe(1);
    expect(err).toContain("4 of 9 trials failed");
    const { findings } = JSON.parse(out);
    for (const [at, [name, state, detail, next]] of OUTCOMES.entries()) {
      expect(findings[at]).toMatchObject({ check: `test/${name} at h, chat.completions`, state });
      expect(findings[at].detail).toMatch(detail);
      if (next === null) expect(findings[at].next).toBeNull();
      else expect(findings[at].next).toMatch(next);
    }
  });

  test("can be asked about some models, and knows a host that cannot stream", async () => {
    configure(serving(["good", "whole"], ", quirks: { no_stream: true }"));
    const { out, code } = await gateway(["models", "try", "test/whole"], {}, folder);
    expect(code).toBe(0);
    expect(out).toMatch(/^ok {5}test\/whole at h, chat\.completions: answers whole in \d+ ms\n$/);
  });

  test("says when there is nothing to try", async () => {
    configure(serving(["good"]));
    const { err, code } = await gateway(["models", "try", "test/other"], {}, folder);
    expect([code, err.includes("no such model has a route")]).toEqual([2, true]);
    configure("");
    const bare = await gateway(["models", "try"], {}, folder);
    expect(bare.code).toBe(2);
    expect(bare.err).toContain("there is nothing to try");
    expect(bare.err).toContain("OPENAI_API_KEY");
  });
});

describe("doctor, of what a gateway shares with others", () => {
  const findings = async (more: string): Promise<{ check: string; state: string; detail: string }[]> => {
    configure(`${configured("v1", "good-key")}${more}\n`);
    return JSON.parse((await gateway(["doctor", "--json"], { PORT: freePort() }, folder)).out).findings;
  };

  test("a mail server that answers, one that refuses the password, and one that is not there", async () => {
    const server = await MailServer.start({
      onAuth: ({ password }, _, done) =>
        password === "right" ? done(null, { user: "postman" }) : done(new Error("no")),
      allowInsecureAuth: true,
    });
    const smtp = (port: number, password: string) =>
      `smtp: { host: 127.0.0.1, port: ${port}, user: postman, password: ${password}, from: a@gateway.test }`;
    const states = [];
    for (const row of [smtp(server.port, "right"), smtp(server.port, "canary-wrong"), smtp(1, "right")]) {
      const mail = (await findings(row)).find(({ check }) => check === "mail")!;
      expect(mail.detail).not.toContain("canary");
      states.push(mail.state);
    }
    await server.stop();
    expect(states).toEqual(["ok", "fail", "fail"]);
  });

  test("a database that is not there, its password unseen", async () => {
    const all = await findings("store: postgres://gateway:canary@127.0.0.1:1/gateway");
    const { state, detail } = all.find(({ check }) => check === "database")!;
    expect(state).toBe("fail");
    expect(detail).not.toContain("canary");
  });

  test.skipIf(!hasPostgres())("mistakes in `store` are said alike by the start and by doctor", async () => {
    const cluster = await Cluster.start();
    const refused = freePort();
    const cases: [string, string][] = [
      [`postgres://gateway@127.0.0.1:${cluster.port}/nope`, "has no database nope: create it"],
      [`postgres://nobody@127.0.0.1:${cluster.port}/postgres`, "does not let the user nobody in"],
      [
        `postgres://gateway:canary@127.0.0.1:${refused}/x`,
        `Nothing accepts a connection at 127.0.0.1:${refused}`,
      ],
      [
        "postgres://gateway:canary@database.invalid/x",
        "No address is known of the host database.invalid (DNS)",
      ],
    ];
    for (const [url, why] of cases) {
      const all = await findings(`store: ${url}`);
      const { detail } = all.find(({ check }) => check === "database")!;
      const { err, code } = await gateway(["start"], { PORT: "0", GATEWAY_ADMIN_TOKEN: ADMIN }, folder);
      expect([code, detail, err]).toEqual([
        1,
        expect.stringContaining(why),
        expect.stringContaining(`The gateway did not start: ${detail}`),
      ]);
      expect(detail + err).not.toContain("canary");
    }
    await cluster.stop();
  });

  test.skipIf(!hasPostgres())("a database that answers, with its version", async () => {
    const cluster = await Cluster.start();
    const all = await findings(`store: ${cluster.url()}`);
    await cluster.stop();
    expect(all.find(({ check }) => check === "database")).toMatchObject({
      state: "ok",
      detail: expect.stringMatching(/^PostgreSQL \d+\.\d+.*answers in \d+\.\d ms$/),
    });
  });
});
