import type { Database } from "bun:sqlite";
import { refused } from "../../errors/refusal.ts";
import { allowanceCounter, balanceCounter, type CounterId, rateCounter } from "../../ledger/counter.ts";
import { assert } from "../../units/assert.ts";
import { type Clock, type EpochMs, epochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import { changeOfBalance, changeOfBudget, changeOfKey, changeOfRun, type NotedChange } from "../changes.ts";
import { SqliteAccountStore } from "../sqlite/account-store.ts";
import type { SqliteAuthority } from "../sqlite/authority.ts";
import type { SqliteKeyStore } from "../sqlite/key-store.ts";
import { SqliteLowCreditStore } from "../sqlite/low-credit-store.ts";
import type { SqliteRegistry } from "../sqlite/registry.ts";
import { SqliteSigningKeyStore } from "../sqlite/signing-key-store.ts";
import type { KeeperOperations, Noted } from "./operations.ts";
import { proposed } from "./proposal.ts";

/** Changes of keys, budgets, balances and accounts, with what nodes must notice of each before it is answered. */
export function changeOperations(parts: ChangeParts): ChangeOperations {
  const { db, durable, clock, keys, registry } = parts;
  const accounts = new SqliteAccountStore(db, clock, durable);
  const lowCredit = new SqliteLowCreditStore(db);
  const signingKeys = new SqliteSigningKeyStore(db);
  const isInUse = usedBalances(parts);
  const noted = <Result>(result: Result, changes: readonly NotedChange[]): Noted<Result> => ({
    result,
    version: changes.length === 0 ? null : registry.note(changes),
  });
  return {
    addBalance: (balance, recovery, key) => keys.addBalance(balance, recovery, key),
    // Nobody can have remembered a key that was not there.
    addKey: (balance, proposal) =>
      proposed(proposal, async (decide) => noted(written(await keys.addKey(balance, decide)), [])),
    changeKey: (id, proposal) =>
      proposed(proposal, async (decide) => {
        const changed = written(await keys.changeKey(id, decide));
        return noted(changed, [changed.key, ...changed.ended].map(changeOfKey));
      }),
    changeBudgets: (balance, proposal) =>
      proposed(proposal, async (decide) => {
        const changed = written(await keys.changeBudgets(balance, decide));
        return noted(changed, [changeOfBudget(balance, changed.budget.id)]);
      }),
    changeRun: (balance, name, proposal) =>
      proposed(proposal, async (decide) => {
        const changed = written(await keys.changeRun(balance, name, decide));
        return noted(changed, changed.isTighter ? [changeOfRun(balance, changed.run)] : []);
      }),
    async suspend(suspension) {
      const done = await keys.suspend(suspension);
      return noted(done, (done?.balances ?? []).map(changeOfBalance));
    },
    async secretsSaved(balance, at) {
      return noted(await keys.secretsSaved(balance, at), [changeOfBalance(balance)]);
    },
    async removeUnused(before, from) {
      const removed = await keys.removeUnused(before, from, { isInUse, forget() {} });
      return noted(removed, [...removed.keys.map(changeOfKey), ...removed.balances.map(changeOfBalance)]);
    },
    changeAccount: (about, proposal) =>
      proposed(proposal, async (decide) => {
        const changed = written(await accounts.change(about, decide));
        const { attach = [], detach = [], close = [] } = changed;
        return noted(changed, [...attach, ...detach, ...close].map(changeOfBalance));
      }),
    endSession: (hash) => accounts.endSession(hash),
    endSessions: (account) => accounts.endSessions(account),
    async mark(changes) {
      const marked = new Set(await lowCredit.mark(changes));
      await durable();
      return changes.flatMap((change, place) => (marked.has(change) ? [place] : []));
    },
    async addSigningKey(key) {
      const added = await signingKeys.add(key);
      await durable();
      return added;
    },
  };
}

type ChangeOperations = Pick<
  KeeperOperations,
  | "addBalance"
  | "addKey"
  | "changeKey"
  | "changeBudgets"
  | "changeRun"
  | "suspend"
  | "secretsSaved"
  | "removeUnused"
  | "changeAccount"
  | "endSession"
  | "endSessions"
  | "mark"
  | "addSigningKey"
>;

interface ChangeParts {
  readonly db: Database;
  readonly durable: () => Promise<void>;
  readonly clock: Clock;
  readonly keys: SqliteKeyStore;
  readonly registry: SqliteRegistry;
  readonly authority: SqliteAuthority;
}

/** A node proposes nothing that it refuses. */
function written<Result>(result: Result): Exclude<Result, { readonly code: unknown }> {
  assert(!refused(result), "a refusal was proposed");
  return result as Exclude<Result, { readonly code: unknown }>;
}

/**
 * Balances that some node may be serving, whose ends are not here yet: it was granted what their requests hold
 * as long as they are open, of the balance or, for free ones, of an allowance; or of a rate within the last
 * minute.
 */
function usedBalances({ db, clock, authority }: ChangeParts): (id: BalanceId) => boolean {
  const owner = db.query<{ account_id: AccountId | null }, [string]>(
    "SELECT account_id FROM balances WHERE id = ?",
  );
  const chains = db.query<{ lineage: KeyId }, [string]>(
    "SELECT DISTINCT lineage FROM keys WHERE balance_id = ?",
  );
  return (id) => {
    const days: EpochMs[] = [clock.now(), epochMs(clock.now() - DAY_MS)];
    const allowances = days.map((at) => allowanceCounter(owner.get(id)?.account_id ?? id, at));
    const rates = chains
      .all(id)
      .flatMap(({ lineage }): CounterId[] =>
        (["rpm", "tpm", "free_rpm"] as const).map((kind) => rateCounter(kind, lineage)),
      );
    return authority.isGranted([balanceCounter(id), ...allowances, ...rates]);
  };
}

const DAY_MS = 86_400_000;
