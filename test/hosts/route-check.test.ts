import { expect, test } from "bun:test";
import type { Route } from "../../src/catalog/catalog.ts";
import { Destinations } from "../../src/hosts/destination.ts";
import { checkRoute, type RouteCheck } from "../../src/hosts/route-check.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type Deed, ScriptedHosts } from "../fakes/scripted-hosts.ts";
import { route } from "../routing/world.ts";

const TOKEN = { index: 0, delta: { content: "Hi" }, finish_reason: null };
const STOP = { index: 0, delta: {}, finish_reason: "stop" };
const event = (data: object) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", ...data })}\n\n`;
const USAGE = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
const streams = (...events: object[]): Deed => ({
  does: "fails",
  status: 200,
  ms: 0,
  body: `${events.map(event).join("")}data: [DONE]\n\n`,
});

async function check(deed: Deed, one: Route = route("a")): Promise<RouteCheck> {
  const clock = new ManualClock();
  const deps = {
    transport: new ScriptedHosts(clock, () => deed),
    destinations: new Destinations(),
    clock,
    onFault: () => {},
  };
  const found = checkRoute(one, "chat.completions", deps);
  for (const ms of [20, 30_000]) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(ms);
  }
  return found;
}

const noStream = route("a", { quirks: { noStream: true } });

test.each<[string, Deed, Route, RouteCheck]>([
  [
    "streams, and says what it used",
    streams({ choices: [TOKEN] }, { choices: [STOP] }, USAGE),
    route("a"),
    { kind: "streamed", firstTokenMs: 0, usage: true },
  ],
  [
    "streams, and does not say what it used",
    streams({ choices: [TOKEN] }, { choices: [STOP] }),
    route("a"),
    { kind: "streamed", firstTokenMs: 0, usage: false },
  ],
  [
    "thinks for all its tokens",
    streams({ choices: [{ ...STOP, finish_reason: "length" }] }, USAGE),
    route("a"),
    { kind: "streamed", firstTokenMs: null, usage: true },
  ],
  [
    "answers whole although it was to stream",
    { does: "answers whole", ms: 0 },
    route("a"),
    { kind: "unstreamed" },
  ],
  ["answers whole as its quirk says", { does: "answers whole", ms: 20 }, noStream, { kind: "whole", ms: 20 }],
  [
    "breaks off",
    { does: "answers", ms: 0 },
    route("a"),
    { kind: "failed", status: 200, message: "the stream ended without its end mark" },
  ],
  [
    "fails",
    { does: "fails", status: 401, ms: 0, body: '{"error":{"message":"bad host-secret"}}' },
    route("a"),
    { kind: "failed", status: 401, message: "bad [hidden]" },
  ],
  [
    "fails behind a good status",
    streams({ error: { message: "no such model", code: 500 } }),
    route("a"),
    { kind: "failed", status: 200, message: "no such model" },
  ],
  [
    "refuses the connection",
    { does: "refuses" },
    route("a"),
    { kind: "failed", status: null, message: "refused: refused" },
  ],
  [
    "says nothing",
    { does: "nothing" },
    route("a"),
    { kind: "failed", status: null, message: "no whole answer within 30 s" },
  ],
])("a route that %s", async (_, deed, one, expected) => {
  expect(await check(deed, one)).toEqual(expected);
});
