import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { balanceCounter } from "../../src/ledger/counter.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { exportRow, SqlExportStore } from "../../src/store/export/export-store.ts";
import {
  type ExportStorage,
  FileStorage,
  readTarget,
  targetText,
} from "../../src/store/export/export-target.ts";
import { Exporter } from "../../src/store/export/exporter.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { DAY_MS, epochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type ExportedLine, exportedLines, filesIn, sumOf } from "../fakes/exported.ts";
import { end } from "./end-record.ts";
import { enterCredit } from "./enter-credit.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const START = epochMs(Date.UTC(2026, 10, 28));

/** Books with one target, which is asked at every step of a manual clock. */
function fixture(storage: ExportStorage) {
  const clock = new ManualClock(START);
  const db = openDatabase(":memory:");
  const books = new SqliteLedgerStore(new SqliteDatabase(db), { now: () => clock.now() });
  const store = new SqlExportStore(new SqliteDatabase(db));
  const logged: string[] = [];
  let ends = 0;
  const exporter = () =>
    new Exporter({
      store,
      clock,
      log: (event, fields) => logged.push(`${event} ${fields?.problem}`),
      settings: () => ({ to: { kind: "file", path: "/export" }, every: 60_000, endpoint: null }),
      open: () => storage,
    });
  return {
    clock,
    db,
    books,
    store,
    logged,
    exporter,
    book(count: number, at = clock.now()) {
      const counters = [balanceCounter("bal_1" as BalanceId)];
      const records = Array.from({ length: count }, () => {
        const id = ++ends;
        return {
          ...end(id),
          at,
          charged: id as NanoUsd,
          counters,
          body: JSON.stringify({ id: `rcpt_${id}` }),
        };
      });
      void books.ship(
        null,
        null,
        records.map((record) => ({ record, sequence: 1, file: 1, bytes: 1 })),
      );
    },
    credit(amount: number) {
      const idempotencyKey = crypto.randomUUID();
      const at = clock.now();
      enterCredit(db, {
        balanceId: "bal_1" as BalanceId,
        amount: amount as NanoUsd,
        idempotencyKey,
        note: "by hand",
        at,
      });
    },
    /** Time goes on until it is so. */
    untilSo: (what: () => boolean) => passing(clock, what),
    /** Time goes on until this is over. */
    async over(what: Promise<void>) {
      let isOver = false;
      void what.then(() => {
        isOver = true;
      });
      await passing(clock, () => isOver);
    },
  };
}

async function passing(clock: ManualClock, what: () => boolean): Promise<void> {
  for (let step = 0; !what(); step++) {
    if (step === MAX_STEPS) throw new Error("it did not come about");
    clock.advance(250);
    await Bun.sleep(1);
  }
}

const MAX_STEPS = 20_000;

/** A target in memory. */
class MemoryStorage implements ExportStorage {
  readonly files = new Map<string, Uint8Array>();
  readonly names: string[] = [];
  /** What happens at a put, before it is there and after. */
  before: () => void = () => {};
  after: () => void = () => {};

  of(kind: string): ExportedLine[] {
    return exportedLines(this.files, kind);
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    this.before();
    const known = this.files.get(name);
    if (known !== undefined) expect(Bun.hash(bytes)).toBe(Bun.hash(known));
    this.files.set(name, bytes);
    this.names.push(name);
    this.after();
  }
}

describe("targets", () => {
  test.each([
    ["file:/var/export", { kind: "file", path: "/var/export" }, "file:/var/export"],
    ["file:///var/export/", { kind: "file", path: "/var/export" }, "file:/var/export"],
    ["s3://my-books", { kind: "s3", bucket: "my-books", prefix: "" }, "s3://my-books"],
    ["s3://my.books/a/b/", { kind: "s3", bucket: "my.books", prefix: "a/b" }, "s3://my.books/a/b"],
  ])("%s", (written, read, shown) => {
    expect(readTarget(written)).toEqual(read as never);
    expect(targetText(readTarget(written)!)).toBe(shown);
  });

  test.each(["", "file:here", "file:", "s3://", "s3://B", "s3:/bucket", "https://bucket", "otlp"])(
    "refuses %p",
    (written) => expect(readTarget(written)).toBeNull(),
  );
});

test("receipts, entries and events are exported in order, in files that are named by what they hold", async () => {
  const storage = new MemoryStorage();
  const { book, credit, exporter, untilSo, over } = fixture(storage);
  const running = exporter();
  await running.prepare();
  await untilSo(() => running.figures().length > 0);
  credit(5_000_000_000);
  book(3);
  await untilSo(() => storage.of("receipts").length === 3);
  book(2);
  await untilSo(() => storage.of("receipts").length === 5 && storage.of("entries").length === 1);
  await over(running.stop());
  expect([...storage.files.keys()].sort()).toEqual([
    "entries/2026/11/28/000000000001-000000000001.jsonl.gz",
    "receipts/2026/11/28/000000000001-000000000003.jsonl.gz",
    "receipts/2026/11/28/000000000004-000000000005.jsonl.gz",
  ]);
  expect(storage.of("receipts").at(-1)).toEqual({
    number: 5,
    balance_id: "bal_1",
    charged_nano_usd: 5,
    written_off_nano_usd: 0,
    lost_nano_usd: 0,
    host_cost_nano_usd: null,
    id: "rcpt_5",
  });
  expect(storage.of("entries")[0]).toMatchObject({
    kind: "credit",
    debit: "funding",
    credit: "balance:bal_1",
    amount_nano_usd: 5_000_000_000,
    amount_usd: 5,
    note: "by hand",
  });
}, 120_000);

test("what a host said about a failure is not exported: it may repeat the prompt", () => {
  const attempts = [{ host: "a", outcome: "refused", detail: 'cannot answer "my prompt"' }];
  const row = { seq: 1, at: START, balance: "bal_1", charged: 0, written_off: 0, lost: 0 };
  const { line } = exportRow("receipts", { ...row, body: JSON.stringify({ id: "rcpt_1", attempts }) });
  expect(JSON.parse(line)).toMatchObject({
    id: "rcpt_1",
    attempts: [{ host: "a", outcome: "refused", detail: null }],
  });
});

test("events are recorded for an export, although no endpoint takes them", async () => {
  const storage = new MemoryStorage();
  const { book, credit, exporter, untilSo, over } = fixture(storage);
  const running = exporter();
  await running.prepare();
  await untilSo(() => running.figures().length > 0);
  credit(3);
  book(2);
  await untilSo(() => storage.of("events").length === 1);
  await over(running.stop());
  expect(storage.of("events")[0]).toMatchObject({
    number: 1,
    type: "credit.exhausted",
    balance_id: "bal_1",
    data: { left_usd: 0 },
  });
}, 120_000);

test("processes that die at every step, and several at once, export each row once: a file that was started is put again as it was", async () => {
  const storage = new MemoryStorage();
  const { book, exporter, store, untilSo, clock, over } = fixture(storage);
  let seed = 7;
  const dies = (what: string) => {
    seed = (seed * 48_271) % 2_147_483_647;
    if (seed % 4 === 0) throw new Error(`dead ${what}`);
  };
  const { begin, finish } = SqlExportStore.prototype;
  store.begin = async (...of) => {
    dies("before the file is written down");
    const claim = await begin.apply(store, of);
    dies("after it was written down");
    return claim;
  };
  store.finish = async (...of) => {
    dies("before the cursor moves");
    const claim = await finish.apply(store, of);
    dies("after the cursor has moved");
    return claim;
  };
  storage.before = () => dies("before the file is there");
  storage.after = () => dies("after the file is there");
  const both = [exporter(), exporter()];
  for (const one of both) await one.prepare();
  for (let round = 0; round < 12; round++) {
    book(round % 4 === 0 ? 700 : 1);
    await untilSo(() => clock.now() > START + (round + 1) * 20_000);
  }
  await untilSo(() => storage.of("receipts").length === 2_109);
  for (const one of both) await over(one.stop());
  const numbers = storage.of("receipts").map(({ number }) => number);
  expect(numbers).toEqual(Array.from({ length: 2_109 }, (_, at) => at + 1));
  expect(sumOf(storage.of("receipts"), "charged_nano_usd")).toBe((2_109n * 2_110n) / 2n);
  expect(storage.names.length).toBeGreaterThan(storage.files.size);
}, 120_000);

test("a target that is away delays the export, is logged, and lets the lag grow until it is back", async () => {
  const storage = new MemoryStorage();
  const { book, exporter, untilSo, logged, over } = fixture(storage);
  const running = exporter();
  await running.prepare();
  await untilSo(() => running.figures().length > 0);
  const lag = () => running.figures().find(({ name }) => name === "gateway_export_lag_seconds")!.value;
  storage.before = () => {
    throw new Error("503 from the bucket");
  };
  book(1);
  await untilSo(() => lag() > 600);
  expect(storage.files.size).toBe(0);
  expect(logged.length).toBeGreaterThan(3);
  expect(new Set(logged)).toEqual(new Set(["export Error: 503 from the bucket"]));
  storage.before = () => {};
  await untilSo(() => lag() < 100);
  await over(running.stop());
  expect(storage.of("receipts")).toHaveLength(1);
}, 120_000);

test.each([
  ["all rows", "seq <= 3", []],
  ["the first row", "seq = 1", [2, 3]],
  ["the last row", "seq = 3", [1, 2]],
])(
  "a file that was started for a target which then was away is put without %s once they are deleted",
  async (_, deleted, left) => {
    const storage = new MemoryStorage();
    const { book, db, exporter, untilSo, over, logged } = fixture(storage);
    storage.before = () => {
      throw new Error("503 from the bucket");
    };
    book(3);
    const running = exporter();
    await running.prepare();
    await untilSo(() => logged.length > 0);
    book(1);
    db.run(`DELETE FROM ends WHERE ${deleted}`);
    storage.before = () => {};
    await untilSo(() => storage.of("receipts").some(({ number }) => number === 4));
    await over(running.stop());
    expect(storage.of("receipts").map(({ number }) => number)).toEqual([...left, 4]);
    expect(logged.at(-1)).toContain(`${3 - left.length} receipts were deleted`);
  },
  120_000,
);

test("another target starts from the first receipt that is there", async () => {
  const [first, second] = [new MemoryStorage(), new MemoryStorage()];
  const { book, store, untilSo, clock, over } = fixture(first);
  const to = { path: "/one" };
  const running = new Exporter({
    store,
    clock,
    log: () => {},
    settings: () => ({ to: { kind: "file", path: to.path }, every: 60_000, endpoint: null }),
    open: ({ to }) => (targetText(to) === "file:/one" ? first : second),
  });
  await running.prepare();
  book(3);
  await untilSo(() => first.of("receipts").length === 3);
  to.path = "/two";
  await over(running.prepare());
  book(1);
  await untilSo(() => second.of("receipts").length === 4);
  await over(running.stop());
  expect(first.of("receipts")).toHaveLength(3);
}, 120_000);

describe("receipts that are old", () => {
  const old = epochMs(START - 100 * DAY_MS);
  const before = epochMs(START - 90 * DAY_MS);

  test("stay while the export lacks them, for 30 days; the last one stays so that its number is not given again", async () => {
    const { book, books, store, db } = fixture(new MemoryStorage());
    book(10, old);
    await store.configure("file:/export", START);
    expect(await books.fold(before)).toBe(0);
    const claim = (await store.claim("file:/export", START, epochMs(START + 1)))!;
    const file = {
      kind: "receipts",
      last: 0,
      file: { last: 4, rows: 4 },
      until: epochMs(START + 2),
    } as const;
    const started = (await store.begin(claim, file))!;
    expect(await books.fold(before)).toBe(0);
    // Even then, what is in a file that is being put stays.
    expect(await books.fold(epochMs(before + 31 * DAY_MS))).toBe(5);
    await store.finish(started, file);
    expect(await books.fold(before)).toBe(4);
    book(1);
    expect(db.query("SELECT max(seq) AS number FROM ends").get()).toEqual({ number: 11 });
  });

  test("go where nothing is exported any more", async () => {
    const { book, books, store } = fixture(new MemoryStorage());
    book(10, old);
    await store.configure("file:/export", START);
    await store.configure(null, START);
    expect(await books.fold(before)).toBe(9);
  });
});

test("a file of a folder is there once it is whole, and only its owner and group read it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "export-"));
  folders.push(folder);
  const storage = new FileStorage(join(folder, "books"));
  for (const bytes of ["first", "again"])
    await storage.put("receipts/2026/11/28/1-2.jsonl.gz", Buffer.from(Bun.gzipSync(Buffer.from(bytes))));
  const files = await filesIn(join(folder, "books"));
  expect([...files.keys()]).toEqual(["receipts/2026/11/28/1-2.jsonl.gz"]);
  expect(new TextDecoder().decode(Bun.gunzipSync(files.values().next().value as never))).toBe("again");
  expect(readdirSync(join(folder, "books", ".partial"))).toEqual([]);
  expect(statSync(join(folder, "books", [...files.keys()][0]!)).mode & 0o777).toBe(0o640);
}, 120_000);
