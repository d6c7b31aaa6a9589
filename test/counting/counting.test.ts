import { afterEach, expect, test } from "bun:test";
import { Counting, type CountTurn } from "../../src/counting/counting.ts";
import { ManualClock } from "../fakes/clock.ts";
import { until } from "../fakes/until.ts";

const SICK = new URL("./sick-thread.ts", import.meta.url);
const STAYS = new AbortController().signal;
const MINUTE_MS = 60_000;

let counting: Counting;
afterEach(() => counting.stop());

function open(thread?: URL) {
  const clock = new ManualClock();
  counting = new Counting(clock, thread);
  const prompt = async (text: string, turn: Partial<CountTurn> = {}) => {
    const asked = { key: "bal_one", rank: "paid", signal: STAYS, withinMs: MINUTE_MS, ...turn } as const;
    return (await counting.prompt("text", new TextEncoder().encode(text), asked))?.tokens ?? null;
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

test("answers are counted first, then prompts of those who pay, by turn, then the others'", async () => {
  const { prompt } = open(SICK);
  const order: string[] = [];
  const done = (name: string) => () => void order.push(name);
  await Promise.all([
    prompt("-").then(done("at work")),
    prompt("-", { key: "free", rank: "unpaid" }).then(done("free")),
    prompt("-", { key: "a" }).then(done("a")),
    prompt("-", { key: "a" }).then(done("a")),
    prompt("-", { key: "b" }).then(done("b")),
    counting.count(["-"], "o200k").then(done("answer")),
  ]);
  expect(order).toEqual(["at work", "answer", "a", "b", "a", "free"]);
});

test("so many may wait; prompts that nobody paid for make room for the others, and those for answers", async () => {
  const { clock, prompt } = open(SICK);
  const hung = prompt("hang");
  const free = Array.from({ length: 2_001 }, () => prompt("-", { rank: "unpaid" }));
  expect(await free[2_000]!).toBeNull();
  const paid = Array.from({ length: 2_000 }, () => prompt("-"));
  expect(await Promise.all(free)).toEqual(Array(2_001).fill(null));
  const answer = counting.count(["answer"], "o200k");
  expect(await paid[1_999]!).toBeNull();
  clock.advance(MINUTE_MS);
  expect(await hung).toBeNull();
  expect(await answer).toBeNull();
});

test("stopped, it counts nothing more", async () => {
  const { prompt } = open(SICK);
  const [hung, waiting] = [prompt("hang"), prompt("one")];
  counting.stop();
  expect([await hung, await waiting, await prompt("one")]).toEqual([null, null, null]);
});
