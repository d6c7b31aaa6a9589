import { expect, test } from "bun:test";
import { below, flap } from "./flapping.ts";
import { plotFlapping } from "./flapping-plot.ts";

test("with half of the hosts flapping, requests are served, hosts are spared, and first tokens come in time", async () => {
  const knowing = await flap({ seed: 3, minutes: 8 });
  const blind = await flap({ seed: 3, minutes: 8, blind: true });
  const { requests, served, attempts, firstTokensMs } = knowing.whole;
  expect(requests).toBeGreaterThan(8 * 60 * 15);
  expect(served / requests).toBeGreaterThan(0.995);
  expect(attempts / requests).toBeLessThan(1.1);
  expect(below(0.99, firstTokensMs)).toBeLessThan(4_000);
  // Hosts that never go down would prove nothing.
  expect(blind.whole.served / blind.whole.requests).toBeLessThan(0.99);
  expect(blind.whole.attempts / blind.whole.requests).toBeGreaterThan(1.4);
  const plot = plotFlapping(knowing, blind);
  expect(plot.match(/<polyline/g)).toHaveLength(6);
  expect(plot).not.toContain("NaN");
});

test("one seed is one run", async () => {
  const [one, two] = [await flap({ seed: 5, minutes: 1 }), await flap({ seed: 5, minutes: 1 })];
  expect(one).toEqual(two);
});
