import { expect, test } from "bun:test";
import { type Question, Questions } from "../../../src/server/workers/questions.ts";

interface Queries {
  double(number: number): number;
}

/** Questions to a process of which the test says what it answers. */
function fixture() {
  const sent: Question<Queries>[] = [];
  const questions = new Questions<Queries>((question) => sent.push(question));
  const answer = ({ id, values: [number] }: Question<Queries>) =>
    questions.answered({ kind: "answer", id, answer: 2 * (number as number) });
  return { sent, questions, answer };
}

/** More than may be open. */
const MANY = 10_001;

test("answers reach who asked, in any order, and a repeated or unknown one reaches nobody", async () => {
  const { sent, questions, answer } = fixture();
  const doubled = [questions.request("double", 1), questions.request("double", 2)];
  for (const question of [...sent].reverse()) answer(question);
  answer(sent[0]!);
  questions.answered({ kind: "answer", id: 1_000, answer: 7 });
  expect(await Promise.all(doubled)).toEqual([2, 4]);
});

test("a question whose answer was lost takes no place from later ones, and is given up once they need it", async () => {
  const { sent, questions, answer } = fixture();
  const lost = questions.request("double", 0);
  for (let number = 1; number < MANY; number++) {
    void questions.request("double", number);
    // A process that goes on answers others meanwhile.
    const other = questions.request("double", number);
    answer(sent.at(-1)!);
    if ((await other) === undefined) break;
  }
  const later = questions.request("double", 21);
  answer(sent.at(-1)!);
  expect(await later).toBe(42);
  expect(await lost).toBeUndefined();
});

test("a process that answers nothing is sent so many questions, and more once it answers one", async () => {
  const { sent, questions, answer } = fixture();
  const first = questions.request("double", 1);
  while (sent.length < 10_000) void questions.request("double", 1);
  expect(await questions.request("double", 1)).toBeUndefined();
  expect(sent.length).toBe(10_000);
  answer(sent[0]!);
  expect(await first).toBe(2);
  const later = questions.request("double", 21);
  answer(sent.at(-1)!);
  expect(await later).toBe(42);
});

test("a process that falls behind is sent no more than so many that it may not have read yet", async () => {
  const { sent, questions, answer } = fixture();
  for (let number = 0; number < MANY; number++) void questions.request("double", number);
  // It answers in their order, and each answer shows how far it has read.
  for (let answered = 0; answered < 3; answered++) {
    answer(sent[answered]!);
    for (let more = 0; more < 10; more++) void questions.request("double", more);
  }
  expect(sent.length).toBe(10_003);
});

test("once the process has ended, all are given up, and the next one is asked", async () => {
  const { sent, questions, answer } = fixture();
  const open = Array.from({ length: 10_000 }, () => questions.request("double", 1));
  questions.drop();
  const later = questions.request("double", 21);
  answer(sent.at(-1)!);
  expect(await later).toBe(42);
  expect(new Set(await Promise.all(open))).toEqual(new Set([undefined]));
});
