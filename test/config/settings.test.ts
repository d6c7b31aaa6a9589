import { expect, test } from "bun:test";
import { type Price, ratesAt, writeRate } from "../../src/catalog/price.ts";
import { linksOf, listeningUrl } from "../../src/config/config.ts";
import { foundHosts } from "../../src/config/hosts-from-environment.ts";
import type { KnownModel } from "../../src/config/model-catalogue.ts";
import { GOOD, GOOD_ENV, goodConfig, SIMULATED_URL } from "./fixture.ts";

test("an empty file means the defaults of the contract", () => {
  const { catalog, trustedProxies, ...settings } = goodConfig("# nothing yet\n");
  expect(JSON.parse(JSON.stringify(settings))).toEqual({
    file: "gateway.yaml",
    baseUrl: null,
    dashboardUrl: null,
    statusUrl: null,
    contact: null,
    catalogIsPublic: false,
    modelsOfFile: {},
    defaults: {
      accountless: { rpmLimit: 60, tpmLimit: 400_000, dailyLimit: 5e9, monthlyLimit: 50e9 },
      account: { rpmLimit: 300, tpmLimit: 1_000_000, dailyLimit: 25e9, monthlyLimit: 250e9 },
    },
    lowCredit: null,
    openTier: { requestsPerDay: 50, accountlessRequestsPerDay: 20, rpm: 20 },
    setup: { accountlessKeysPerAddressPerHour: 60 },
    signIn: { mailsPerHour: 1_000 },
    generation: {
      firstTokenMs: 30_000,
      maxHosts: 3,
      chunkGapMs: 120_000,
      keepaliveMs: 15_000,
      totalMs: 1_200_000,
      writeOffTokens: 50,
      defaultMaxOutputTokens: 16_384,
    },
    routing: { order: "listed", hedgeMs: null },
    receipts: { keepDays: null, sign: false },
    operators: null,
    changes: { keepDays: 400 },
    payments: null,
    priceLists: {},
    webhooks: null,
    export: null,
    bodyBytes: 10_485_760,
    bodyMemoryBytes: 268_435_456,
    websocketMessageBytes: 524_288,
    unusedDays: 30,
    shutdownDelayMs: 0,
    drainMs: 30_000,
    graceMs: 86_400_000,
    store: { kind: "sqlite" },
    journal: "disk",
    workers: 1,
    durability: "strict",
    log: "off",
    metrics: null,
    smtp: null,
    wallet: { rpc: {} },
  });
  expect([...catalog.models.keys()]).toEqual(["sim/echo"]);
  expect(["127.0.0.1", "::1", "10.0.0.1"].map((address) => trustedProxies.has(address))).toEqual([
    true,
    true,
    false,
  ]);
});

test("a limit that is named wins, null lifts it, and the others keep their defaults", () => {
  const { accountless, account } = goodConfig(
    "defaults: { accountless: { rpm_limit: 5, daily_limit_usd: null, monthly_limit_usd: 0.000000001 } }",
  ).defaults;
  expect({ ...accountless }).toEqual({
    rpmLimit: 5,
    tpmLimit: 400_000,
    dailyLimit: null,
    monthlyLimit: 1 as never,
  });
  expect(account.rpmLimit).toBe(300);
});

test("a model's price is per million tokens, and its cache costs what its input costs unless named", () => {
  const model = goodConfig(GOOD, GOOD_ENV).catalog.models.get("openai/gpt-4o-mini");
  expect(model?.price).toEqual({
    input: 150_000_000,
    output: 600_000_000,
    cacheRead: 75_000_000,
    cacheWrite: 150_000_000,
    cacheWrites: { "1h": 300_000_000 },
  } as never);
  const named = GOOD.replace("cache_read: 0.075", "cache_write: 0.4, cache_write_1h: 0.35");
  const { cacheWrites } = goodConfig(named, GOOD_ENV).catalog.models.get("openai/gpt-4o-mini")!.price!;
  expect(cacheWrites).toEqual({ "1h": 350_000_000 } as never);
});

test("a price steps with the prompt, and has a line for each retention that is sold", () => {
  const text = GOOD.replace(
    /price: \{.*\}/,
    'price: { input: 4, output: 20, cache_write: { "30m": 5, "12h": 10 }, above: [{ prompt: 272000, input: 8, output: 30, cache_write: { "30m": 10, "12h": 20 } }] }',
  );
  const { price } = goodConfig(text, GOOD_ENV).catalog.models.get("openai/gpt-4o-mini")!;
  const [before, after] = [ratesAt(price!, 272_000), ratesAt(price!, 272_001)];
  expect([before.input, after.input, before.output, after.output]).toEqual([4e9, 8e9, 20e9, 30e9] as never);
  expect([before.cacheWrite, after.cacheWrite]).toEqual([5e9, 10e9] as never);
  const writes = (["5m", "30m", "1h", "12h"] as const).map((one) => writeRate(after, one));
  expect(writes).toEqual([10e9, 10e9, null, 20e9] as never);
});

test("a route's own price comes before the model's; a free route has none", () => {
  const text = `${GOOD}      - { host: openai, model: b, price: { input: 1, output: 2 } }
      - { host: openai, model: c, free: true }
`;
  const routes = goodConfig(text, GOOD_ENV).catalog.models.get("openai/gpt-4o-mini")!.routes;
  expect(routes.map(({ model, price, free }) => [model, price?.input ?? null, free])).toEqual([
    ["gpt-4o-mini-2024-07-18", 150_000_000 as never, false],
    ["b", 1_000_000_000 as never, false],
    ["c", null, true],
  ]);
});

test("a model without a price is published without one", () => {
  const text = GOOD.replace(/ {4}price:.*\n/, "");
  expect(goodConfig(text, GOOD_ENV).catalog.models.get("openai/gpt-4o-mini")?.routes[0]?.price).toBeNull();
});

test("a host's header names are lower-cased, its quirks and billing are taken over", () => {
  const text = GOOD.replace(
    "    api_key:",
    "    headers: { X-Team: blue }\n    on_disconnect: drain\n    auth: x-api-key\n    quirks: { no_stream_options: true }\n    api_key:",
  );
  expect(goodConfig(text, GOOD_ENV).catalog.hosts.get("openai")).toEqual({
    id: "openai",
    baseUrl: "https://api.openai.com/v1",
    speaks: ["chat.completions", "responses"],
    apiKey: "sk-1",
    auth: "x-api-key",
    headers: { "x-team": "blue" },
    onDisconnect: "drain",
    quirks: { noStreamOptions: true },
  });
});

test("what is known of a host's privacy and of a route's weights and parameters is taken over", () => {
  const text = `${GOOD}      - { host: openai, model: b, quantization: fp8, parameters: [temperature, tools] }
`;
  const stated = goodConfig(
    text.replace("    api_key:", "    zdr: true\n    data_collection: deny\n    api_key:"),
    GOOD_ENV,
  );
  expect(stated.catalog.hosts.get("openai")?.privacy).toEqual({
    collectsNothing: true,
    retainsNothing: true,
  });
  const [plain, known] = stated.catalog.models.get("openai/gpt-4o-mini")!.routes;
  expect([plain?.quantization, plain?.parameters]).toEqual([undefined, undefined]);
  expect([known?.quantization, known?.parameters]).toEqual(["fp8", new Set(["temperature", "tools"])]);
  expect(goodConfig(GOOD, GOOD_ENV).catalog.hosts.get("openai")?.privacy).toBeUndefined();
});

test("a file that lists hosts gets exactly those, whatever the environment offers", () => {
  const { catalog } = goodConfig(GOOD, { ...GOOD_ENV, ANTHROPIC_API_KEY: "k" });
  expect([...catalog.hosts.keys()]).toEqual(["openai"]);
  expect([...catalog.models.keys()]).toEqual(["openai/gpt-4o-mini"]);
  expect(catalog.auto.size).toBe(0);
});

test("a file that lists models alone may route them to hosts of the environment", () => {
  const text = GOOD.slice(GOOD.indexOf("models:"));
  const { catalog } = goodConfig(text, GOOD_ENV);
  expect(catalog.models.get("openai/gpt-4o-mini")?.routes[0]?.host.baseUrl).toBe("https://api.openai.com/v1");
});

test("a route to `sim` brings the simulated host along", () => {
  const text = `${GOOD}      - { host: sim, model: echo, free: true }\nauto: { free: [openai/gpt-4o-mini] }\n`;
  const { catalog } = goodConfig(text, GOOD_ENV);
  expect([...catalog.hosts.values()].map(({ id, baseUrl }) => [id, baseUrl])).toEqual([
    ["openai", "https://api.openai.com/v1"],
    ["sim", SIMULATED_URL],
  ]);
});

test("`sim/echo` in an automatic route brings itself and its host along, free only", () => {
  const { catalog } = goodConfig(`${GOOD}auto: { free: [sim/echo] }\n`, GOOD_ENV);
  expect([...catalog.hosts.keys()]).toEqual(["openai", "sim"]);
  expect(catalog.models.get("sim/echo")?.routes.map(({ host, free }) => [host.baseUrl, free])).toEqual([
    [SIMULATED_URL, true],
  ]);
});

test("an automatic route to a `sim/echo` that the file lists leaves it as listed", () => {
  const text = GOOD.replace("openai/gpt-4o-mini", "sim/echo");
  const { catalog } = goodConfig(`${text}auto: { fast: [sim/echo] }\n`, GOOD_ENV);
  expect([...catalog.hosts.keys()]).toEqual(["openai"]);
  expect(catalog.models.get("sim/echo")?.routes[0]?.host.id).toBe("openai");
});

test("`base_url: simulated` makes any host a simulated one", () => {
  const { catalog } = goodConfig(GOOD.replace("https://api.openai.com/v1", "simulated"), GOOD_ENV);
  expect(catalog.hosts.get("openai")).toMatchObject({ id: "openai", baseUrl: SIMULATED_URL });
});

test("the simulated model is sold only where nothing else is", () => {
  const known = {
    id: "a/m",
    name: "M",
    wireName: "m",
    contextLength: 100,
    maxOutputTokens: 10,
    abilities: null,
  };
  const price = { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 } as Price;
  const echo = (models: KnownModel[]) =>
    foundHosts({ env: { OPENAI_API_KEY: "k" }, simulatedUrl: SIMULATED_URL, knownModels: () => models })
      .models.find(({ id }) => id === "sim/echo")!
      .routes.map((route) => [route.free, route.price === null]);
  expect(echo([])).toEqual([
    [true, true],
    [false, false],
  ]);
  expect(echo([{ ...known, price, current: true }])).toEqual([[true, true]]);
});

test.each([
  ["https://api.openai.com/v1/", "https://api.openai.com/v1"],
  ["http://127.0.0.1:9/", "http://127.0.0.1:9"],
  ["https://h/v1//", "https://h/v1"],
  ["https://h/v1/?api-version=1/", "https://h/v1?api-version=1/"],
])("an address %s is read as %s", (written, read) => {
  const { catalog } = goodConfig(GOOD.replace("https://api.openai.com/v1", written), GOOD_ENV);
  expect(catalog.hosts.get("openai")?.baseUrl).toBe(read);
});

test("a short total_ms alone shortens the wait for the first token too", () => {
  const { generation } = goodConfig("generation: { total_ms: 2000 }\n");
  expect([generation.firstTokenMs, generation.totalMs]).toEqual([2_000, 2_000]);
});

test("a file that tunes limits alone keeps the found hosts and the simulated one", () => {
  const { catalog } = goodConfig("drain_ms: 5\n", { GROQ_API_KEY: "k" });
  expect([...catalog.hosts.keys()]).toEqual(["groq", "sim"]);
  expect(catalog.auto.get("free")).toEqual(["sim/echo"]);
});

test("customers can see where the operator is reached", () => {
  for (const contact of ["https://example.com/buy?from=gateway", "mailto:ops@example.com"]) {
    expect(goodConfig(`contact: ${contact}\n`).contact).toBe(contact);
  }
});

test("links default beneath the base address, and that to the address listened on", () => {
  expect(linksOf(goodConfig(""), "http://127.0.0.1:8080")).toEqual({
    baseUrl: "http://127.0.0.1:8080",
    dashboardUrl: "http://127.0.0.1:8080/dashboard",
    statusUrl: "http://127.0.0.1:8080/status",
    contact: null,
  });
  const text =
    "base_url: https://ai.example.com/gw\nstatus_url: https://status.example.com\ncontact: mailto:ops@example.com\n";
  expect(linksOf(goodConfig(text), "http://127.0.0.1:8080")).toEqual({
    baseUrl: "https://ai.example.com/gw",
    dashboardUrl: "https://ai.example.com/gw/dashboard",
    statusUrl: "https://status.example.com",
    contact: "mailto:ops@example.com",
  });
});

test.each([
  ["127.0.0.1", "http://127.0.0.1:8080"],
  ["0.0.0.0", "http://localhost:8080"],
  ["::", "http://localhost:8080"],
  ["::1", "http://[::1]:8080"],
])("listening on %s is shown as %s", (hostname, url) => {
  expect(listeningUrl(hostname, 8080)).toBe(url);
});

test.each([
  ["127.0.0.1:9090", "127.0.0.1", 9090],
  ["'[::1]:9090'", "::1", 9090],
  ["0.0.0.0:1", "0.0.0.0", 1],
])("metrics without a token are served at %s", (text, hostname, port) => {
  expect(goodConfig(`metrics: ${text}`).metrics).toEqual({ hostname, port });
});

test("workers, durability and a mail server are taken over", () => {
  const config = goodConfig(
    "store: sqlite\nworkers: 4\ndurability: relaxed\nsmtp: { host: mail, from: a@b.c, user: u, password: p }\n",
  );
  expect(config.store).toEqual({ kind: "sqlite" });
  expect([config.workers, config.durability]).toEqual([4, "relaxed"]);
  expect(config.smtp).toEqual({ host: "mail", port: 587, user: "u", password: "p", from: "a@b.c" });
});

test("a gateway on PostgreSQL keeps its journal on disk unless configured otherwise", () => {
  const url = "postgres://db/gateway";
  expect(goodConfig(`store: ${url}\n`)).toMatchObject({ store: { kind: "postgres", url }, journal: "disk" });
  expect(goodConfig(`store: ${url}\njournal: postgres\n`).journal).toBe("postgres");
});
