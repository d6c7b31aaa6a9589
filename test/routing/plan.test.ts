import { describe, expect, test } from "bun:test";
import type { RouteQuery, RouteState } from "../../src/routing/candidate.ts";
import { idMeantBy } from "../../src/routing/naming.ts";
import { readOverrides } from "../../src/routing/overrides.ts";
import { makePlan, type Plan } from "../../src/routing/plan.ts";
import { Speed } from "../../src/routing/speed.ts";
import { Refusal } from "../../src/units/errors/refusal.ts";
import { BALANCE, catalogOf, model, priceOf, queryFor, route, routeStateOf, tries } from "./world.ts";

const SUGGEST = () => "";
const CATALOG = catalogOf(
  [
    model("a/one", [
      route("costly", {
        price: priceOf(9),
        on: { privacy: { collectsNothing: true, retainsNothing: false } },
      }),
      route("cheap", { price: priceOf(1), quantization: "fp8", parameters: new Set(["temperature"]) }),
      route("middle", {
        price: priceOf(5, 3),
        on: { privacy: { collectsNothing: false, retainsNothing: true } },
      }),
      route("spare", { free: true, price: null }),
    ]),
    model("a/two", [route("middle", { price: priceOf(2) }), route("far", { price: priceOf(2) })], {
      contextLength: 100_000,
    }),
    model("a/unpriced", [route("cheap", { price: null })]),
    model("a/free", [route("spare", { free: true, price: null })]),
  ],
  {
    both: ["a/one", "a/two"],
    none: ["a/unpriced", "a/free"],
    one: ["a/one"],
  },
);

function plan(query: RouteQuery, routeState: RouteState = routeStateOf()): Plan {
  const made = makePlan({ ...query, catalog: CATALOG, routeState }, SUGGEST);
  if (made instanceof Refusal) throw new Error(made.message);
  return made;
}
function refusal(query: RouteQuery, routeState: RouteState = routeStateOf()): Refusal {
  const made = makePlan({ ...query, catalog: CATALOG, routeState }, SUGGEST);
  if (!(made instanceof Refusal)) throw new Error(`a plan: ${tries(made).join(" ")}`);
  return made;
}
const asking = (name: string, overrides: object, more: Partial<RouteQuery> = {}): RouteQuery => {
  const read = readOverrides(overrides, "chat.completions");
  if (read instanceof Refusal) throw new Error(read.message);
  return queryFor(name, { overrides: read, ...more });
};
const hosts = (provider: object, more: Partial<RouteQuery> = {}, routeState?: RouteState): string =>
  tries(plan(asking("a/one", { provider }, more), routeState))
    .map((name) => name.split("@")[1])
    .join(" ");

/** As if each of the named hosts had answered 20 streams so. */
const measured = (speeds: Record<string, { firstTokenMs: number; rate: number }>) =>
  routeStateOf({
    latencyMs: ({ host }) => speeds[host.id]?.firstTokenMs ?? null,
    throughput: ({ host }) => speeds[host.id]?.rate ?? null,
    speed({ host }) {
      const known = speeds[host.id];
      if (known === undefined) return null;
      const speed = new Speed();
      for (let index = 0; index < 20; index++) {
        speed.firstToken(known.firstTokenMs, 10, BALANCE, 0);
        speed.wrote(known.rate, 1_000, BALANCE, 0);
      }
      return speed;
    },
  });
const SPEEDS = measured({
  costly: { firstTokenMs: 900, rate: 10 },
  cheap: { firstTokenMs: 200, rate: 30 },
  middle: { firstTokenMs: 400, rate: 90 },
});

describe("provider orders and filters the hosts", () => {
  const table: [string, object, string][] = [
    ["nothing: the operator's order, free routes never", {}, "costly cheap middle"],
    [
      "order comes first, the others after it",
      { order: ["middle", "nobody", "CHEAP"] },
      "middle cheap costly",
    ],
    ["order without fallbacks is all there is", { order: ["middle"], allow_fallbacks: false }, "middle"],
    ["no fallbacks: the first host alone", { allow_fallbacks: false }, "costly"],
    ["only", { only: ["middle", "cheap"] }, "cheap middle"],
    ["ignore", { ignore: ["costly"] }, "cheap middle"],
    ["sort by price, prompt and completion together", { sort: "price" }, "cheap middle costly"],
    ["order wins over sort", { sort: "price", order: ["costly"] }, "costly cheap middle"],
    ["at most this price", { max_price: { prompt: 5 } }, "cheap middle"],
    ["at most these prices", { max_price: { prompt: 5, completion: 2 } }, "cheap"],
    ["quantization", { quantizations: ["fp8"] }, "cheap"],
    ["an unstated quantization is unknown", { quantizations: ["unknown"] }, "costly middle"],
    [
      "hosts that are known not to collect, or to retain nothing",
      { data_collection: "deny" },
      "costly middle",
    ],
    ["zero data retention", { zdr: true }, "middle"],
    ["allow is no filter", { data_collection: "allow", zdr: false }, "costly cheap middle"],
    ["sort by latency", { sort: "latency" }, "cheap middle costly"],
    ["sort by throughput", { sort: "throughput" }, "middle cheap costly"],
    ["slower than preferred: later, not left out", { preferred_max_latency: 0.5 }, "cheap middle costly"],
    [
      "both preferences",
      { preferred_max_latency: 0.5, preferred_min_throughput: { p90: 50 } },
      "middle costly cheap",
    ],
  ];
  for (const [name, provider, expected] of table) {
    test(name, () => expect(hosts(provider, {}, SPEEDS)).toBe(expected));
  }

  test("hosts that were not measured come last in a sort, and meet every preference", () => {
    const routeState = measured({ cheap: { firstTokenMs: 700, rate: 5 } });
    expect(hosts({ sort: "latency" }, {}, routeState)).toBe("cheap costly middle");
    expect(hosts({ preferred_max_latency: 0.5 }, {}, routeState)).toBe("costly middle cheap");
  });

  test("require_parameters leaves hosts that obey every parameter; what all hosts take is not asked for", () => {
    const read = ["model", "messages", "input", "instructions", "system", "stream", "stream_options"];
    const ceilings = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    const routing = ["models", "provider", "route", "fallbacks"];
    const members = [...read, ...ceilings, ...routing, "temperature"];
    expect(hosts({ require_parameters: true }, { members })).toBe("costly cheap middle");
    expect(hosts({ require_parameters: true }, { members: [...members, "tools"] })).toBe("costly middle");
  });

  const leavingNone: [string, object][] = [
    ["only", { only: ["nobody"] }],
    ["ignore", { ignore: ["costly", "cheap", "middle"] }],
    ["zdr", { zdr: true, only: ["cheap"] }],
    ["data_collection", { data_collection: "deny", only: ["cheap"] }],
    ["quantizations", { quantizations: ["int4"] }],
    ["max_price", { max_price: { completion: 0.5 } }],
    ["order", { order: ["nobody"], allow_fallbacks: false }],
  ];
  for (const [filter, provider] of leavingNone) {
    test(`a filter that leaves no host is named: ${filter}`, () => {
      for (const name of ["a/one", "gateway/auto:one"]) {
        const { code, message, details } = refusal(asking(name, { provider }));
        expect(code).toBe("invalid_request");
        expect(details.param).toBe(`provider.${filter}`);
        expect(message).toContain(`\`provider.${filter}\` leaves no host that serves a/one`);
      }
    });
  }
});

describe("hosts that cannot stream", () => {
  const whole = { quirks: { noStream: true } };
  const mixed = catalogOf(
    [
      model("a/mixed", [
        route("whole", { price: priceOf(1), ...whole }),
        route("costly", { price: priceOf(9) }),
        route("other", { price: priceOf(2), on: whole }),
        route("cheap", { price: priceOf(3) }),
      ]),
      model("a/whole", [route("only", whole)]),
      model("a/last", [route("streams")]),
    ],
    { both: ["a/whole", "a/last"] },
  );
  const order = (
    name: string,
    provider: object,
    more: Partial<RouteQuery> = {},
    routeState: RouteState = routeStateOf(),
  ): string => {
    const made = makePlan(
      { ...asking(name, { provider }, { stream: true, ...more }), catalog: mixed, routeState },
      SUGGEST,
    );
    return (made as Plan).candidates.map(({ route: { host } }) => host.id).join(" ");
  };

  test.each<[string, object, Partial<RouteQuery>, string]>([
    ["come after those that can", {}, {}, "costly cheap whole other"],
    ["keep their place where no stream is wanted", {}, { stream: false }, "whole costly other cheap"],
    ["are last at any price", {}, { order: "price" }, "cheap costly whole other"],
    ["are first where the client sorts by price", { sort: "price" }, {}, "whole other cheap costly"],
    ["are first where the client names them first", { order: ["other"] }, {}, "other costly cheap whole"],
    ["come after those that can in a filter too", { ignore: ["costly"] }, {}, "cheap whole other"],
    ["are not the one host that is asked alone", { allow_fallbacks: false }, {}, "costly"],
  ])("%s", (_name, provider, more, expected) => {
    expect(order("a/mixed", provider, more)).toBe(expected);
  });

  test("come before those that rest", () => {
    const down = routeStateOf({ down: ["costly", "cheap"] });
    expect(order("a/mixed", {}, {}, down)).toBe("whole other");
  });

  test("share by price only what those that stream cannot serve", () => {
    const firsts = Array.from(
      { length: 1_000 },
      (_, draw) => order("a/mixed", {}, { order: "price", chance: () => draw / 1_000 }).split(" ")[0],
    );
    expect(new Set(firsts)).toEqual(new Set(["cheap", "costly"]));
    const down = ["costly", "cheap"];
    const left = order("a/mixed", {}, { order: "price" }, routeStateOf({ down }));
    expect(left.split(" ").sort()).toEqual(["other", "whole"]);
  });

  test("come before the next model, which the client did not want first", () => {
    expect(order("gateway/auto:both", {})).toBe("only streams");
  });

  test("are left again by a conversation once one that streams works", () => {
    const sticky = { host: "whole", hostModel: "whole-name", model: "a/mixed" };
    expect(order("a/mixed", {}, { sticky })).toBe("costly cheap whole other");
    expect(order("a/mixed", {}, { sticky, stream: false })).toBe("whole costly other cheap");
    expect(order("a/mixed", {}, { sticky }, routeStateOf({ down: ["costly", "cheap"] }))).toBe("whole other");
  });
});

describe("hosts that rest", () => {
  const four = catalogOf([model("a/four", [route("a"), route("b"), route("c"), route("d")])]);
  const table: [string, string[], string][] = [
    ["none: the operator's order", [], "a b c d"],
    ["one is left out", ["a"], "b c d"],
    ["two are left out", ["a", "c"], "b d"],
    ["of three, the one that recovers first is tried last", ["b", "a", "c"], "d b"],
    ["of four, two are tried", ["d", "c", "b", "a"], "d c"],
  ];
  for (const [name, down, expected] of table) {
    test(`never more than half of a model's are left out: ${name}`, () => {
      const made = makePlan(
        { ...queryFor("a/four"), catalog: four, routeState: routeStateOf({ down }) },
        SUGGEST,
      ) as Plan;
      expect(made.candidates.map(({ route: { host } }) => host.id).join(" ")).toBe(expected);
    });
  }

  test("the only host is never left out", () => {
    const only = asking("a/one", { provider: { only: ["cheap"] } });
    expect(tries(plan(only, routeStateOf({ down: ["cheap"] })))).toEqual(["a/one@cheap"]);
  });
});

describe("order: price", () => {
  const firsts = (
    prices: readonly number[],
    more: Partial<RouteState> & { down?: string[] } = {},
  ): number[] => {
    const catalog = catalogOf([
      model(
        "a/m",
        prices.map((price, at) => route(`h${at}`, { price: priceOf(price) })),
      ),
    ]);
    const counts = prices.map(() => 0);
    for (let draw = 0; draw < 1_000; draw++) {
      const query = queryFor("a/m", { order: "price", chance: () => draw / 1_000 });
      const made = makePlan({ ...query, catalog, routeState: routeStateOf(more) }, SUGGEST) as Plan;
      counts[Number(made.candidates[0]!.route.host.id.slice(1))]! += 1;
    }
    return counts;
  };

  /** For 1,000 requests, within four standard deviations. */
  const expectShares = (counts: readonly number[], shares: readonly number[]) => {
    for (const [at, share] of shares.entries()) {
      const spread = 4 * Math.sqrt(1_000 * share * (1 - share));
      expect(Math.abs(counts[at]! - 1_000 * share)).toBeLessThanOrEqual(spread);
    }
  };

  test("hosts of one price share the requests", () =>
    expectShares(
      firsts([1, 1, 1, 1]),
      [1, 1, 1, 1].map((one) => one / 4),
    ));
  test("twice the price, a quarter of the requests", () => expectShares(firsts([2, 1]), [0.2, 0.8]));
  test("a host that rests gets none", () => expectShares(firsts([1, 1, 1], { down: ["h0"] }), [0, 0.5, 0.5]));
  test("what costs nothing does not get everything, nor divides by it", () => {
    expectShares(firsts([0, 0]), [0.5, 0.5]);
  });
  test("after the first, the cheapest", () => {
    const orders = new Set<string>();
    for (let draw = 0; draw < 1_000; draw++)
      orders.add(hosts({}, { order: "price", chance: () => draw / 1_000 }));
    expect([...orders].sort()).toEqual(["cheap middle costly", "costly cheap middle", "middle cheap costly"]);
  });
  test("a conversation has its host by itself, and only those of a host that rests move", () => {
    const homes = (down: string[]) =>
      Array.from(
        { length: 1_000 },
        (_, conversation) =>
          hosts({}, { order: "price", conversation: conversation as never }, routeStateOf({ down })).split(
            " ",
          )[0]!,
      );
    const [all, without] = [homes([]), homes(["cheap"])];
    expect(homes([])).toEqual(all);
    for (const [at, home] of all.entries())
      if (home === "cheap") expect(without[at]).not.toBe("cheap");
      else expect(without[at]).toBe(home);
  });
  test("the request's own order and sort are not drawn", () => {
    const drawn = { order: "price", chance: () => 0.9999 } as const;
    expect(hosts({ sort: "price" }, drawn)).toBe("cheap middle costly");
    expect(hosts({ order: ["middle"] }, drawn)).toStartWith("middle");
  });
});

describe("several models", () => {
  test("each gets one of the tries before one gets its second", () => {
    expect(tries(plan(asking("a/one", { models: ["a/two"] })))).toEqual([
      "a/one@costly",
      "a/one@cheap",
      "a/two@middle",
      "a/one@middle",
      "a/two@far",
    ]);
  });
  test("a model that is named twice is planned once", () => {
    expect(
      tries(plan(asking("a/two", { models: ["a/two", "gateway/auto:both", "a/two"] }))).toSorted(),
    ).toEqual(["a/one@cheap", "a/one@costly", "a/one@middle", "a/two@far", "a/two@middle"]);
  });
  test("whatever keeps one from being planned, the next is", () => {
    for (const name of ["a/unpriced", "gateway/auto:none"]) {
      expect(tries(plan(asking(name, { models: ["a/two"] })))).toEqual(["a/two@middle", "a/two@far"]);
    }
    const allowed = asking("a/one", { models: ["a/two"] }, { allowedModels: ["a/two"] });
    expect(tries(plan(allowed))).toEqual(["a/two@middle", "a/two@far"]);
  });
  test("hosts that are known to fail come after the next model", () => {
    expect(
      tries(
        plan(asking("a/one", { models: ["a/two"] }), routeStateOf({ down: ["costly", "cheap", "middle"] })),
      )[0],
    ).toBe("a/two@far");
  });
  test("a filter counts against a model only if it leaves none of them", () => {
    expect(tries(plan(asking("a/two", { models: ["a/one"], provider: { only: ["cheap"] } })))).toEqual([
      "a/one@cheap",
    ]);
    expect(
      refusal(asking("a/two", { models: ["a/one"], provider: { only: ["nobody"] } })).details.param,
    ).toBe("provider.only");
  });
  test("an unknown one is said, wherever it stands", () => {
    expect(refusal(asking("a/one", { models: ["a/nothing"] })).code).toBe("unknown_model");
  });
  test("a sort without partition compares the hosts of all models", () => {
    const { candidates } = plan(
      asking("a/one", { models: ["a/two"], provider: { sort: { by: "price", partition: "none" } } }),
    );
    expect(candidates.map(({ price }) => price.input / 1e9)).toEqual([1, 2, 2, 5, 9]);
  });
  test("a fallback model may come first because it meets the preference", () => {
    const routeState = measured({
      costly: { firstTokenMs: 900, rate: 1 },
      cheap: { firstTokenMs: 900, rate: 1 },
      middle: { firstTokenMs: 900, rate: 1 },
    });
    expect(
      tries(
        plan(asking("a/one", { models: ["a/two"], provider: { preferred_max_latency: 0.5 } }), routeState),
      )[0],
    ).toBe("a/two@far");
  });
  test("any failure moves on, a host's verdict on the request too; otherwise the client receives it", () => {
    expect(plan(asking("a/one", { models: ["a/two"] })).movesOn).toBe("always");
    expect(plan(asking("a/one", { models: ["a/one"] })).movesOn).toBe("never");
    expect(plan(queryFor("a/one")).movesOn).toBe("never");
    expect(plan(queryFor("gateway/auto:both")).movesOn).toBe("unfit");
  });
});

describe("Auto", () => {
  const auto = (more: Partial<RouteQuery> = {}) => queryFor("gateway/auto:both", more);

  test("tries the candidates in the operator's order", () => {
    const made = plan(auto());
    expect(made.auto).toEqual({ skipped: [] });
    expect(tries(made).slice(0, 3)).toEqual(["a/one@costly", "a/one@cheap", "a/two@middle"]);
  });

  const skips: [string, RouteQuery, RouteState][] = [
    ["is unavailable", auto(), routeStateOf({ down: ["costly", "cheap", "middle"] })],
    ["is not allowed on the key", auto({ allowedModels: ["a/two"] }), routeStateOf()],
    [
      "is not allowed on a key that names Auto",
      auto({ allowedModels: ["gateway/auto:both", "a/two"] }),
      routeStateOf(),
    ],
    ["is too small for the prompt", auto({ promptEstimate: 1_001 }), routeStateOf()],
  ];
  for (const [name, query, routeState] of skips) {
    test(`skips a candidate that ${name}`, () => {
      const { candidates, auto: walked } = plan(query, routeState);
      expect([...new Set(candidates.map(({ model: { id } }) => id))]).toEqual(["a/two"]);
      expect(walked!.skipped).toEqual([expect.stringMatching(/^a\/one \(.+\)$/)]);
    });
  }

  const unresolvable: [string, RouteQuery, RouteState, string][] = [
    ["unavailable", auto(), routeStateOf({ restMs: () => 1 }), "a/one (unavailable), a/two (unavailable)"],
    [
      "not allowed",
      auto({ allowedModels: [] }),
      routeStateOf(),
      "a/one (not allowed on this key), a/two (not allowed on this key)",
    ],
    [
      "cannot price, only free",
      queryFor("gateway/auto:none"),
      routeStateOf(),
      "a/unpriced (cannot price the request), a/free (cannot price the request)",
    ],
    [
      "a mixture",
      auto({ promptEstimate: 1_001 }),
      routeStateOf({ restMs: ({ host }) => (["costly", "cheap"].includes(host.id) ? 0 : 1) }),
      "a/one (context too small for the prompt), a/two (unavailable)",
    ],
  ];
  for (const [name, query, routeState, reasons] of unresolvable) {
    test(`says why each candidate was skipped: ${name}`, () => {
      const { code, message } = refusal(query, routeState);
      expect(code).toBe("auto_unresolvable");
      expect(message).toContain(reasons);
    });
  }

  test("where only the prompt's length is in the way, its exact count decides: the estimate may be wrong", () => {
    const { candidates, auto: walked } = plan(auto({ promptEstimate: 1_000_000 }));
    expect(candidates.map(({ model: { id } }) => id)).toContain("a/two");
    expect(walked!.skipped).toEqual([
      "a/one (context too small for the prompt)",
      "a/two (context too small for the prompt)",
    ]);
  });

  test("where candidates rest, it says when the first of them is back; where time changes nothing, not to repeat", () => {
    const unavailable = (restMs: number) => refusal(auto(), routeStateOf({ restMs: () => restMs })).details;
    expect([unavailable(1), unavailable(60_000)]).toEqual([{ retryAfterS: 1 }, { retryAfterS: 60 }]);
    // Official clients replace a wait of more than a minute with one of half a second.
    expect(unavailable(60_001)).toEqual({ retryAfterS: 61, shouldRetry: false });
    expect(refusal(queryFor("gateway/auto:none")).details).toMatchObject({ shouldRetry: false });
  });
  test("a model that is named directly bypasses it: its failing hosts are tried all the same", () => {
    expect(tries(plan(queryFor("a/one"), routeStateOf({ restMs: () => 1 })))).toEqual([
      "a/one@costly",
      "a/one@cheap",
    ]);
  });
  test("an unknown variant is an unknown model", () => {
    expect(idMeantBy("gateway/auto:nothing", CATALOG, SUGGEST)).toMatchObject({ code: "unknown_model" });
  });
});

describe("the Open Tier", () => {
  test("only verified free routes, at no price, and never a paid one", () => {
    const { tier, candidates } = plan(queryFor("a/one:free"));
    expect([
      tier,
      candidates.map(({ route: { host } }) => host.id),
      candidates[0]!.price.input as number,
    ]).toEqual(["open", ["spare"], 0]);
    for (const routeState of [
      routeStateOf({ verifiedFree: () => false }),
      routeStateOf({ down: ["spare"] }),
    ]) {
      expect(refusal(queryFor("a/one:free"), routeState).code).toBe("no_free_route");
      expect(refusal(queryFor("gateway/auto:free"), routeState).code).toBe("no_free_route");
    }
  });
  test("a key that may call other models alone is refused by its list, also where the route is free", () => {
    const { code, message } = refusal(queryFor("a/one:free", { allowedModels: ["a/two"] }));
    expect([code, message]).toEqual(["invalid_request", expect.stringContaining("It may call: a/two.")]);
  });
  test("a model without a free route is distinguished from one whose route is not verified", () => {
    const none = refusal(queryFor("a/two:free"));
    expect(none).toMatchObject({ code: "no_free_route", details: { shouldRetry: false } });
    expect(none.message).toStartWith("There is no free route for a/two:free here.");
    const unverified = refusal(queryFor("a/one:free"), routeStateOf({ verifiedFree: () => false }));
    expect(unverified.message).toStartWith("No verified free route serves a/one:free right now.");
  });
  test("gateway/auto:free skips models that the prompt does not fit, and goes on where a host finds so", () => {
    const free = () => [route("spare", { free: true, price: null })];
    const catalog = catalogOf(
      [model("a/small", free(), { contextLength: 100 }), model("a/big", free(), { contextLength: 1_000 })],
      { free: ["a/small", "a/big"] },
    );
    const planned = (name: string, promptEstimate: number) => {
      const made = makePlan(
        { ...queryFor(name, { promptEstimate }), catalog, routeState: routeStateOf() },
        SUGGEST,
      );
      if (made instanceof Refusal) throw new Error(made.message);
      return [made.movesOn, ...tries(made)];
    };
    expect(planned("gateway/auto:free", 100)).toEqual(["unfit", "a/small@spare", "a/big@spare"]);
    expect(planned("gateway/auto:free", 101)).toEqual(["unfit", "a/big@spare"]);
    // Estimates err, and the count will show it.
    expect(planned("gateway/auto:free", 9_999)).toEqual(["unfit", "a/small@spare", "a/big@spare"]);
    expect(planned("a/small:free", 101)).toEqual(["never", "a/small@spare"]);
  });
  test("a paid plan never holds a free route", () => {
    expect(plan(queryFor("a/one")).candidates.every(({ route }) => !route.free)).toBe(true);
    expect(refusal(queryFor("a/free")).message).toContain("a/free:free");
  });
});
