import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ledger } from "../src/ledger/ledger.ts";
import { recoveredReceipt } from "../src/ledger/receipt.ts";
import { Reservation, type ReservationRequest } from "../src/ledger/reservation.ts";
import { openLedger } from "../src/store/books/bookkeeping-sqlite.ts";
import { openDatabase } from "../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../src/store/database/sqlite-database.ts";
import { SqliteMaintenance } from "../src/store/database/sqlite-maintenance.ts";
import type { JournalBooks } from "../src/store/journal/books.ts";
import { folderDisk, probeSync } from "../src/store/journal/disk.ts";
import { SqliteLedgerStore } from "../src/store/ledger/sqlite-ledger-store.ts";
import { systemClock } from "../src/units/clock.ts";
import { type BalanceId, newReceiptId } from "../src/units/id.ts";
import { systemRandom } from "../src/units/random.ts";
import { MAX_NANO_USD, type NanoUsd } from "../src/units/usd.ts";
import { KnownHolders } from "../test/fakes/holders.ts";
import { keyOf } from "../test/fakes/key.ts";
import { enterCredit } from "../test/store/enter-credit.ts";
import { ascending, percentile, table } from "./figures.ts";
import { numberOption, option } from "./options.ts";

/**
 * What durability costs: requests admitted and settled at a steady rate on a real disk, the way they are in
 * production, with the database following. Reported: how long a last frame waits for its settlement, and how
 * late the event loop runs.
 *
 *     bun run bench settle [--rate 2000] [--seconds 10] [--folder /path]
 */

export interface SettleReport {
  readonly syncing: string;
  readonly settled: number;
  readonly perSecond: number;
  /** ms from settlement to its durability. */
  readonly waitP50: number;
  readonly waitP99: number;
  /** ms by which the loop is late for a timer. */
  readonly lagP50: number;
  readonly lagP99: number;
  readonly syncs: number;
}

export async function benchSettle(rate: number, seconds: number, parent = tmpdir()): Promise<SettleReport> {
  const folder = mkdtempSync(join(parent, "settle-"));
  const { syncing, slowMs } = probeSync(folder);
  const clock = systemClock;
  const database = join(folder, "gateway.sqlite");
  const db = openDatabase(database);
  const store = new SqliteLedgerStore(new SqliteDatabase(db));
  enterCredit(db, {
    balanceId: BALANCE,
    amount: MAX_NANO_USD,
    idempotencyKey: "bench",
    note: null,
    at: clock.now(),
  });
  const onFault = (error: unknown) => {
    throw error;
  };
  const maintenance = new SqliteMaintenance(database, clock, onFault);
  const booksDb = openDatabase(database, "NORMAL");
  const opening = {
    disk: folderDisk(folder, slowMs),
    store: {
      ...new SqliteLedgerStore(new SqliteDatabase(booksDb)).endsOf(null),
      checkpoint: () => maintenance.checkpoint(),
    },
    clock,
    relaxed: false,
    journalFileBytes: 64 * 1024 * 1024,
    writeOffTokens: 50,
    defer: (run: () => void) => void setImmediate(run),
    recoveredBody: recoveredReceipt,
    onFault,
  };
  const holders = new KnownHolders();
  holders.put(KEY);
  const { books, ledger } = await openLedger(opening, {
    sums: store,
    debits: store,
    holders,
  });
  const waits: number[] = [];
  const lag = watchLoop();
  const startedMs = performance.now();
  let started = 0;
  const pending: Promise<void>[] = [];
  while (performance.now() - startedMs < seconds * 1_000) {
    const due = Math.floor(((performance.now() - startedMs) / 1_000) * rate);
    // Requests do not end in step: each settles in a turn of its own.
    for (; started < due; started++) pending.push(oneRequest(ledger, books, waits));
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  await Promise.all(pending);
  const lags = lag.stop();
  const syncs = books.journal.syncs;
  await books.close();
  await maintenance.close();
  booksDb.close();
  rmSync(folder, { recursive: true, force: true });
  if (waits.length !== started) throw new Error(`${started - waits.length} settlements never became durable`);
  const sorted = ascending(waits);
  return {
    syncing,
    settled: started,
    perSecond: Math.round(started / seconds),
    waitP50: percentile(sorted, 0.5),
    waitP99: percentile(sorted, 0.99),
    lagP50: percentile(lags, 0.5),
    lagP99: percentile(lags, 0.99),
    syncs,
  };
}

const BALANCE = "bal_bench" as BalanceId;
const BODY = JSON.stringify({ filler: "x".repeat(600) });

async function oneRequest(ledger: Ledger, books: JournalBooks, waits: number[]): Promise<void> {
  const at = systemClock.now();
  const keyCounters = await ledger.counters.of(KEY, [], [], at);
  const request: ReservationRequest = { ...REQUEST, receipt: newReceiptId(at, systemRandom), at };
  const reservation = ledger.admit(keyCounters, request);
  if (!(reservation instanceof Reservation)) throw new Error(`refused for ${reservation.what}`);
  await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20));
  const end = {
    state: "settled",
    cost: 100 as NanoUsd,
    rateTokens: 10,
    allowanceUsed: false,
  } as const;
  const settledMs = performance.now();
  const { sequence } = ledger.settle(reservation, end, () => BODY);
  if (!(await books.journal.durable(sequence))) throw new Error("the disk refused");
  waits.push(performance.now() - settledMs);
}

const KEY = keyOf({ balanceId: BALANCE, dailyLimit: MAX_NANO_USD, monthlyLimit: MAX_NANO_USD });

const REQUEST: Omit<ReservationRequest, "receipt" | "at"> = {
  key: KEY,
  budgets: [],
  allowances: [],
  rpmLimit: null,
  freeRpmLimit: null,
  tpmLimit: null,
  amount: 1_000 as NanoUsd,
  worst: 1_000 as NanoUsd,
  rateTokens: 10,
  most: { amount: 1_000 as NanoUsd, tokens: 10 },
  promptTokens: 5,
  price: { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 } as ReservationRequest["price"],
  about: { surface: "chat.completions", model: "bench/model", stream: true },
};

/**
 * How late the loop is for something that is due every 5 ms: sampled by time, so that long turns weigh as
 * they should.
 */
function watchLoop(): { stop(): number[] } {
  const lags: number[] = [];
  let dueMs = performance.now() + SAMPLE_MS;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    lags.push(Math.max(0, nowMs - dueMs));
    dueMs = nowMs + SAMPLE_MS;
  }, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      return ascending(lags);
    },
  };
}

const SAMPLE_MS = 5;

if (import.meta.main) {
  const report = await benchSettle(
    numberOption("rate", 2_000),
    numberOption("seconds", 10),
    option("folder", tmpdir()),
  );
  console.log(table(Object.keys(report), [Object.values(report)]));
}
