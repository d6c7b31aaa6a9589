import { describe, expect, test } from "bun:test";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import {
  type CommitBatch,
  CommitUnknown,
  PostgresJournal,
} from "../../src/store/journal/postgres-journal.ts";
import type { ReceiptId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";

const hold = (name: string, stream = true) =>
  ({ kind: "hold", receipt: name, amount: 100, about: { stream } }) as unknown as LedgerRecord;
const extend = (name: string, held: number) =>
  ({ kind: "extend", receipt: name, held }) as unknown as LedgerRecord;
const delivered = (name: string, tokens: number): LedgerRecord => ({
  kind: "delivered",
  tokens: [[name as ReceiptId, tokens]],
});
const end = (name: string) => ({ kind: "terminal", receipt: name, body: "{}" }) as unknown as LedgerRecord;

/** A journal on a PostgreSQL whose answers the test gives. */
function fixture() {
  const clock = new ManualClock();
  const requested: { batch: CommitBatch; answer: PromiseWithResolvers<void> }[] = [];
  const journal = new PostgresJournal({
    commit(batch) {
      const answer = Promise.withResolvers<void>();
      requested.push({ batch, answer });
      return answer.promise;
    },
    clock,
    defer: queueMicrotask,
    onFault: () => {},
  });
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    clock,
    requested,
    journal,
    turn,
    append: (record: LedgerRecord) => journal.append(record),
    async commits() {
      await turn();
      requested.at(-1)!.answer.resolve();
      await turn();
    },
    async fails(error: Error = new Error("away")) {
      await turn();
      requested.at(-1)!.answer.reject(error);
      await turn();
    },
    last: () => summary(requested.at(-1)!.batch),
  };
}

const summary = ({ holds, moved, ends, closed }: CommitBatch) => ({
  holds: holds.map(({ receipt, held, delivered }) => `${receipt} ${held} ${delivered}`),
  moved: moved.map(({ receipt, held, delivered }) => `${receipt} ${held} ${delivered}`),
  ends: ends.map(({ receipt }) => `${receipt}`),
  closed: closed.map((receipt) => `${receipt}`),
});
const NOTHING = { holds: [], moved: [], ends: [], closed: [] };

describe("what a transaction says", () => {
  test("a stream's hold is there until its end takes it away", async () => {
    const { append, journal, commits, last } = fixture();
    append(hold("a"));
    journal.schedule();
    await commits();
    expect(last()).toEqual({ ...NOTHING, holds: ["a 100 0"] });
    append(extend("a", 150));
    append(delivered("a", 7));
    journal.schedule();
    await commits();
    expect(last()).toEqual({ ...NOTHING, moved: ["a 150 7"] });
    append(end("a"));
    journal.schedule();
    await commits();
    expect(last()).toEqual({ ...NOTHING, ends: ["a"], closed: ["a"] });
  });

  test("a hold that says who answers takes the place of the one that did not", async () => {
    const { append, journal, commits, requested, last } = fixture();
    append(hold("a"));
    journal.schedule();
    await commits();
    append({ ...hold("a"), served: { model: "m", host: "h" } } as unknown as LedgerRecord);
    append(delivered("a", 7));
    journal.schedule();
    await commits();
    expect(last()).toEqual({ ...NOTHING, holds: ["a 100 7"] });
    expect(requested.at(-1)!.batch.holds[0]!.text).toContain('"served":{"model":"m","host":"h"}');
  });

  test("a hold that was lowered after it had grown is written as it is then", async () => {
    const { append, journal, commits, last } = fixture();
    append(hold("a"));
    append(extend("a", 300));
    append({ ...hold("a"), amount: 200 } as unknown as LedgerRecord);
    append(extend("b", 150));
    append(hold("b"));
    append(extend("b", 120));
    journal.schedule();
    await commits();
    expect(last()).toEqual({ ...NOTHING, holds: ["a 200 0", "b 120 0"] });
  });

  test("what begins and ends meanwhile is its end alone", async () => {
    const { append, journal, commits, last } = fixture();
    for (const record of [hold("a"), extend("a", 150), delivered("a", 7), end("a"), hold("b")])
      append(record);
    journal.schedule();
    await commits();
    expect(last()).toEqual({ ...NOTHING, holds: ["b 100 0"], ends: ["a"] });
  });

  test("the hold of a request that is not streamed is not said, and needs no transaction", async () => {
    const { append, journal, commits, last, requested, turn } = fixture();
    const held = append(hold("a", false));
    const durable = journal.durable(held);
    await turn();
    expect(await durable).toBe(true);
    expect(requested).toHaveLength(0);
    append(end("a"));
    journal.schedule();
    await commits();
    expect(last()).toEqual({ ...NOTHING, ends: ["a"] });
  });

  test("one is under way at a time, and the next takes along all that came meanwhile", async () => {
    const { append, journal, commits, last, requested } = fixture();
    append(hold("a"));
    journal.schedule();
    await commits();
    append(end("a"));
    journal.schedule();
    append(hold("b"));
    const answers = ["c", "d", "e"].map((name) => {
      append(hold(name));
      return journal.durable(append(end(name)));
    });
    await commits();
    expect(requested).toHaveLength(2);
    expect(last()).toEqual({ holds: ["b 100 0"], moved: [], ends: ["a", "c", "d", "e"], closed: ["a"] });
    expect(await Promise.all(answers)).toEqual([true, true, true]);
    expect(journal.undurable).toBe(0);
  });
});

describe("while PostgreSQL does not commit", () => {
  test("callers that wait go on waiting, and what came meanwhile goes along", async () => {
    const { append, journal, commits, fails, last, clock, requested } = fixture();
    const first = journal.durable(append(end("a")));
    await fails();
    expect(journal.healthy).toBe(true);
    const second = journal.durable(append(end("b")));
    clock.advance(100);
    await commits();
    expect(requested).toHaveLength(2);
    expect(last()).toEqual({ ...NOTHING, ends: ["a", "b"] });
    expect([await first, await second]).toEqual([true, true]);
  });

  test("after ten seconds they get an error, and nothing new is taken until it commits again", async () => {
    const { append, journal, commits, fails, clock } = fixture();
    const first = journal.durable(append(end("a")));
    for (let ms = 0; ms <= 10_000; ms += 100) {
      await fails();
      clock.advance(100);
    }
    expect(await first).toBe(false);
    expect(journal.healthy).toBe(false);
    expect(await journal.durable(append(end("b")))).toBe(false);
    await commits();
    expect(journal.healthy).toBe(true);
    const third = journal.durable(append(end("c")));
    for (let others = 0; others < 2; others++) await commits();
    expect(await third).toBe(true);
  });

  test("what was surely not committed can be taken back; what may have been cannot", async () => {
    const { append, journal, commits, fails, clock, last } = fixture();
    const doubtful = append(end("a"));
    journal.schedule();
    await fails(new CommitUnknown("no answer"));
    expect(journal.withdraw(doubtful)).toBe(false);
    const refused = append(end("b"));
    clock.advance(100);
    await fails();
    expect(journal.withdraw(doubtful)).toBe(false);
    expect(journal.withdraw(refused)).toBe(true);
    clock.advance(100);
    await commits();
    expect(last()).toEqual({ ...NOTHING, ends: ["a"] });
  });

  test("what is under way cannot be taken back", async () => {
    const { append, journal, turn } = fixture();
    const sent = append(end("a"));
    journal.schedule();
    await turn();
    expect(journal.withdraw(sent)).toBe(false);
  });

  test("a hold that may be there, or may yet come, is waited for and taken away with its end", async () => {
    const { append, journal, commits, fails, clock, last } = fixture();
    append(hold("a"));
    journal.schedule();
    await fails(new CommitUnknown("no answer"));
    append(end("a"));
    clock.advance(100);
    await commits();
    expect(last()).toEqual({ holds: ["a 100 0"], moved: [], ends: ["a"], closed: ["a"] });
  });
});

test("a node that was closed acknowledges nothing any more, and asks nothing", async () => {
  const { append, journal, fails, clock, requested, turn } = fixture();
  const waiting = journal.durable(append(end("a")));
  await fails(new EpochFenced("closed"));
  expect(await waiting).toBe(false);
  expect(journal.healthy).toBe(false);
  expect(await journal.durable(append(end("b")))).toBe(false);
  clock.advance(60_000);
  await turn();
  expect(requested).toHaveLength(1);
});

test("one that has ended does not try again what was under way", async () => {
  const { append, journal, fails, clock, requested, turn } = fixture();
  append(end("a"));
  journal.schedule();
  await turn();
  journal.close();
  await fails();
  clock.advance(60_000);
  await turn();
  expect(requested).toHaveLength(1);
});

describe("when more waits than one transaction takes", () => {
  const outcomes = (waiting: (true | Promise<boolean>)[]) => {
    const words: (boolean | null)[] = waiting.map(() => null);
    for (const [index, one] of waiting.entries())
      void Promise.resolve(one).then((durable) => (words[index] = durable));
    return words;
  };

  test("each learns of its own transaction, although more and more come", async () => {
    const { append, journal, commits } = fixture();
    const durable = (name: string) => journal.durable(append(end(name)));
    const words = outcomes(Array.from({ length: 2_500 }, (_, n) => durable(`a${n}`)));
    for (let committed = 1_000; committed <= 2_000; committed += 1_000) {
      await commits();
      expect(words.filter((durable) => durable === true)).toHaveLength(committed);
      for (let n = 0; n < 1_000; n++) void durable(`b${committed} ${n}`);
    }
  });

  test("what was committed is never refused because of what came after", async () => {
    const { append, journal, commits, fails, clock } = fixture();
    append(hold("unstreamed", false));
    const first = Array.from({ length: 300 }, (_, n) => append(end(`a${n}`)));
    const words = outcomes(first.map((sequence) => journal.durable(sequence)));
    const late = Array.from({ length: 1_500 }, (_, n) => append(end(`b${n}`)));
    const lateWords = outcomes(late.map((sequence) => journal.durable(sequence)));
    await commits();
    await fails();
    clock.advance(10_000);
    await fails();
    expect(words.every((durable) => durable === true)).toBe(true);
    const wrong = late.filter((sequence, n) => lateWords[n] !== sequence <= journal.durableNow);
    expect(wrong).toEqual([]);
  });
});
