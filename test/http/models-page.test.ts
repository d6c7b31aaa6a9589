import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Catalog, catalogOf, type Model } from "../../src/catalog/catalog.ts";
import { ModelsPages, modelQueryOf } from "../../src/http/pages/models-page.ts";
import { ManualClock } from "../fakes/clock.ts";
import { TestGateway } from "./test-gateway.ts";

/** The models for visitors without a key: docs/configuration.md, `catalog: public`. */
let gateway: TestGateway;
beforeEach(() => {
  gateway = new TestGateway();
  gateway.settings.catalogIsPublic = true;
});
afterEach(() => gateway.stop());

const wordsOf = (html: string): string =>
  html
    .replace(/<style>.*<\/style>/s, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ");

const base = () => gateway.deps.config.catalog;
/** The first of the test gateway's models, changed, and whether its route is free. */
function catalogWith(change: Partial<Model>, free = false): Catalog {
  const [first] = base().models.values();
  const model = { ...first!, routes: first!.routes.map((route) => ({ ...route, free })), ...change };
  for (const route of model.routes) if (free) gateway.deps.health.verify(route, true);
  return catalogOf({ models: new Map([[model.id, model]]), auto: new Map(), hosts: base().hosts });
}
const shown = (catalog: Catalog, query = ""): string =>
  new ModelsPages(catalog, gateway.deps.health, "http://g").list(modelQueryOf(new URLSearchParams(query)))
    .html;

test("names, ids, prices per million, context, ceiling and the address, without a key", async () => {
  const { status, text, headers } = await gateway.send("GET", "/models");
  expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const words = wordsOf(text);
  expect(words).toContain("2 models are served here. Send an id as model to http://gateway.test/v1 .");
  expect(words).toContain(
    "Model test/one test/one Input $1.00 Output $2.00 Cached $1.00 Context 1K Max output 100",
  );
  expect(words).toContain("Model test/two test/two Input $1.00 Output $3.50");
  expect(words.indexOf("test/one")).toBeLessThan(words.indexOf("test/two"));
  expect(words).toContain("gateway/auto:fast test/two test/one");
  expect(text).not.toContain("<script");
});

test("where the catalogue is not public, no model is shown, and the way to a key is", async () => {
  gateway.settings.catalogIsPublic = false;
  const { status, text } = await gateway.send("GET", "/models");
  expect(status).toBe(200);
  expect(text).not.toContain("test/one");
  expect(text).toContain('href="dashboard#/models"');
});

test("a free model says so, with the id that costs nothing; one without a price has none", () => {
  const words = wordsOf(shown(catalogWith({ price: null }, true)));
  expect(words).toContain("test/one test/one:free Input – Output – Cached –");
  expect(words.trim()).toEndWith("text tools Free");
});

const FOUND: [query: string, ids: string[]][] = [
  ["", ["test/one", "test/two", "test/seeing"]],
  ["search=SEE", ["test/seeing"]],
  ["search=nothing", []],
  ["can=tools+image", ["test/seeing"]],
  ["can=nonsense", ["test/one", "test/two", "test/seeing"]],
  ["context=2000", ["test/seeing"]],
  ["context=many", ["test/one", "test/two", "test/seeing"]],
  ["price=0.5", ["test/seeing"]],
  ["sort=output", ["test/seeing", "test/one", "test/two"]],
  ["sort=nonsense", ["test/one", "test/two", "test/seeing"]],
  ["sort=__proto__", ["test/one", "test/two", "test/seeing"]],
  ["sort=valueOf", ["test/one", "test/two", "test/seeing"]],
  ["sort=context&search=test", ["test/seeing", "test/one", "test/two"]],
  [`search=${"x".repeat(5_000)}`, []],
];

test.each(FOUND)("models are found and sorted by the address: %s", (query, ids) => {
  const [first] = base().models.values();
  const price = { ...first!.price!, input: 100_000_000, output: 100_000_000 } as Model["price"];
  const seeing: Model = {
    ...first!,
    id: "test/seeing",
    price,
    contextLength: 5_000,
    abilities: { inputs: ["text", "image"], tools: true, reasoning: false },
    routes: first!.routes.map(({ parameters: _, ...route }) => route),
  };
  const all = [...base().models.values(), seeing].map((one) => [one.id, one] as const);
  const html = shown(catalogOf({ models: new Map(all), auto: new Map(), hosts: base().hosts }), query);
  const list = html.slice(html.indexOf('<div class="list">'));
  expect([...list.matchAll(/href="models\/([^"]+)"/g)].map(([, id]) => id)).toEqual(ids);
  expect(html.includes("x".repeat(101))).toBe(false);
});

test("what is searched for stands in the form as text", async () => {
  const { text, headers } = await gateway.send(
    "GET",
    '/models?search="><script>alert(1)</script>&sort=input',
  );
  expect(text).not.toContain("<script");
  expect(text).toContain('<option value="input" selected>');
  expect(text).toContain("No model matches");
  expect(headers.get("content-security-policy")).toContain("form-action 'self'");
});

test("each model has a page with calls, whose only script is the one that its policy names", async () => {
  const { status, text, headers } = await gateway.send("GET", "/models/test/one");
  expect(status).toBe(200);
  expect(wordsOf(text)).toContain("Model test/one test/one");
  expect(text).toContain("http://gateway.test/v1/chat/completions");
  const script = /<script>(.*)<\/script>/s.exec(text)![1]!;
  const hash = new Bun.CryptoHasher("sha256").update(script).digest("base64");
  expect(headers.get("content-security-policy")).toContain(`script-src 'sha256-${hash}'`);
  expect((await gateway.send("GET", "/models/test/none")).json.error.code).toBe("unknown_model");
  gateway.settings.catalogIsPublic = false;
  const closed = await gateway.send("GET", "/models/test/one");
  expect(closed.text).not.toContain("test/one");
  expect(closed.text).toContain('href="../../dashboard#/models"');
});

test("names are text, whatever is in them", () => {
  const html = shown(catalogWith({ name: '<img src=x onerror="alert(1)">' }));
  expect(html).not.toContain("<img");
  expect(html).toContain("&#60;img");
});

test("is made once for all who ask within seconds, and again after that", async () => {
  const clock = new ManualClock();
  const timed = new TestGateway({ clock });
  timed.settings.catalogIsPublic = true;
  let requests = 0;
  const { health } = timed.deps;
  const usable = health.usable.bind(health);
  health.usable = (route) => {
    requests += 1;
    return usable(route);
  };
  try {
    await timed.send("GET", "/models");
    const once = requests;
    expect(once).toBeGreaterThan(0);
    await timed.send("GET", "/models");
    expect(requests).toBe(once);
    clock.advance(5_001);
    await timed.send("GET", "/models");
    expect(requests).toBe(2 * once);
  } finally {
    await timed.stop();
  }
});
