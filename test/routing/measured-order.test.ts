import { describe, expect, test } from "bun:test";
import type { HostOrder } from "../../src/catalog/catalog.ts";
import { Health } from "../../src/routing/health.ts";
import { NO_OVERRIDES, sortedBy } from "../../src/routing/overrides.ts";
import { makePlan, type Plan } from "../../src/routing/plan.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";
import { Random } from "../sim/random.ts";
import { catalogOf, model, queryFor, route, tries } from "./world.ts";

const ROUTES = ["a", "b", "c"].map((id) => route(id));
const FREE = { ...ROUTES[0]!, free: true, price: null };
const CATALOG = catalogOf([
  model("x/one", ROUTES),
  model("x/quick", ROUTES, { order: "latency" }),
  model("x/free", [FREE]),
]);
const ATTACKER = "bal_attacker" as BalanceId;
const customer = (number: number) => `bal_${number}` as BalanceId;

/** What a host is like at a time: milliseconds to its first token, tokens a second after it. */
type Weather = (
  atMs: number,
) => Readonly<Record<string, { readonly firstTokenMs: number; readonly rate: number }>>;

/** A gateway's routing on simulated hosts: `perSecond` requests by turns of `customers`. */
class World {
  readonly clock = new ManualClock();
  readonly health = new Health(this.clock);
  private readonly random = new Random(7);
  private sent = 0;

  constructor(
    private readonly weather: Weather,
    private readonly order: HostOrder,
    private readonly customers = 20,
    private readonly name = "x/one",
  ) {}

  /** How many requests went to each host first. */
  run(forMs: number, perSecond: number): Record<string, number> {
    const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
    for (let at = 0; at < (forMs * perSecond) / 1_000; at++) {
      this.clock.advance(1_000 / perSecond);
      const by = customer(this.sent++ % this.customers);
      const [first] = this.plan({ by }).candidates;
      counts[first!.route.host.id]! += 1;
      if (first!.isExplored) this.health.noteExploration(first!.route, by);
      this.serve(first!.route.host.id, by);
    }
    return counts;
  }

  plan(more: Parameters<typeof queryFor>[1] = {}): Plan {
    const query = queryFor(this.name, { order: this.order, chance: () => this.random.next(), ...more });
    return makePlan({ ...query, catalog: CATALOG, routeState: this.health }, () => "") as Plan;
  }

  serve(host: string, by: BalanceId, free = false): void {
    const served = free ? FREE : ROUTES.find((one) => one.host.id === host)!;
    const { firstTokenMs, rate } = this.weather(this.clock.elapsedMs())[host]!;
    const noise = 0.8 + 0.4 * this.random.next();
    this.health.enter(served);
    this.health.observe(served, { kind: "served", firstTokenMs: firstTokenMs * noise, promptTokens: 10, by });
    this.health.streamEnded(served, { kind: "complete", tokens: 100, ms: (100_000 / rate) * noise, by });
  }
}

const CALM: Weather = () => ({
  a: { firstTokenMs: 900, rate: 200 },
  b: { firstTokenMs: 300, rate: 40 },
  c: { firstTokenMs: 600, rate: 80 },
});

describe("hosts in the order of what was measured", () => {
  test.each<[HostOrder, string]>([
    ["latency", "b"],
    ["throughput", "a"],
  ])("by %s, 95 of 100 requests go to the best", (order, best) => {
    const world = new World(CALM, order);
    world.run(60_000, 10);
    expect(world.run(300_000, 10)[best]! / 3_000).toBeGreaterThan(0.95);
  });

  test("a model may have an order of its own", () => {
    const world = new World(CALM, "listed", 20, "x/quick");
    world.run(60_000, 10);
    expect(world.run(60_000, 10).b! / 600).toBeGreaterThan(0.95);
    // What each process has measured is no place for a conversation that any of them may serve.
    expect(world.plan().home).toBeNull();
    expect(new World(CALM, "listed").plan().home?.host.id).toBe("a");
  });

  test("hosts that change places are found out within two minutes, and looked at all the time", () => {
    // Another host is the fastest every five minutes.
    const weather: Weather = (atMs) => {
      const best = Math.floor(atMs / 300_000) % 3;
      const at = (host: number) => ({ firstTokenMs: host === best ? 200 : 800, rate: 50 });
      return { a: at(0), b: at(1), c: at(2) };
    };
    const world = new World(weather, "latency");
    for (let spell = 0; spell < 6; spell++) {
      world.run(120_000, 10);
      const counts = world.run(180_000, 10);
      expect(counts["abc"[spell % 3]!]! / 1_800).toBeGreaterThan(0.9);
      for (const count of Object.values(counts)) expect(count).toBeGreaterThan(0);
    }
  });

  test("hosts of which nothing is known are in the listed order, and each is looked at by a few", () => {
    const world = new World(CALM, "latency");
    expect(tries(world.plan({ chance: () => 0 })).join(" ")).toBe("x/one@a x/one@b x/one@c");
    const explore = (number: number) => {
      const [first] = world.plan({ chance: () => 0.999, by: customer(number) }).candidates;
      if (first!.isExplored) world.health.noteExploration(first!.route, customer(number));
      return first!.route.host.id;
    };
    // Five customers look at each; no more within a minute, nor does one of them within 15 s.
    expect([1, 1, 1].map(explore)).toEqual(["b", "c", "a"]);
    expect([2, 2, 3, 3, 4, 4, 5, 5].map(explore).sort()).toEqual([..."bbbbcccc"]);
    expect([6, 7, 1].map(explore)).toEqual(["a", "a", "a"]);
    world.clock.advance(60_000);
    expect([6, 7].map(explore).sort()).toEqual(["b", "c"]);
  });

  test("a conversation that has a home is not sent away to look", () => {
    const world = new World(CALM, "latency");
    world.serve("a", customer(1));
    const sticky = { host: "c", hostModel: "c-name", model: "x/one" };
    expect(tries(world.plan({ chance: () => 0.999, sticky }))[0]).toBe("x/one@c");
    expect(world.plan({ chance: () => 0.999, sticky }).candidates[0]!.isExplored).toBeUndefined();
  });

  test("requests that are sorted by price never go to a more expensive host", () => {
    const world = new World(CALM, "latency");
    const overrides = sortedBy({ by: "price", acrossModels: false }, NO_OVERRIDES);
    const { candidates } = world.plan({ chance: () => 0.999, overrides });
    expect(candidates.map(({ isExplored }) => isExplored)).toEqual([undefined, undefined, undefined]);
  });

  test("a host that rests is not first, however fast it was", () => {
    const world = new World(CALM, "latency");
    world.run(60_000, 10);
    const failed = {
      kind: "failed",
      wholeHost: true,
      restMs: 30_000,
      by: customer(1),
      doubtful: false,
    } as const;
    world.health.observe(ROUTES[1]!, { ...failed, detail: "status 503" });
    expect(tries(world.plan({ chance: () => 0 }))[0]).toBe("x/one@c");
  });

  test("who sends to a slow host all the time does not keep the others from finding out that it is fast now", () => {
    const weather: Weather = (atMs) => ({
      a: { firstTokenMs: 500, rate: 50 },
      b: { firstTokenMs: atMs < 300_000 ? 900 : 100, rate: 50 },
      c: { firstTokenMs: 900, rate: 50 },
    });
    const world = new World(weather, "latency");
    const flood = (forMs: number) => {
      const counts = { a: 0, b: 0, c: 0 };
      for (let second = 0; second < forMs / 1_000; second++) {
        for (let request = 0; request < 20; request++)
          world.health.observe(ROUTES[1]!, {
            kind: "served",
            firstTokenMs: 60_000,
            promptTokens: 10,
            by: ATTACKER,
          });
        for (const [host, count] of Object.entries(world.run(1_000, 10))) counts[host as "a"] += count;
      }
      return counts;
    };
    flood(420_000);
    expect(flood(60_000).b / 600).toBeGreaterThan(0.9);
  });

  test("of two customers, one does not choose for the other", () => {
    const world = new World(CALM, "latency");
    world.serve("b", customer(1));
    world.serve("c", customer(1));
    for (let request = 0; request < 100; request++)
      world.health.observe(ROUTES[1]!, {
        kind: "served",
        firstTokenMs: 60_000,
        promptTokens: 10,
        by: ATTACKER,
      });
    const firstFor = (by: BalanceId) => tries(world.plan({ chance: () => 0, by }))[0];
    expect(firstFor(customer(1))).toBe("x/one@b");
    expect(firstFor(ATTACKER)).toBe("x/one@c");
  });

  test("free requests do not change the order of paid ones", () => {
    const world = new World(() => ({ a: { firstTokenMs: 1, rate: 1e6 } }), "latency");
    for (let at = 0; at < 1_000; at++) world.serve("a", customer(at), true);
    expect(world.health.speed(ROUTES[0]!)?.firstTokenMs ?? null).toBeNull();
    expect(world.health.speed(FREE)?.firstTokenMs).toBeLessThan(2);
  });

  test("long prompts at one host do not make it look slow for short ones", () => {
    const world = new World(CALM, "latency");
    for (let at = 0; at < 10; at++) {
      const by = customer(at);
      const served = (firstTokenMs: number, promptTokens: number) =>
        ({ kind: "served", firstTokenMs, promptTokens, by }) as const;
      world.health.observe(ROUTES[0]!, served(100, 10));
      world.health.observe(ROUTES[0]!, served(5_000, 100_000));
      world.health.observe(ROUTES[1]!, served(400, 10));
    }
    const chance = () => 0;
    expect(tries(world.plan({ chance, promptEstimate: 10 }))[0]).toBe("x/one@a");
    expect(tries(world.plan({ chance, promptEstimate: 90_000 }))[0]).toBe("x/one@b");
  });
});
