import { describe, expect, test } from "bun:test";
import { RequestLog } from "../../src/telemetry/request-log.ts";
import { TraceExporter } from "../../src/telemetry/trace-exporter.ts";
import { systemRandom } from "../../src/units/random.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import { doneOf } from "./done.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("the request log", () => {
  test("writes one batch at a time, and keeps a bounded number for a slow reader", async () => {
    const clock = new ManualClock();
    const written: string[] = [];
    const slow = gate();
    const log = new RequestLog(
      async (text) => {
        written.push(text);
        await slow.passed;
      },
      clock,
      () => true,
    );
    log.add(doneOf("first"));
    clock.advance(100);
    for (let index = 0; index < 10_005; index++) log.add(doneOf(`${index}`));
    clock.advance(1_000);
    expect(written).toHaveLength(1);
    expect(log.dropped).toBe(5);
    slow.open();
    await settled();
    expect(written.join("").trimEnd().split("\n")).toHaveLength(10_001);
  });

  test("is written to its end before the process ends, also where a batch is under way", async () => {
    const clock = new ManualClock();
    const slow = gate();
    let lines = 0;
    const log = new RequestLog(
      async (text) => {
        await slow.passed;
        lines += text.trimEnd().split("\n").length;
      },
      clock,
      () => true,
    );
    log.add(doneOf("first"));
    clock.advance(100);
    log.add(doneOf("second"));
    const ended = log.flush();
    slow.open();
    await ended;
    expect(lines).toBe(2);
  });

  test("a reader that is gone costs lines and nothing else", async () => {
    const clock = new ManualClock();
    const log = new RequestLog(
      async () => Promise.reject(new Error("EPIPE")),
      clock,
      () => true,
    );
    log.add(doneOf("lost"));
    await log.flush();
    expect(log.dropped).toBe(1);
  });

  test("a model that only the client knows is not written", async () => {
    let text = "";
    const log = new RequestLog(
      async (some) => void (text += some),
      new ManualClock(),
      (model) => model === "a/b",
    );
    log.add(doneOf("one", { modelRequested: "what a secret" }));
    await log.flush();
    expect(JSON.parse(text).model_requested).toBeNull();
  });
});

describe("traces", () => {
  const SETTINGS = {
    url: "http://c/v1/traces",
    headers: {},
    resource: {},
    asksParent: true,
    ratio: 1,
    delayMs: 1_000,
  };

  function exporter(answers: readonly (number | "gone")[]) {
    const clock = new ManualClock();
    const posts: string[] = [];
    const known = { model: () => true, server: () => null };
    const fetch = async (_url: string, init: RequestInit): Promise<Response> => {
      const answer = answers[Math.min(posts.push(String(init.body)), answers.length) - 1]!;
      if (answer === "gone") throw new Error("ECONNREFUSED");
      return new Response(null, { status: answer });
    };
    return {
      clock,
      posts,
      exporter: new TraceExporter(SETTINGS, { clock, random: systemRandom, known, fetch }),
    };
  }

  test("leave in batches; what is not recorded does not leave", async () => {
    const { clock, posts, exporter: traces } = exporter([200]);
    for (let index = 0; index < 10; index++) traces.add(doneOf(`${index}`));
    traces.add(doneOf("unrecorded", { trace: { ...doneOf("").trace!, sampled: false } }));
    expect(posts).toHaveLength(0);
    clock.advance(1_000);
    await settled();
    expect(posts).toHaveLength(1);
    expect(JSON.parse(posts[0]!).resourceSpans[0].scopeSpans[0].spans).toHaveLength(10);
  });

  test.each<[string, readonly (number | "gone")[], number, number]>([
    ["is gone", ["gone"], 4, 1],
    ["is busy for a while", [503, 429, 200], 3, 0],
    ["refuses", [400], 1, 1],
    ["redirects elsewhere", [307], 1, 1],
  ])("to a collector that %s are given up after a few tries", async (_what, answers, tries, dropped) => {
    const { clock, posts, exporter: traces } = exporter(answers);
    traces.add(doneOf("one"));
    for (let second = 0; second < 60; second++) {
      clock.advance(1_000);
      await settled();
    }
    expect([posts.length, traces.dropped]).toEqual([tries, dropped]);
    expect(clock.pending).toBe(0);
  });

  test("are kept in a bounded number while the collector is away", async () => {
    const { exporter: traces } = exporter(["gone"]);
    for (let index = 0; index < 10_000; index++) traces.add(doneOf(`${index}`));
    expect(traces.dropped).toBeGreaterThan(5_000);
  });

  test("leave before the process does, unless that takes too long", async () => {
    const { posts, exporter: traces } = exporter([200]);
    traces.add(doneOf("last"));
    await traces.stop(1_000);
    expect(posts).toHaveLength(1);
  });
});
