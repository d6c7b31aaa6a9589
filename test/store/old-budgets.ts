import type { EpochMs } from "../../src/units/clock.ts";

/** Budgets of a time when each was counted in the one window that it had: what ends say, and what of them is kept. */
const [LAST_YEAR, THIRD, MONDAY, WEDNESDAY] = [
  Date.UTC(2025, 5, 1),
  Date.UTC(2026, 10, 3, 9),
  Date.UTC(2026, 10, 16, 9),
  Date.UTC(2026, 10, 18, 12),
];
const dayOf = (at: number) => at - (at % 86_400_000);

/** Of one that was a day's until Monday and is a month's, and of one that never ends. */
const ENDS: [at: number, charged: number, counters: string][] = [
  [THIRD, 10, `day:key_a:${dayOf(THIRD)} budget:bud_a:${dayOf(THIRD)} budget:bud_b:0`],
  [MONDAY, 20, `budget:bud_a:${dayOf(MONDAY)}`],
  [WEDNESDAY, 30, `budget:bud_b:0 budget:bud_a:${Date.UTC(2026, 10, 1)}`],
  [WEDNESDAY, 0, `budget:bud_a:${Date.UTC(2026, 10, 1)}`],
  [WEDNESDAY, 7, `day:key_a:${dayOf(WEDNESDAY)}`],
];
const FOLDED: [counter: string, spent: number][] = [
  [`budget:bud_a:${LAST_YEAR}`, 100],
  ["budget:bud_b:0", 200],
];

/** SQL that both databases read; the running sums are as ends and what is kept of others say. */
export const oldBudgets = (sums: string, id: string, moreColumns: string, moreValues: string): string => {
  const spent = new Map<string, number>(FOLDED);
  for (const [, charged, counters] of ENDS)
    for (const counter of counters.split(" ")) spent.set(counter, (spent.get(counter) ?? 0) + charged);
  const charged = ENDS.reduce((sum, [, one]) => sum + one, 0);
  spent.set("balance:bal_a", charged + 300);
  const ends = ENDS.map(
    ([at, one, counters], n) =>
      `('rcpt_${n}', ${at}, 'bal_a', 'key_a', 'settled', ${one}, 0, 0, '${counters}', '', '{}'${moreValues})`,
  );
  return `
    INSERT INTO ends (receipt, at, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body${moreColumns})
      VALUES ${ends.join(", ")};
    INSERT INTO folded (balance_id, month, receipts, charged, written_off, lost) VALUES ('bal_a', ${LAST_YEAR}, 2, 300, 0, 0);
    INSERT INTO folded_counters (counter, spent) VALUES ${FOLDED.map(([counter, one]) => `('${counter}', ${one})`).join(", ")};
    INSERT INTO ${sums} (${id}, spent) VALUES ${[...spent].map(([counter, one]) => `('${counter}', ${one})`).join(", ")};`;
};

export const NOW = WEDNESDAY as EpochMs;
/** What is then known of both, in each window. */
export const KNOWN = {
  bud_a: { day: 30, week: 50, month: 60, total: 160 },
  bud_b: { day: 30, week: 30, month: 40, total: 240 },
};
