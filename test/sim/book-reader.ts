import type { CounterId } from "../../src/ledger/counter.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import type { StoredReceipt } from "../../src/store/ledger/receipts.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { NANO_PER_USD } from "../../src/units/usd.ts";
import type { BookedReceipt } from "./auditor.ts";
import type { SimulatedDatabase } from "./database.ts";
import type { GatewayLife } from "./gateway-life.ts";
import { check } from "./world.ts";

/** What the database says. */
export class BookReader {
  /** By their ids; some may have been deleted since. */
  private readonly seen = new Map<string, BookedReceipt>();

  constructor(private readonly database: SimulatedDatabase) {}

  /** What the ledger remembers is what the books say, but for ends that are on their way there. */
  compareMemory({ ledger, books }: Pick<GatewayLife, "ledger" | "books">): void {
    for (const { id, spent, changedBy } of ledger.counters.booked()) {
      if (changedBy > books.appliedThrough) continue;
      const booked = this.database.store.spent(id);
      check(booked === spent, `${id} has spent ${booked} by the books, and ${spent} in memory`);
    }
  }

  /** All that there were at any reading. */
  receipts(balances: Iterable<BalanceId>): BookedReceipt[] {
    for (const balance of balances)
      for (const stored of this.database.receipts(balance)) this.seen.set(stored.id, read(balance, stored));
    return [...this.seen.values()];
  }
}

function read(balanceId: BalanceId, { id, at, keyId, body }: StoredReceipt): BookedReceipt {
  const { state, host, cost_usd, held_usd } = JSON.parse(body) as {
    state: string;
    host: string | null;
    cost_usd: number;
    held_usd: number;
  };
  const nano = (usd: number) => Math.round(usd * NANO_PER_USD);
  return { id, at, balanceId, keyId, state, host, charged: nano(cost_usd), held: nano(held_usd) };
}

/** What counters hold is what open requests hold of them, however those grew and shrank. */
export function compareHolds(ledger: Ledger): void {
  const held = heldBy(ledger.openRecords());
  for (const counter of ledger.counters.booked()) {
    const open = held.get(counter.id) ?? 0;
    // Only balances hold something else: what is being taken back.
    const isRight = counter.id.startsWith("balance:") ? counter.held >= open : counter.held === open;
    check(isRight, `${counter.id} holds ${counter.held}, of requests that hold ${open}`);
  }
}

/** What open requests hold of each counter; of an allowance, each holds one. */
function heldBy(records: readonly LedgerRecord[]): ReadonlyMap<CounterId, number> {
  const held = new Map<CounterId, number>();
  for (const record of records) {
    if (record.kind !== "hold") continue;
    for (const id of record.counters) held.set(id, (held.get(id) ?? 0) + record.amount);
    for (const [id, from, to] of record.parts ?? []) {
      const part = Math.max(0, Math.min(record.amount, to ?? record.amount) - from);
      held.set(id, (held.get(id) ?? 0) + part);
    }
    for (const id of record.allowances) held.set(id, (held.get(id) ?? 0) + 1);
  }
  return held;
}
