import type { Database } from "bun:sqlite";
import { refused } from "../../errors/refusal.ts";
import { servingCounters } from "../../ledger/counter.ts";
import { assert } from "../../units/assert.ts";
import type { Clock } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import { changeOfBalance, changeOfBudget, changeOfKey, changeOfRun, type NotedChange } from "../changes.ts";
import { SqlAccountStore } from "../sql/account-store.ts";
import { SqlLowCreditStore } from "../sql/low-credit-store.ts";
import { SqlSigningKeyStore } from "../sql/signing-key-store.ts";
import type { SqliteAuthority } from "../sqlite/authority.ts";
import type { SqliteKeyStore } from "../sqlite/key-store.ts";
import type { SqliteRegistry } from "../sqlite/registry.ts";
import { SqliteStatements } from "../sqlite/statements.ts";
import type { KeeperOperations, Noted } from "./operations.ts";
import { proposed } from "./proposal.ts";

/** Changes of keys, budgets, balances and accounts, with what nodes must notice of each before it is answered. */
export function changeOperations(parts: ChangeParts) {
  const { db, durable, clock, keys, registry } = parts;
  const statements = new SqliteStatements(db, durable);
  const accounts = new SqlAccountStore(statements, clock);
  const lowCredit = new SqlLowCreditStore(statements);
  const signingKeys = new SqlSigningKeyStore(statements);
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
  } satisfies Partial<KeeperOperations>;
}

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

/** Whether some node may be serving the balance. */
function usedBalances({ db, clock, authority }: ChangeParts): (id: BalanceId) => boolean {
  const owner = db.query<{ account_id: AccountId | null }, [string]>(
    "SELECT account_id FROM balances WHERE id = ?",
  );
  const chains = db.query<{ lineage: KeyId }, [string]>(
    "SELECT DISTINCT lineage FROM keys WHERE balance_id = ?",
  );
  return (id) => {
    const rotations = chains.all(id).map(({ lineage }) => lineage);
    const account = owner.get(id)?.account_id ?? null;
    return authority.isGranted(servingCounters(id, account, rotations, clock.now()));
  };
}
