import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Catalog, catalogOf, type Model } from "../../src/catalog/catalog.ts";
import { modelsPage } from "../../src/http/pages/models-page.ts";
import { ManualClock } from "../fakes/clock.ts";
import { TestGateway } from "./test-gateway.ts";

/** The models for whoever has no key yet: docs/configuration.md, `catalog: public`. */
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

const base = () => gateway.deps.catalog();
/** The first of the test gateway's models, changed, and whether its route is free. */
function catalogWith(change: Partial<Model>, free = false): Catalog {
  const [first] = base().models.values();
  const model = { ...first!, routes: first!.routes.map((route) => ({ ...route, free })), ...change };
  for (const route of model.routes) if (free) gateway.deps.health.verify(route, true);
  return catalogOf({ models: new Map([[model.id, model]]), auto: new Map(), hosts: base().hosts });
}
const shown = (catalog: Catalog): string => modelsPage(catalog, gateway.deps.health, "http://g").html;

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

test("where the catalogue is not public, no model is told, and the way to a key is", async () => {
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

test("what a model takes and can is a tag, and a choice where only some have it", () => {
  const [first] = base().models.values();
  const seeing: Model = {
    ...first!,
    id: "test/seeing",
    abilities: { inputs: ["text", "image"], tools: true, reasoning: false },
    routes: first!.routes.map(({ parameters: _, ...route }) => route),
  };
  const all = [...base().models.values(), seeing].map((one) => [one.id, one] as const);
  const html = shown(catalogOf({ models: new Map(all), auto: new Map(), hosts: base().hosts }));
  expect(html).toContain('<article class="images tools">');
  expect(html).toContain('id="images"');
  expect(html).toContain(".reading:has(#images:checked) article:not(.images) { display: none; }");
  expect(html).not.toContain('id="audio"');
  // All three take tools.
  expect(html).not.toContain('id="tools"');
});

test("names are text, whatever is in them", () => {
  const html = shown(catalogWith({ name: '<img src=x onerror="alert(1)">' }));
  expect(html).not.toContain("<img");
  expect(html).toContain("&#60;img");
});

test("is made once for all who ask within seconds, and anew after that", async () => {
  const clock = new ManualClock();
  const timed = new TestGateway({ clock });
  timed.settings.catalogIsPublic = true;
  let asked = 0;
  const { health } = timed.deps;
  const usable = health.usable.bind(health);
  health.usable = (route) => {
    asked += 1;
    return usable(route);
  };
  try {
    await timed.send("GET", "/models");
    const once = asked;
    expect(once).toBeGreaterThan(0);
    await timed.send("GET", "/models");
    expect(asked).toBe(once);
    clock.advance(5_001);
    await timed.send("GET", "/models");
    expect(asked).toBe(2 * once);
  } finally {
    await timed.stop();
  }
});
