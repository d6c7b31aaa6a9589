import type { Balance, Budget, Key } from "../../keys/key.ts";
import { hasEnded, type StoredRun } from "../../keys/run.ts";
import {
  allowanceCounter,
  budgetCounter,
  isBalanceCounter,
  keyCounter,
  runCounters,
} from "../../ledger/counter.ts";
import type { CreditBooks } from "../../ledger/credit.ts";
import type { BalanceView } from "../../ledger/ledger.ts";
import type { Allowance } from "../../ledger/reservation.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { Bookkeeping } from "./bookkeeping.ts";

/** What people may see of the books, by the names that they know: a key, a budget, an allowance. */
export function ledgerOperations(
  books: Bookkeeping,
  allowances: (balance: Balance, blocks: readonly string[]) => readonly Allowance[],
): LedgerOperations {
  const heldAt = heldAtOf(books);
  const useOf = async (balanceId: BalanceId, run: StoredRun): Promise<RunUse> => {
    const { money, calls } = runCounters({ balanceId, ...run });
    return { run, spending: await books.use(money), calls: await books.use(calls), heldAt };
  };
  return {
    heldAt,
    balance: books.balance,
    async keyUse({ rotationId }, at) {
      const day = await books.use(keyCounter("day", rotationId, at));
      const month = await books.use(keyCounter("month", rotationId, at));
      return { day: day.spent, month: month.spent, held: month.held };
    },
    budgetUse: (budget, at) => books.use(budgetCounter(budget.id, budget.window, at)),
    async runUse(balanceId, name, at) {
      const run = await books.keys.run(balanceId, name);
      return run === null || hasEnded(run, at) ? null : useOf(balanceId, run);
    },
    useOf,
    async openTier(balance, blocks, at) {
      const uses = allowances(balance, blocks).map(async ({ owner, limit }) => {
        const { spent: used } = await books.use(allowanceCounter(owner, at));
        return { limit, used };
      });
      return (await Promise.all(uses)).reduce((a, b) => (b.limit - b.used < a.limit - a.used ? b : a));
    },
    credit: books.credit,
    debit: books.debit,
    credits: books.credits,
    audit: () => auditOf(books),
  };
}

/** A node knows what its own requests hold, and of the others only what they were granted. */
const heldAtOf = ({ node }: Pick<Bookkeeping, "node">): HeldAt =>
  node === null ? "all_processes" : "this_process";

/** The recomputed books, with what is held at this moment. */
async function auditOf(books: Bookkeeping): Promise<LedgerAudit> {
  const { credits, charges, losses, writeOffs, drifts } = await books.audit();
  const ofPayments = (await books.payments.drifts()).map(({ payment, driftNano }) => ({
    account: `payment ${payment}`,
    driftNano,
  }));
  let held = 0n;
  for (const counter of books.ledger.booked()) if (isBalanceCounter(counter.id)) held += BigInt(counter.held);
  return {
    creditsNano: credits,
    chargesNano: charges,
    heldNano: held,
    availableNano: credits - charges - held,
    heldAt: heldAtOf(books),
    writeOffsNano: writeOffs,
    lossesNano: losses,
    drifts: [...drifts, ...ofPayments],
  };
}

/** What people may see of the ledger, and credit. */
export interface LedgerOperations extends CreditBooks {
  readonly heldAt: HeldAt;
  balance(id: BalanceId): Promise<BalanceView>;
  keyUse(key: Key, at: EpochMs): Promise<KeyUse>;
  budgetUse(budget: Budget, at: EpochMs): Promise<{ readonly spent: NanoUsd; readonly held: NanoUsd }>;
  /** Null where the balance has no such run now. */
  runUse(balance: BalanceId, name: string, at: EpochMs): Promise<RunUse | null>;
  useOf(balance: BalanceId, run: StoredRun): Promise<RunUse>;
  /** Free requests of the present UTC day, by the allowance that has the fewest left. */
  openTier(
    balance: Balance,
    blocks: readonly string[],
    at: EpochMs,
  ): Promise<{ readonly limit: number; readonly used: number }>;
  audit(): Promise<LedgerAudit>;
}

/** Of a run; what is spent of calls, and held, is a number of them. */
export interface RunUse {
  readonly run: StoredRun;
  readonly spending: CounterUse;
  readonly calls: CounterUse;
  readonly heldAt: HeldAt;
}

/** Whose open requests are counted as held. */
export type HeldAt = "all_processes" | "this_process";

type CounterUse = Awaited<ReturnType<Bookkeeping["use"]>>;

/** Spent in the present day and month, and held by open requests. */
export interface KeyUse {
  readonly day: NanoUsd;
  readonly month: NanoUsd;
  readonly held: NanoUsd;
}

/** The invariant, recomputed from the entries: credits − charges − open holds = available. */
export interface LedgerAudit {
  readonly creditsNano: bigint;
  readonly chargesNano: bigint;
  readonly heldNano: bigint;
  readonly availableNano: bigint;
  readonly heldAt: HeldAt;
  readonly writeOffsNano: bigint;
  readonly lossesNano: bigint;
  /** Every running sum, in the store or in memory, and every payment's credit, that is not what the entries say. */
  readonly drifts: readonly { readonly account: string; readonly driftNano: bigint }[];
}
