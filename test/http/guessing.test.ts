import { expect, test } from "bun:test";
import { refuse, refused } from "../../src/errors/refusal.ts";
import { AddressThrottle, throttlesOf } from "../../src/http/address.ts";
import type { HttpDeps } from "../../src/http/deps.ts";
import type { Exchange } from "../../src/http/endpoint.ts";
import { againstGuessing } from "../../src/http/identity.ts";
import { Networks } from "../../src/http/networks.ts";
import { ManualClock } from "../fakes/clock.ts";

const WRONG = refuse("invalid_api_key", "Wrong.");
const exchange = {
  address: "192.0.2.1",
  request: new Request("http://gateway.test/"),
} as unknown as Exchange;

function desk(): HttpDeps {
  const settings = { trustedProxies: new Networks() };
  const clock = new ManualClock();
  const deps = { throttles: throttlesOf(() => new AddressThrottle(clock)), settings: () => settings };
  return deps as unknown as HttpDeps;
}

test("of many guesses at once, no more are tried than of as many one by one", async () => {
  const deps = desk();
  let tried = 0;
  const outcomes = Array.from({ length: 200 }, () =>
    againstGuessing(exchange, deps, async () => {
      tried += 1;
      await new Promise((resolve) => setImmediate(resolve));
      return WRONG;
    }),
  );
  const codes = (await Promise.all(outcomes)).map((outcome) => (refused(outcome) ? outcome.code : "opened"));
  expect(tried).toBe(60);
  expect(codes.filter((code) => code === "rate_limited")).toHaveLength(140);
});

test("right secrets count for nothing", async () => {
  const deps = desk();
  for (let turn = 0; turn < 200; turn++)
    expect(await againstGuessing(exchange, deps, async () => "opened")).toBe("opened");
});
