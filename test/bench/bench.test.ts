import { expect, test } from "bun:test";
import { benchFailover } from "../../bench/failover.ts";
import { benchMacro, table } from "../../bench/macro.ts";
import { pieces } from "../../bench/micro.ts";

test("every micro bench computes the right thing, and so does its baseline", async () => {
  for (const piece of await pieces()) {
    piece.check();
    expect(piece.baseline()).toBeDefined();
    expect(piece.ours()).toBeDefined();
  }
});

test("the macro suite runs, small", async () => {
  const results = await benchMacro({ rounds: 1, requests: 200, streams: 8, streamRounds: 1 }, () => {});
  expect(results.map(({ who }) => who)).toContain("gateway");
  for (const result of results) expect(result.requestsPerSecond).toBeGreaterThan(0);
  expect(table(results)).toContain("| gateway |");
});

test("the failover suite runs, small: every failure reaches the next host", async () => {
  const results = await benchFailover(3);
  expect(results.map(({ failure }) => failure)).toContain("refused connection");
  for (const { p50 } of results) expect(p50).toBeGreaterThan(0);
});
