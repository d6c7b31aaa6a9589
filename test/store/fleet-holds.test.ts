import { beforeEach, expect, test } from "bun:test";
import type { CounterId } from "../../src/ledger/counter.ts";
import { FleetHolds, type HeldAnswer, type HeldQuestion } from "../../src/store/nodes/fleet-holds.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

/** Three nodes whose messages go through `exchange`; each holds its own amount of every counter. */
const HELD = { a: 1, b: 20, c: 300 } as const;
/** Granted on every counter except one, which has no grants. */
const GRANTED = { a: 10, b: 100, c: 1_000 } as const;
const UNUSED = "balance:unused";
type NodeName = keyof typeof HELD;

let clock: ManualClock;
let nodes: Map<NodeName, FleetHolds>;
/** What the store knows of the nodes. */
let silent: NodeName | null;
let isMute: boolean;
/** Messages that are lost. */
let lost: (message: HeldQuestion | HeldAnswer) => boolean;
let questions: HeldQuestion[];
let sent: PromiseWithResolvers<void>;

beforeEach(() => {
  clock = new ManualClock();
  silent = null;
  isMute = false;
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
      if (!isMute) send(question);
      sent.resolve();
      const others = names.filter((name) => name !== question.asker);
      return {
        answering: others.filter((name) => !isMute && name !== silent),
        silent: others.filter((name) => isMute || name === silent),
      };
    },
    sendAnswer: async (answer: HeldAnswer) => send(answer),
  };
  const grants = {
    granted: async (of: readonly string[], counters: readonly string[]) =>
      counters.map((counter) =>
        counter === UNUSED ? 0 : of.reduce((sum, name) => sum + GRANTED[name as NodeName], 0),
      ),
  };
  nodes = new Map(
    names.map((node) => {
      const heldOn = (counter: string) => (counter === UNUSED ? 0 : HELD[node]) as NanoUsd;
      const ledger = { counters: { heldOn } };
      return [
        node,
        new FleetHolds({ node, exchange, ledger, grants, books: { catchUp: async () => {} }, clock }),
      ];
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

test("a node that has lost its lease holds at most what it was granted", async () => {
  silent = "c";
  lost = isAnswerOf("c");
  expect(await shown()).toEqual({ held: 1_021 as NanoUsd, heldAt: "all_processes_at_most" });
  expect(await shown(UNUSED)).toEqual({ held: 0 as NanoUsd, heldAt: "all_processes" });
});

test("a node that does not answer is waited for once, and counts again as soon as it answers", async () => {
  lost = isAnswerOf("c");
  const first = shown();
  await sent.promise;
  await Promise.resolve();
  clock.advance(1_000);
  expect(await first).toEqual({ held: 1_021 as NanoUsd, heldAt: "all_processes_at_most" });
  // Nothing moves the clock: this does not wait.
  expect(await shown()).toEqual({ held: 1_021 as NanoUsd, heldAt: "all_processes_at_most" });
  lost = () => false;
  await shown();
  expect(await shown()).toEqual({ held: 321 as NanoUsd, heldAt: "all_processes" });
});

test("where the store carries no messages, the others hold at most what they were granted", async () => {
  isMute = true;
  expect(await shown()).toEqual({ held: 1_101 as NanoUsd, heldAt: "all_processes_at_most" });
});
