import { expect, test } from "bun:test";
import { workingAlternatives } from "../../src/routing/alternatives.ts";
import type { RouteState } from "../../src/routing/candidate.ts";
import { catalogOf, model, queryFor, route, routeStateOf } from "./world.ts";

const NAMES = ["a/one", "a/two", "a/three", "a/four", "a/five"];
const CATALOG = catalogOf(NAMES.map((id) => model(id, [route(id)])));

const namedWith = (attempts: Readonly<Record<string, "served" | "failed">>) => {
  const lastAttempt: RouteState["lastAttempt"] = ({ host }) => attempts[host.id] ?? null;
  const routeState = routeStateOf({ restMs: () => 0, lastAttempt });
  return workingAlternatives("a/one", { ...queryFor("a/one"), catalog: CATALOG, routeState });
};

test.each<[string, Readonly<Record<string, "served" | "failed">>, string[]]>([
  ["in the catalog's order while nothing is known", {}, ["a/two", "a/three", "a/four"]],
  ["those that served last come first", { "a/five": "served" }, ["a/five", "a/two", "a/three"]],
  ["those that failed last are not named", { "a/two": "failed", "a/three": "failed" }, ["a/four", "a/five"]],
  [
    "not even for want of others",
    { "a/two": "failed", "a/three": "failed", "a/four": "failed", "a/five": "failed" },
    [],
  ],
])("%s", (_what, attempts, expected) => expect(namedWith(attempts)).toEqual(expected));

test("one route that serves is enough", () => {
  const both = catalogOf([model("a/one", [route("x")]), model("a/two", [route("p"), route("q")])]);
  const lastAttempt: RouteState["lastAttempt"] = ({ host }) => (host.id === "q" ? "served" : "failed");
  const routeState = routeStateOf({ restMs: () => 0, lastAttempt });
  expect(workingAlternatives("a/one", { ...queryFor("a/one"), catalog: both, routeState })).toEqual([
    "a/two",
  ]);
});
