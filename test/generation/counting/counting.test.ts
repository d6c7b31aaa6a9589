import { afterEach, describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { Counting, type CountTurn } from "../../../src/generation/counting/counting.ts";
import { compactionRequest } from "../../../src/surfaces/responses/compaction.ts";
import type { GenerationRequest } from "../../../src/surfaces/surface.ts";
import { SURFACES } from "../../../src/surfaces/surfaces.ts";
import { assert } from "../../../src/units/assert.ts";
import { MINUTE_MS } from "../../../src/units/clock.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { until } from "../../fakes/until.ts";

const SICK = new URL("./sick-thread.ts", import.meta.url);
const STAYS = new AbortController().signal;

let counting: Counting;
afterEach(() => counting.stop());

function open(thread?: URL) {
  const clock = new ManualClock();
  counting = new Counting(clock, thread);
  const prompt = async (text: string, turn: Partial<CountTurn> = {}) => {
    const whole = { key: "bal_one", rank: "paid", signal: STAYS, withinMs: MINUTE_MS, ...turn } as const;
    return (await counting.prompt("text", new TextEncoder().encode(text), whole))?.tokens ?? null;
  };
  return { clock, prompt };
}

test("text is counted in its family's vocabulary, and a prompt in o200k with its framing", async () => {
  const { prompt } = open();
  const text = "Ein Wort, 你好，世界, <|endoftext|>";
  expect(await Promise.all([counting.count([text], "o200k"), counting.count([text], "cl100k")])).toEqual([
    15, 17,
  ]);
  expect(await prompt(JSON.stringify({ messages: [{ content: text }] }))).toBe(15 + 3 + 3);
});

test("what cannot be handed to the thread is not counted, and what comes next is", async () => {
  const { prompt } = open();
  const body = new TextEncoder().encode("{}");
  structuredClone(body.buffer, { transfer: [body.buffer as ArrayBuffer] });
  expect(await counting.billedPrompt(body, "o200k")).toBe(null);
  expect(await prompt("{}")).toBe(3);
});

test("a thread that waits for work keeps no process from its end", async () => {
  const program = `
    import { Counting } from "./src/generation/counting/counting.ts";
    import { systemClock } from "./src/units/clock.ts";
    console.log(await new Counting(systemClock).count(["two words"], "o200k"));`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "inherit" });
  expect([await child.exited, await new Response(child.stdout).text()]).toEqual([0, "2\n"]);
});

test("the vocabulary is loaded once a start is over, unless that ends first", async () => {
  const { clock, prompt } = open();
  counting.loadAhead();
  clock.advance(4_999);
  expect(clock.pending).toBe(1);
  clock.advance(1);
  // The count under way, and the replacement of a thread that hangs.
  expect(clock.pending).toBe(2);
  expect(await prompt(JSON.stringify({ messages: [] }))).toBe(3);
  expect(clock.pending).toBe(0);
  counting.loadAhead();
  counting.stop();
  expect(clock.pending).toBe(0);
});

test.each(["hang", "silence"])(
  "a thread in which there is %s is replaced, and who waited is counted",
  async (text) => {
    const { clock, prompt } = open(SICK);
    const hung = prompt(text);
    await until(() => clock.pending === 2);
    clock.advance(9_000);
    const waiting = [prompt("one"), counting.count(["three"], "o200k")];
    clock.advance(1_000);
    expect(await hung).toBeNull();
    expect(await Promise.all(waiting)).toEqual([3, 5]);
    expect(clock.pending).toBe(0);
  },
);

test("a thread that fails is replaced, and who waited is counted", async () => {
  const { clock, prompt } = open(SICK);
  const counts = [prompt("throw"), prompt("one"), prompt("throw"), prompt("three")];
  expect(await Promise.all(counts)).toEqual([null, 3, null, 5]);
  expect(clock.pending).toBe(0);
});

test("who waits no longer than for so long is answered then, and so is who leaves", async () => {
  const { clock, prompt } = open(SICK);
  const leaving = new AbortController();
  const hung = prompt("hang", { withinMs: 3_000 });
  const waiting = prompt("one", { withinMs: 2_000 });
  const left = prompt("one", { signal: leaving.signal });
  leaving.abort();
  expect(await left).toBeNull();
  clock.advance(2_000);
  expect(await waiting).toBeNull();
  clock.advance(1_000);
  expect(await hung).toBeNull();
  const next = prompt("three");
  clock.advance(7_000);
  expect(await next).toBe(5);
});

test("answers are counted first, then prompts of those who pay, by turn", async () => {
  const { prompt } = open(SICK);
  const order: string[] = [];
  const done = (name: string) => () => void order.push(name);
  await Promise.all([
    prompt("-").then(done("at work")),
    prompt("-", { key: "a" }).then(done("a")),
    prompt("-", { key: "a" }).then(done("a")),
    prompt("-", { key: "b" }).then(done("b")),
    counting.count(["-"], "o200k").then(done("answer")),
  ]);
  expect(order).toEqual(["at work", "answer", "a", "b", "a"]);
});

test("whatever nobody pays for is counted elsewhere: who pays does not wait until it is done", async () => {
  const { clock, prompt } = open(SICK);
  const free = [prompt("hang", { rank: "unpaid" }), prompt("-", { rank: "unpaid" })];
  expect(await Promise.all([prompt("one"), counting.count(["three"], "o200k")])).toEqual([3, 5]);
  clock.advance(10_000);
  expect(await Promise.all(free)).toEqual([null, null]);
});

test("so many may wait; prompts make room for answers", async () => {
  const { clock, prompt } = open(SICK);
  const hung = [prompt("hang"), prompt("hang", { rank: "unpaid" })];
  const free = Array.from({ length: 2_001 }, () => prompt("-", { rank: "unpaid" }));
  expect(await free[2_000]!).toBeNull();
  const paid = Array.from({ length: 2_000 }, () => prompt("-"));
  const answer = counting.count(["answer"], "o200k");
  expect(await paid[1_999]!).toBeNull();
  clock.advance(MINUTE_MS);
  expect(await Promise.all(hung)).toEqual([null, null]);
  expect(await answer).toBeNull();
});

describe("a request of somebody without credit", () => {
  const turn = { key: "192.0.2.0/24", signal: STAYS, withinMs: MINUTE_MS };
  const workOf = (json: object, surface: SurfaceName = "chat.completions", isCount = false) => {
    const body = new TextEncoder().encode(JSON.stringify(json));
    return { sent: body.slice(), body, surface, counting: isCount };
  };
  const messages = [{ role: "user", content: "a".repeat(100_000) }];

  test("is read without its prompt, and its body comes back", async () => {
    open();
    const one = workOf({ model: "a/b", messages, max_tokens: 7, metadata: { user_id: "u" } });
    const { read, subject } = (await counting.request(one, turn))!;
    expect(one.body.length).toBe(0);
    assert(!refused(read), "a request that is fine");
    expect(Buffer.from(read.body).equals(one.sent)).toBeTrue();
    expect(read).toEqual({
      ...(SURFACES["chat.completions"].readRequest(one.sent) as GenerationRequest),
      body: read.body,
      json: { model: "a/b", max_tokens: 7, metadata: { user_id: "u" } },
      outline: { model: "a/b", max_tokens: 7, metadata: { user_id: "u" } },
      list: null,
    });
    expect(subject).toEqual({ model: "a/b", stream: false });
  });

  test.each<[why: string, json: object]>([
    ["has no messages", { model: "a/b", messages: [] }],
    ["asks for two things at once", { model: "a/b", messages, n: 0 }],
  ])("that %s is refused as any other", async (_, json) => {
    open();
    const one = workOf(json);
    const { read } = (await counting.request(one, turn))!;
    expect(read).toEqual(SURFACES["chat.completions"].readRequest(one.sent));
    expect(refused(read)).toBeTrue();
  });

  test("with long overrides is refused, because they would have to be taken apart again", async () => {
    open();
    const { read } = (await counting.request(
      workOf({ model: "a/b", messages, models: Array(2_000).fill("a/b") }),
      turn,
    ))!;
    assert(refused(read), "too long");
    expect([read.code, read.details.param]).toEqual(["invalid_request", "models"]);
  });

  test("to be counted needs no ceiling", async () => {
    open();
    const { read } = (await counting.request(workOf({ model: "a/b", messages }, "messages", true), turn))!;
    expect(refused(read)).toBeFalse();
    const without = (await counting.request(workOf({ model: "a/b", messages }, "messages"), turn))!;
    expect(refused(without.read)).toBeTrue();
  });

  test("to be compacted becomes an ordinary one", async () => {
    open();
    const { body, sent } = workOf({ model: "a/b", input: "x".repeat(70_000) });
    expect(await counting.compaction(body, turn)).toEqual(compactionRequest(sent));
  });
});

test("stopped, it counts nothing more", async () => {
  const { prompt } = open(SICK);
  const [hung, waiting] = [prompt("hang"), prompt("one")];
  counting.stop();
  expect([await hung, await waiting, await prompt("one")]).toEqual([null, null, null]);
});
