import { describe, expect, test } from "bun:test";
import { balanceCounter } from "../../src/ledger/counter.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import type { CutShort } from "../../src/store/journal/books.ts";
import { type Damage, DurableJournal, readJournal } from "../../src/store/journal/journal.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import type { BalanceId, ReceiptId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";
import { SimulatedDisk } from "../sim/disk.ts";
import { Random } from "../sim/random.ts";
import { end } from "./end-record.ts";
import { booksOn } from "./open-books.ts";

/**
 * A disk that changes what it had confirmed. Whole lines behind the damage are booked where a later write shows
 * that they were confirmed, once, and the log says what was left out.
 */
const FILE = "journal-00000001.log";
const RECOVERED = '{"recovered":true}';
const NAMES = ["a", "b", "c", "d", "e"];

/** The end of a request that is counted on its balance. */
const counted = (name: string) => ({ ...end(name), counters: [balanceCounter("bal_1" as BalanceId)] });

/** A journal with each of the records in a write of its own. */
async function written(records: readonly LedgerRecord[], disk = new SimulatedDisk()): Promise<SimulatedDisk> {
  const journal = new DurableJournal({
    disk,
    firstFile: 1,
    fileBytes: 1e9,
    relaxed: false,
    defer: queueMicrotask,
    after() {},
  });
  for (const record of records) {
    journal.append(record);
    await journal.flushed();
  }
  return disk;
}

function change(disk: SimulatedDisk, edit: (content: Buffer) => void): void {
  const content = Buffer.from(disk.read(FILE));
  edit(content);
  const file = disk.open(FILE);
  file.write(content, 0);
  void file.sync(1);
}

const lineOf = (content: Buffer, name: string): { start: number; end: number } => {
  const at = content.indexOf(`rcpt_${name}"`);
  return { start: content.lastIndexOf("\n", at) + 1, end: content.indexOf("\n", at) + 1 };
};
/** One sign of it is another. */
const torn = (name: string) => (content: Buffer) => {
  content[lineOf(content, name).start + 30]! ^= 1;
};
const over =
  (name: string, by: string) =>
  (content: Buffer): void => {
    const { start, end } = lineOf(content, by);
    content.copy(content, lineOf(content, name).start, start, end);
  };
const zeros = (from: string, to: string) => (content: Buffer) =>
  void content.fill(0, lineOf(content, from).start + 10, lineOf(content, to).end - 10);

async function start(disk: SimulatedDisk, store: SqliteLedgerStore) {
  const reported = { damages: [] as Damage[], cutShort: [] as CutShort[], recovered: 0 };
  const books = await booksOn(new ManualClock(), {
    disk,
    store: store.endsOf(null),
    recoveredBody: () => RECOVERED,
    onRecovered: (orphans) => void (reported.recovered = orphans),
    onDamaged: (damage) => void reported.damages.push(damage),
    onCutShort: (cutShort) => void reported.cutShort.push(cutShort),
  });
  return { books, ...reported, recovered: reported.recovered };
}

async function bookedIn(store: SqliteLedgerStore): Promise<string[]> {
  const receipts = await Promise.all(NAMES.map((name) => store.receipt(`rcpt_${name}` as ReceiptId)));
  return NAMES.filter((_, at) => receipts[at] !== null);
}

test.each([
  ["the first line is torn", [torn("a")], ["b", "c", "d"], 1],
  ["a line in the middle is torn", [torn("c")], ["a", "b", "d"], 1],
  ["two lines are torn", [torn("b"), torn("d")], ["a", "c"], 1],
  ["a stretch of several lines is gone", [zeros("b", "c")], ["a", "d"], 1],
  ["the last but one is torn", [torn("d")], ["a", "b", "c"], 1],
  ["the last line is torn, as by a power cut", [torn("e")], ["a", "b", "c", "d"], null],
  ["a line stands twice", [over("b", "c")], ["a", "c", "d", "e"], null],
  ["a line stands twice behind a torn one", [torn("a"), over("b", "c")], ["c", "d"], 1],
] as const)("%s: what was confirmed is booked, once", async (_, edits, booked, leftOut) => {
  const disk = await written(NAMES.map(counted));
  for (const edit of edits) change(disk, edit);
  const store = new SqliteLedgerStore(new SqliteDatabase(openDatabase(":memory:")));
  const { books, damages } = await start(disk, store);
  expect(await bookedIn(store)).toEqual([...booked]);
  expect(store.spent(balanceCounter("bal_1" as BalanceId)) as number).toBe(booked.length);
  expect(damages.map(({ file, linesLeftOut }) => [file, linesLeftOut])).toEqual(
    leftOut === null ? [] : [[FILE, leftOut]],
  );
  await books.close();
  // Killed before the file was removed: the next start reads it again.
  const again = await start(disk, store);
  expect(await bookedIn(store)).toEqual([...booked]);
  expect(store.spent(balanceCounter("bal_1" as BalanceId)) as number).toBe(booked.length);
  expect((await store.audit()).drifts).toEqual([]);
  await again.books.close();
});

test("what was torn is reported in bytes, and what was read behind it in lines", async () => {
  const disk = await written(NAMES.map(end));
  const before = Buffer.from(disk.read(FILE));
  change(disk, torn("b"));
  const damages: Damage[] = [];
  expect([...readJournal(disk, (damage) => damages.push(damage))]).toHaveLength(3);
  const { start: byte, end: behind } = lineOf(before, "b");
  expect(damages).toMatchObject([{ byte, tornBytes: behind - byte, linesRead: 2, linesLeftOut: 1 }]);
});

test("a request whose end is behind the damage has ended as that says, and one whose end is lost at its checkpoint", async () => {
  const hold = (name: string) =>
    ({
      kind: "hold",
      receipt: `rcpt_${name}`,
      at: 1_000,
      balance: "bal_1",
      key: "key_1",
      amount: 100,
      counters: [balanceCounter("bal_1" as BalanceId)],
      allowances: [],
      price: { input: 0, output: 1_000_000, cacheRead: 0, cacheWrite: 0 },
      promptTokens: 0,
      about: { surface: "messages", model: "m", stream: true },
    }) as unknown as LedgerRecord;
  const delivered = { kind: "delivered", tokens: [["rcpt_a", 60]] } as unknown as LedgerRecord;
  const disk = await written([
    hold("a"),
    hold("b"),
    end("c"),
    delivered,
    end("b"),
    end("a"),
    end("d"),
    end("e"),
  ]);
  change(disk, torn("c"));
  change(disk, (content) => {
    content[content.lastIndexOf("rcpt_a")]! ^= 1;
  });
  const store = new SqliteLedgerStore(new SqliteDatabase(openDatabase(":memory:")));
  const { books, recovered } = await start(disk, store);
  expect(recovered).toBe(1);
  expect(await store.receipt("rcpt_b" as ReceiptId)).toMatchObject({ body: "{}" });
  expect(await store.receipt("rcpt_a" as ReceiptId)).toMatchObject({ body: RECOVERED });
  expect(store.spent(balanceCounter("bal_1" as BalanceId)) as number).toBe(60);
  await books.close();
});

/** In place of a charge that was taken back. */
const UNCHARGED = { kind: "delivered", tokens: [] } as const satisfies LedgerRecord;

test("whatever is damaged, nothing is read that was taken back or never confirmed", async () => {
  const totals = { read: 0, withdrawn: 0, damaged: 0 };
  for (let seed = 1; seed <= 300; seed++) {
    const random = new Random(seed);
    const disk = new SimulatedDisk();
    // A disk that refuses a write refuses to cut it off, too: its lines stay until the next.
    const open = disk.open.bind(disk);
    disk.open = (name, from) => {
      const file = open(name, from);
      const write = (bytes: Uint8Array, at: number) => file.write(bytes, at);
      const truncate = (size: number) => {
        if (disk.mood !== "fine") throw new Error("EIO");
        file.truncate(size);
      };
      return { write, sync: (lines) => file.sync(lines), truncate, close() {} };
    };
    const retries: (() => void)[] = [];
    const after = (_ms: number, run: () => void) => void retries.push(run);
    const options = { disk, firstFile: 1, fileBytes: 1e9, relaxed: false, defer: queueMicrotask, after };
    const journal = new DurableJournal(options);
    const withdrawn = new Set<string>();
    const confirmed: string[][] = [];
    for (let batch = 0; batch < 12; batch++) {
      const names = Array.from(
        { length: 1 + random.below(4) },
        (_, at) => `s${seed}b${batch}n${at}${"x".repeat(random.below(40))}`,
      );
      const sequences = names.map((name) => [name, journal.append(end(name))] as const);
      disk.mood = random.chance(0.3) ? "full" : "fine";
      await journal.flushed();
      if (disk.mood === "full") {
        for (const [name, sequence] of sequences)
          if (random.chance(0.5) && journal.withdraw(sequence)) {
            withdrawn.add(`rcpt_${name}`);
            journal.append(UNCHARGED);
          }
        disk.mood = "fine";
        for (const run of retries.splice(0)) run();
        await journal.flushed();
      }
      confirmed.push(names.map((name) => `rcpt_${name}`).filter((name) => !withdrawn.has(name)));
    }
    // The power goes before these are confirmed; the disk has them all the same.
    const unsure = new Set(["y", "z"].map((name) => `rcpt_s${seed}${name}`));
    for (const name of ["y", "z"]) journal.append(end(`s${seed}${name}`));
    disk.syncing = false;
    void journal.flushed();
    await Promise.resolve();
    disk.syncing = true;
    const content = Buffer.from(disk.read(FILE));
    const file = disk.open(FILE);
    for (let hit = 1 + random.below(3); hit > 0; hit--) {
      const at = random.below(content.length);
      file.write(Buffer.alloc(1 + random.below(600), random.pick([0, 0x0a, 0x7c])), at);
    }
    void file.sync(1);
    const read: string[] = [];
    const damages: Damage[] = [];
    for (const { record } of readJournal(disk, (damage) => damages.push(damage)))
      if (record.kind === "terminal") read.push(record.receipt);
    if (damages.length > 0) expect(read.filter((name) => unsure.has(name))).toEqual([]);
    const all = new Set(confirmed.flat());
    expect(read.filter((name) => withdrawn.has(name) || !(all.has(name) || unsure.has(name)))).toEqual([]);
    expect(new Set(read).size).toBe(read.length);
    totals.read += read.length;
    totals.withdrawn += withdrawn.size;
    totals.damaged += damages.length;
  }
  expect(Math.min(totals.read, totals.withdrawn, totals.damaged)).toBeGreaterThan(200);
});

describe("a journal that ends before what is booked of it", () => {
  const booked = async () => {
    const disk = await written(NAMES.map(counted));
    const store = new SqliteLedgerStore(new SqliteDatabase(openDatabase(":memory:")));
    const { books, cutShort } = await start(disk, store);
    expect(cutShort).toEqual([]);
    await books.close();
    return { disk, store, bookedBytes: (await store.reached()).get(1)! };
  };
  const truncated = (to: (content: Buffer) => number) => (disk: SimulatedDisk) =>
    disk.open(FILE).truncate(to(Buffer.from(disk.read(FILE))));

  test.each<[string, (disk: SimulatedDisk) => unknown, (content: Buffer) => number]>([
    ["truncated", truncated((content) => lineOf(content, "c").end), (content) => lineOf(content, "c").end],
    [
      "truncated within a line",
      truncated((content) => lineOf(content, "e").start + 9),
      (content) => lineOf(content, "d").end,
    ],
    ["emptied", truncated(() => 0), () => 0],
    ["deleted", (disk) => disk.list().map((name) => disk.remove(name)), () => 0],
  ])("%s: the start reports it", async (_, cut, foundBytes) => {
    const { disk, store, bookedBytes } = await booked();
    const found = foundBytes(Buffer.from(disk.read(FILE)));
    for (const name of disk.list()) if (name !== FILE) disk.remove(name);
    cut(disk);
    const { books, cutShort } = await start(disk, store);
    expect(cutShort).toEqual([{ file: FILE, bookedBytes, foundBytes: found }]);
    expect(await bookedIn(store)).toEqual(NAMES);
    await books.close();
  });

  test("removed because all of it was booked: the start reports nothing", async () => {
    const { disk, store } = await booked();
    disk.remove(FILE);
    const { books, cutShort } = await start(disk, store);
    expect(cutShort).toEqual([]);
    await books.close();
  });
});
