import { expect, test } from "bun:test";
import { type Catalog, catalogOf as openCatalog, type Route } from "../../../src/catalog/catalog.ts";
import { FreeRoutes } from "../../../src/routing/open-tier/open-tier.ts";
import { MINUTE_MS } from "../../../src/units/clock.ts";
import { ManualClock } from "../../fakes/clock.ts";

/** Free routes on played hosts, which answer probes as the test says. */
class World {
  readonly clock = new ManualClock();
  readonly verified = new Set<string>();
  readonly probed: string[] = [];
  readonly answers = new Map<string, (free: boolean) => void>();
  catalog: Catalog;
  readonly free: FreeRoutes;

  constructor(...routes: readonly Route[]) {
    this.catalog = catalogOf(routes);
    const health = {
      verify: (route: Route, is: boolean) =>
        void (is ? this.verified.add(route.model) : this.verified.delete(route.model)),
    };
    const probe = ({ model }: Route) => {
      this.probed.push(model);
      return new Promise<boolean>((resolve) => this.answers.set(model, resolve));
    };
    this.free = new FreeRoutes(health, probe, this.clock, () => this.catalog);
  }

  async answer(model: string, free: boolean): Promise<void> {
    this.answers.get(model)!(free);
    await settled();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a route is free once it has answered, and the start waits for that", async () => {
  const world = new World(route("a", "one"), route("b", "two"));
  let ready = false;
  void world.free.verify().then(() => {
    ready = true;
  });
  await world.answer("one", true);
  expect([...world.verified]).toEqual(["one"]);
  expect(ready).toBe(false);
  await world.answer("two", false);
  expect([...world.verified]).toEqual(["one"]);
  expect(ready).toBe(true);
});

test("a host is asked for one thing at a time", async () => {
  const world = new World(route("a", "one"), route("a", "two"), route("b", "three"));
  void world.free.verify();
  expect(world.probed).toEqual(["one", "three"]);
  await world.answer("one", true);
  expect(world.probed).toEqual(["one", "three", "two"]);
});

test("it is verified again every half hour, and later when it has served meanwhile", async () => {
  const world = new World(route("a", "one"));
  void world.free.verify();
  await world.answer("one", true);
  world.clock.advance(29 * MINUTE_MS);
  expect(world.probed).toHaveLength(1);
  world.free.served(route("a", "one"));
  world.clock.advance(29 * MINUTE_MS);
  expect(world.probed).toHaveLength(1);
  world.clock.advance(MINUTE_MS);
  expect(world.probed).toHaveLength(2);
  // It stays verified while it is asked.
  expect(world.verified.size).toBe(1);
});

test("the first doubt takes it out at once, and it is asked ever less often", async () => {
  const world = new World(route("a", "one"), route("b", "other"));
  void world.free.verify();
  await world.answer("one", true);
  await world.answer("other", true);
  world.free.doubt(route("a", "one"));
  expect([...world.verified]).toEqual(["other"]);
  const waits: number[] = [];
  for (let failures = 0; failures < 4; failures++) {
    const before = world.clock.elapsedMs();
    const probes = world.probed.length;
    while (world.probed.length === probes) world.clock.advance(1_000);
    waits.push(world.clock.elapsedMs() - before);
    await world.answer("one", false);
  }
  expect(waits).toEqual([15_000, 30_000, 60_000, 120_000]);
  expect(world.probed.filter((model) => model === "other")).toHaveLength(1);
});

test("a request that fails has the route probed, at most once within 15 s, and only the probe takes it out", async () => {
  const world = new World(route("a", "one"));
  void world.free.verify();
  await world.answer("one", true);
  world.clock.advance(15_000);
  world.free.failed(route("a", "one"));
  world.free.failed(route("a", "one"));
  expect([world.probed.length, world.verified.size]).toEqual([2, 1]);
  await world.answer("one", true);
  world.free.failed(route("a", "one"));
  world.clock.advance(14_999);
  expect([world.probed.length, world.verified.size]).toEqual([2, 1]);
  world.clock.advance(1);
  expect(world.probed).toHaveLength(3);
  await world.answer("one", false);
  expect(world.verified.size).toBe(0);
});

test("requests that fail do not bring the next probe of a route forward that is out", async () => {
  const world = new World(route("a", "one"));
  void world.free.verify();
  await world.answer("one", false);
  world.clock.advance(15_000);
  await world.answer("one", false);
  world.free.failed(route("a", "one"));
  world.clock.advance(29_999);
  expect(world.probed).toHaveLength(2);
  world.clock.advance(1);
  expect(world.probed).toHaveLength(3);
});

test("an answer that is older than the doubt does not count", async () => {
  const world = new World(route("a", "one"));
  void world.free.verify();
  world.free.doubt(route("a", "one"));
  await world.answer("one", true);
  expect(world.verified.size).toBe(0);
  world.clock.advance(15_000);
  await world.answer("one", true);
  expect(world.verified.size).toBe(1);
});

test("after a reload, what is gone or has moved is not free any more", async () => {
  const world = new World(route("a", "one"), route("b", "two"), route("c", "three"));
  void world.free.verify();
  for (const model of ["one", "two", "three"]) await world.answer(model, true);
  world.catalog = catalogOf([route("a", "one"), route("b", "two", "http://elsewhere")]);
  void world.free.verify();
  expect([...world.verified]).toEqual(["one"]);
  await world.answer("two", true);
  expect([...world.verified]).toEqual(["one", "two"]);
});

const route = (id: string, model: string, baseUrl = `http://${id}`): Route => ({
  host: {
    id,
    baseUrl,
    speaks: ["chat.completions"],
    apiKey: null,
    auth: "bearer",
    headers: {},
    onDisconnect: "cancel",
    quirks: {},
  },
  model,
  price: null,
  free: true,
});

const catalogOf = (routes: readonly Route[]): Catalog =>
  openCatalog({
    models: new Map([
      [
        "a/b",
        {
          id: "a/b",
          name: "AB",
          contextLength: 1_000,
          maxOutputTokens: 100,
          price: null,
          routes: [...routes],
        },
      ],
    ]),
    auto: new Map(),
    hosts: new Map(),
  });
