import { expect, test } from "bun:test";
import { benchTransport } from "../../bench/transport.ts";

test("the transport's bench runs: four clients, each answer whole", async () => {
  const load = { rounds: 1, posts: 40, postsAtOnce: 4, streams: 4, eventsPerStream: 5, everyMs: 1 };
  const costs = await benchTransport(load);
  expect(costs.map(({ client }) => client)).toEqual([
    "http1Transport",
    "fetch",
    "floor: Bun socket",
    "floor: node:net",
  ]);
  for (const { usPerPost, usPerEvent } of costs)
    expect([usPerPost > 0, usPerEvent > 0]).toEqual([true, true]);
});
