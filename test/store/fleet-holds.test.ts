import { beforeEach, expect, test } from "bun:test";
import type { CounterId } from "../../src/ledger/counter.ts";
import { FleetHolds, type HeldAnswer, type HeldQuestion } from "../../src/store/nodes/fleet-holds.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

/** Three nodes whose messages go through `exchange`; each holds its own amount of every counter. */
const HELD = { a: 1, b: 20, c: 300 } as const;
type NodeName = keyof typeof HELD;

let clock: ManualClock;
let nodes: Map<NodeName, FleetHolds>;
/** What the store knows of the nodes. */
let silent: NodeName | null;
/** Messages that are lost. */
let lost: (message: HeldQuestion | HeldAnswer) => boolean;
let questions: HeldQuestion[];
let sent: PromiseWithResolvers<void>;

beforeEach(() => {
  clock = new ManualClock();
  silent = null;
  lost = () => false;
  questions = [];
  sent = Promise.withResolvers();
  const names = Object.keys(HELD) as NodeName[];
  const send = (message: HeldQuestion | HeldAnswer): void => {
    if (lost(message)) return;
    for (const node of nodes.values())
      if ("counters" in message) void node.handleQuestion(message);
      else node.handleAnswer(message);
  };
  const exchange = {
    async sendQuestion(question: HeldQuestion) {
      questions.push(question);
      send(question);
      sent.resolve();
      return silent === null ? names.filter((name) => name !== question.asker) : null;
    },
    sendAnswer: async (answer: HeldAnswer) => send(answer),
  };
  nodes = new Map(
    names.map((node) => {
      const ledger = { counters: { heldOn: () => HELD[node] as NanoUsd } };
      return [node, new FleetHolds({ node, exchange, ledger, books: { catchUp: async () => {} }, clock })];
    }),
  );
});

const shown = (counter = "balance:x", node: NodeName = "a") => nodes.get(node)!.of(counter as CounterId);
const isAnswerOf =
  (name: string) =>
  (message: HeldQuestion | HeldAnswer): boolean =>
    "node" in message && message.node === name;

test("an amount is what all nodes hold, at each of them", async () => {
  for (const node of nodes.keys())
    expect(await shown("balance:x", node)).toEqual({ held: 321 as NanoUsd, heldAt: "all_processes" });
});

test("the amounts of one page are one question", async () => {
  const counters = Array.from({ length: 30 }, (_, n) => `day:${n}`);
  const amounts = await Promise.all(counters.map((counter) => shown(counter)));
  expect(new Set(amounts.map(({ held }) => held))).toEqual(new Set([321 as NanoUsd]));
  expect(questions.map(({ counters }) => counters)).toEqual([counters as CounterId[]]);
});

test("with a node that has lost its lease, it is the part of the one that shows it", async () => {
  silent = "c";
  expect(await shown()).toEqual({ held: 1 as NanoUsd, heldAt: "this_process" });
});

test("a node that does not answer is waited for once, and counts again as soon as it answers", async () => {
  lost = isAnswerOf("c");
  const first = shown();
  await sent.promise;
  await Promise.resolve();
  clock.advance(1_000);
  expect(await first).toEqual({ held: 1 as NanoUsd, heldAt: "this_process" });
  // Nothing moves the clock: this does not wait.
  expect(await shown()).toEqual({ held: 1 as NanoUsd, heldAt: "this_process" });
  lost = () => false;
  expect((await shown()).heldAt).toBe("this_process");
  expect(await shown()).toEqual({ held: 321 as NanoUsd, heldAt: "all_processes" });
});

test("where questions cannot be sent, it is the part of the one that shows it", async () => {
  lost = () => {
    throw new Error("the store is away");
  };
  expect(await shown()).toEqual({ held: 1 as NanoUsd, heldAt: "this_process" });
});
