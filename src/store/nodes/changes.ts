import type { Key } from "../../customers/keys/key.ts";
import type { StoredRun } from "../../customers/keys/run.ts";
import { budgetPrefixes, runCounters } from "../../ledger/counter.ts";
import type { KeyringChange } from "../../ledger/node-lease.ts";
import type { BalanceId } from "../../units/id.ts";

/** What nodes must notice of a change before it is answered. */
export type NotedChange = Omit<KeyringChange, "version">;

export const changeOfKey = ({
  balanceId,
  hash,
  rotationId,
}: Pick<Key, "balanceId" | "hash" | "rotationId">): NotedChange => ({
  balance: balanceId,
  key: hash,
  counters: ["day", "month", "rpm", "tpm"].map((kind) => `${kind}:${rotationId}`),
});

export const changeOfBudget = (balance: BalanceId, budget: string): NotedChange => ({
  balance,
  key: null,
  counters: budgetPrefixes(budget),
});

/** Once its limits are others. */
export const changeOfRun = (
  balance: BalanceId,
  { name, startedAt }: Pick<StoredRun, "name" | "startedAt">,
): NotedChange => ({
  balance,
  key: null,
  counters: Object.values(runCounters({ balanceId: balance, name, startedAt })),
});

/** Whether it may be used, or by whom. */
export const changeOfBalance = (balance: BalanceId): NotedChange => ({ balance, key: null, counters: [] });
