import type { EpochMs } from "../../units/clock.ts";
import { windowAt } from "../../units/window.ts";
import { type Database, type SqlPart, type Steps, sql } from "../database/database.ts";

/**
 * Deletes the receipts that `oldest` selects, and keeps what they come to. Returns how many. What is kept is written in the
 * order of the names, so that two nodes which delete at once wait for each other.
 */
export function* folding(db: Database, oldest: (columns: SqlPart) => SqlPart): Steps<number> {
  const [rows] = yield [oldest(SUMMED)];
  const ends = rows as readonly SummedEnd[];
  if (ends.length === 0) return 0;
  const { months, counters } = foldEnds(ends);
  const spent = [...counters].map(([counter, spent]) => ({ counter, spent }));
  yield [
    sql`INSERT INTO folded (balance_id, month, receipts, charged, written_off, lost)
      SELECT balance_id, month, receipts, charged, written_off, lost
      FROM ${db.table(months, MONTH_COLUMNS)} AS sums WHERE true ORDER BY balance_id, month
      ON CONFLICT (balance_id, month) DO UPDATE SET receipts = folded.receipts + excluded.receipts,
        charged = folded.charged + excluded.charged, written_off = folded.written_off + excluded.written_off,
        lost = folded.lost + excluded.lost`,
    sql`INSERT INTO folded_counters (counter, spent)
      SELECT counter, spent FROM ${db.table(spent, COUNTER_COLUMNS)} AS sums WHERE true ORDER BY counter
      ON CONFLICT (counter) DO UPDATE SET spent = folded_counters.spent + excluded.spent`,
    sql`DELETE FROM ends WHERE receipt IN ${db.among(ends.map(({ receipt }) => receipt))}`,
  ];
  return ends.length;
}

const SUMMED = sql`receipt, at, balance_id, charged, written_off, lost, counters, allowances`;
const MONTH_COLUMNS = {
  balance_id: "TEXT",
  month: "BIGINT",
  receipts: "BIGINT",
  charged: "BIGINT",
  written_off: "BIGINT",
  lost: "BIGINT",
} as const;
const COUNTER_COLUMNS = { counter: "TEXT", spent: "BIGINT" } as const;

/**
 * What is kept of ends whose receipts are deleted: as much as it takes to recompute every sum, in the
 * transaction that deletes them. By month, because the books are read by month.
 */
interface Fold {
  readonly months: readonly FoldedMonth[];
  /** Nano-dollars of each counter besides the balance, and requests of each allowance. */
  readonly counters: ReadonlyMap<string, number>;
}

interface FoldedMonth {
  readonly balance_id: string;
  /** The month's first instant. */
  readonly month: EpochMs;
  receipts: number;
  charged: number;
  written_off: number;
  lost: number;
}

/** A row of `ends`, as far as sums are made of it. */
interface SummedEnd {
  readonly receipt: string;
  readonly at: EpochMs;
  readonly balance_id: string;
  readonly charged: number;
  readonly written_off: number;
  readonly lost: number;
  readonly counters: string;
  readonly allowances: string;
}

function foldEnds(ends: readonly SummedEnd[]): Fold {
  const months = new Map<string, FoldedMonth>();
  const counters = new Map<string, number>();
  for (const end of ends) {
    const sum = monthOf(months, end);
    sum.receipts += 1;
    sum.charged += end.charged;
    sum.written_off += end.written_off;
    sum.lost += end.lost;
    for (const [counter, charged] of chargesOf(end)) add(counters, counter, charged);
    for (const allowance of words(end.allowances)) add(counters, allowance, 1);
  }
  return { months: [...months.values()], counters };
}

/** What an end was counted on, and with how much: all of its charge, where no amount is named. */
function chargesOf({ counters, charged }: Pick<SummedEnd, "counters" | "charged">): [string, number][] {
  if (charged === 0) return [];
  return words(counters).map((word) => {
    const [counter, part] = word.split("=") as [string, string?];
    return [counter, part === undefined ? charged : Number(part)];
  });
}

/** What a column of several names holds. */
const words = (list: string): string[] => (list === "" ? [] : list.split(" "));

function monthOf(months: Map<string, FoldedMonth>, { balance_id, at }: SummedEnd): FoldedMonth {
  const month = windowAt("month", at).startsAt;
  const name = `${balance_id} ${month}`;
  const none = () => ({ balance_id, month, receipts: 0, charged: 0, written_off: 0, lost: 0 });
  return months.getOrInsertComputed(name, none);
}

const add = (sums: Map<string, number>, name: string, amount: number): void => {
  sums.set(name, (sums.get(name) ?? 0) + amount);
};
