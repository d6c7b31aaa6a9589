import type { Balance, Budget, Key } from "../../customers/keys/key.ts";
import { hasEnded, type StoredRun } from "../../customers/keys/run.ts";
import { type BalanceTotals, type BalanceView, balanceView } from "../../ledger/balance-view.ts";
import {
  ALL_BALANCES,
  allowanceCounter,
  balanceCounter,
  budgetCounter,
  type CounterId,
  keyCounter,
  runCounters,
  valueCounter,
} from "../../ledger/counter.ts";
import type { CreditBooks } from "../../ledger/credit.ts";
import type { Allowance } from "../../ledger/reservation.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { Bookkeeping } from "../books/bookkeeping.ts";
import type { HeldAmount } from "../nodes/fleet-holds.ts";

/** What people may see of the books, by the names that they know: a key, a budget, an allowance. */
export function ledgerOperations(
  books: Bookkeeping,
  allowances: (balance: Balance, blocks: readonly string[]) => readonly Allowance[],
): LedgerOperations {
  const useOf = async (balanceId: BalanceId, run: StoredRun): Promise<RunUse> => {
    const { money, calls } = runCounters({ balanceId, ...run });
    const [spending, ofCalls] = await Promise.all([counterUse(books, money), counterUse(books, calls)]);
    return { run, spending, calls: ofCalls };
  };
  const keySpending = async ({ rotationId }: Key, at: EpochMs): Promise<KeySpending> => {
    const [day, month] = (["day", "month"] as const).map((kind) => keyCounter(kind, rotationId, at));
    return { day: await books.spent(day!), month: await books.spent(month!) };
  };
  return {
    balance: books.balance,
    async balanceUse(id) {
      const { held, heldAt } = await books.held(balanceCounter(id));
      return { ...balanceView(await books.balance(id), held), heldAt };
    },
    keySpending,
    async keyUse(key, at) {
      const held = await books.held(keyCounter("month", key.rotationId, at));
      return { ...(await keySpending(key, at)), ...held };
    },
    budgetUse: (budget, at) => counterUse(books, budgetCounter(budget.id, budget.window, at)),
    valueSpent: (budget, value, at) => books.spent(valueCounter(budget, value, at)),
    async runUse(balanceId, name, at) {
      const run = await books.keys.run(balanceId, name);
      return run === null || hasEnded(run, at) ? null : useOf(balanceId, run);
    },
    useOf,
    async openTier(balance, blocks, at) {
      const uses = allowances(balance, blocks).map(async ({ owner, limit }) => {
        const { spent, held, heldAt } = await counterUse(books, allowanceCounter(owner, at));
        return { limit, used: spent + held, heldAt };
      });
      return (await Promise.all(uses)).reduce((a, b) => (b.limit - b.used < a.limit - a.used ? b : a));
    },
    credit: books.credit,
    debit: books.debit,
    credits: books.credits,
    audit: () => auditOf(books),
  };
}

async function counterUse(books: Bookkeeping, id: CounterId): Promise<CounterUse> {
  const held = await books.held(id);
  return { spent: await books.spent(id), ...held };
}

/** The recomputed books, with what is held at this moment. */
async function auditOf(books: Bookkeeping): Promise<LedgerAudit> {
  const { held, heldAt } = await books.held(ALL_BALANCES);
  const { credits, charges, losses, writeOffs, drifts } = await books.audit();
  const ofPayments = (await books.payments.drifts()).map(({ payment, driftNano }) => ({
    account: `payment ${payment}`,
    driftNano,
  }));
  return {
    creditsNano: credits,
    chargesNano: charges,
    heldNano: BigInt(held),
    availableNano: credits - charges - BigInt(held),
    heldAt,
    writeOffsNano: writeOffs,
    lossesNano: losses,
    drifts: [...drifts, ...ofPayments],
  };
}

/** What people may see of the ledger, and credit. */
export interface LedgerOperations extends CreditBooks {
  /** Without what is held, which other processes may have to be asked for. */
  balance(id: BalanceId): Promise<BalanceTotals>;
  balanceUse(id: BalanceId): Promise<BalanceUse>;
  keySpending(key: Key, at: EpochMs): Promise<KeySpending>;
  keyUse(key: Key, at: EpochMs): Promise<KeyUse>;
  budgetUse(budget: Budget, at: EpochMs): Promise<CounterUse>;
  /** What one value spent of a budget that caps each, in its window. */
  valueSpent(budget: Budget, value: string, at: EpochMs): Promise<NanoUsd>;
  /** Null where the balance has no such run now. */
  runUse(balance: BalanceId, name: string, at: EpochMs): Promise<RunUse | null>;
  useOf(balance: BalanceId, run: StoredRun): Promise<RunUse>;
  /** Free requests of the present UTC day, open ones too, by the allowance that has the fewest left. */
  openTier(balance: Balance, blocks: readonly string[], at: EpochMs): Promise<OpenTierUse>;
  audit(): Promise<LedgerAudit>;
}

interface OpenTierUse extends Pick<HeldAmount, "heldAt"> {
  readonly limit: number;
  readonly used: number;
}

/** For a run; spent and held calls are numbers of them. */
export interface RunUse {
  readonly run: StoredRun;
  readonly spending: CounterUse;
  readonly calls: CounterUse;
}

interface BalanceUse extends BalanceView, HeldAmount {}

interface CounterUse extends HeldAmount {
  readonly spent: NanoUsd;
}

/** In the present day and month. */
interface KeySpending {
  readonly day: NanoUsd;
  readonly month: NanoUsd;
}

interface KeyUse extends KeySpending, HeldAmount {}

/** The invariant, recomputed from the entries: credits − charges − open holds = available. */
export interface LedgerAudit {
  readonly creditsNano: bigint;
  readonly chargesNano: bigint;
  readonly heldNano: bigint;
  readonly availableNano: bigint;
  readonly heldAt: HeldAmount["heldAt"];
  readonly writeOffsNano: bigint;
  readonly lossesNano: bigint;
  /** Every running sum, in the store or in memory, and every payment's credit, that is not what the entries say. */
  readonly drifts: readonly { readonly account: string; readonly driftNano: bigint }[];
}
