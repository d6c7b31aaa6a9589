import type { SpendingOrder } from "../../api/usage.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { StretchSum, Sum, UsageSplit } from "./usage-sums.ts";

/**
 * What everybody used in a period, next to the same time a period earlier: in all, over time, and by balance,
 * key, model and host. The lists are cut, and what is cut off is summed. Made in the thread of usage.ts.
 */
export interface Spending {
  readonly total: Compared;
  /** In order of time. */
  readonly stretches: readonly StretchSum[];
  readonly balances: SpendingRanking;
  readonly keys: SpendingRanking;
  readonly models: SpendingRanking;
  /** Requests that no host answered are in none of these. */
  readonly hosts: SpendingRanking;
  /** Of the balances that are listed, by id. */
  readonly owners: ReadonlyMap<string, BalanceOwner>;
  /** Of the keys that are listed, by id. */
  readonly keyLabels: ReadonlyMap<string, KeyLabel>;
  /** False where receipts of the period before are not all there: `beforeNano` is 0 then. */
  readonly compared: boolean;
  /** Receipts from before then were not read; null when all were. */
  readonly countedSince: EpochMs | null;
}

export interface Compared extends Sum {
  /** Charged at the same time a period earlier. */
  readonly beforeNano: number;
}

export interface SpendingRanking {
  readonly rows: readonly (Compared & { readonly name: string })[];
  readonly rest: Compared & { readonly rows: number };
}

export interface BalanceOwner {
  /** Null while accountless. */
  readonly accountId: string | null;
  readonly email: string | null;
  readonly wallet: string | null;
}

export interface KeyLabel {
  readonly keyName: string | null;
  readonly prefix: string;
  readonly balanceId: string;
}

export interface SpendingScope {
  readonly since: EpochMs;
  /** Null: up to now. */
  readonly until: EpochMs | null;
  readonly now: EpochMs;
  readonly stretchMs: number;
  /** How far back the time lies that this one is compared with; null for no comparison. */
  readonly beforeMs: number | null;
  readonly order: SpendingOrder;
  /** Rows of each list. */
  readonly most: number;
  /** What a stretch is split by; by model unless named. */
  readonly by?: UsageSplit;
}

/** Receipts that have all of these in common, added up. */
export interface SpendingGroup {
  /** Of its stretch of time; null for those of the period before. */
  readonly start: number | null;
  readonly balanceId: string;
  readonly keyId: string;
  readonly model: string;
  readonly host: string | null;
  readonly requests: number;
  readonly failed: number;
  readonly charged: number;
  readonly input: number;
  readonly output: number;
}

/** `groups` in order of time. */
export function rankSpending(
  groups: Iterable<SpendingGroup>,
  { order, most, by = "model" }: Pick<SpendingScope, "order" | "most" | "by">,
): Ranked {
  const total = emptySum();
  const stretches = new Map<string, Writable<StretchSum>>();
  const [balances, keys, models, hosts] = [
    new SpendingSums(),
    new SpendingSums(),
    new SpendingSums(),
    new SpendingSums(),
  ];
  for (const group of groups) {
    const { start, model, host } = group;
    add(total, group);
    add(balances.of(group.balanceId), group);
    add(keys.of(group.keyId), group);
    add(models.of(model), group);
    if (host !== null) add(hosts.of(host), group);
    if (start !== null) {
      const name = { model, key: group.keyId, host: host ?? "", all: "" }[by];
      addStretch(stretches, start, name, group);
    }
  }
  const ranked = (sums: SpendingSums) => sums.ranked(order, most);
  return {
    total,
    stretches: [...stretches.values()],
    balances: ranked(balances),
    keys: ranked(keys),
    models: ranked(models),
    hosts: ranked(hosts),
  };
}

export type Ranked = Pick<Spending, "total" | "stretches" | "balances" | "keys" | "models" | "hosts">;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const emptySum = (): Writable<Compared> => ({
  requests: 0,
  failed: 0,
  chargedNano: 0,
  inputTokens: 0,
  outputTokens: 0,
  beforeNano: 0,
});

function add(sum: Writable<Compared>, group: SpendingGroup): void {
  if (group.start === null) sum.beforeNano += group.charged;
  else addNow(sum, group);
}

function addNow(sum: Writable<Sum>, { requests, failed, charged, input, output }: SpendingGroup): void {
  sum.requests += requests;
  sum.failed += failed;
  sum.chargedNano += charged;
  sum.inputTokens += input;
  sum.outputTokens += output;
}

function addStretch(
  stretches: Map<string, Writable<StretchSum>>,
  start: number,
  name: string,
  group: SpendingGroup,
): void {
  const id = `${start} ${name}`;
  let sum = stretches.get(id);
  if (sum === undefined) {
    const { beforeNano: _, ...empty } = emptySum();
    stretches.set(id, (sum = { start, name, ...empty }));
  }
  addNow(sum, group);
}

class SpendingSums {
  private readonly sums = new Map<string, Writable<Compared>>();

  of(name: string): Writable<Compared> {
    let sum = this.sums.get(name);
    if (sum === undefined) this.sums.set(name, (sum = emptySum()));
    return sum;
  }

  ranked(order: SpendingOrder, most: number): SpendingRanking {
    const measure = MEASURES[order];
    const rows = [...this.sums]
      .map(([name, sum]) => ({ name, ...sum }))
      .sort((a, b) => measure(b) - measure(a) || b.chargedNano - a.chargedNano || (a.name < b.name ? -1 : 1));
    const rest = emptySum();
    for (const row of rows.slice(most)) addAll(rest, row);
    return { rows: rows.slice(0, most), rest: { rows: Math.max(0, rows.length - most), ...rest } };
  }
}

const MEASURES: Record<SpendingOrder, (sum: Compared) => number> = {
  cost: ({ chargedNano }) => chargedNano,
  growth: ({ chargedNano, beforeNano }) => chargedNano - beforeNano,
  requests: ({ requests }) => requests,
  tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
};

function addAll(sum: Writable<Compared>, other: Compared): void {
  for (const member of Object.keys(sum) as (keyof Compared)[]) sum[member] += other[member];
}
