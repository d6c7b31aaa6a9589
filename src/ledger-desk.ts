import type { Bookkeeping } from "./bookkeeping.ts";
import type { LedgerAudit, LedgerDesk } from "./http/deps.ts";
import type { Balance } from "./keys/key.ts";
import { allowanceCounter, budgetCounter, isBalanceCounter, keyCounter } from "./ledger/counter.ts";
import type { Allowance } from "./ledger/reservation.ts";

/** What people may see of the books, by the names that they know: a key, a budget, an allowance. */
export function ledgerDesk(
  books: Bookkeeping,
  allowances: (balance: Balance, blocks: readonly string[]) => readonly Allowance[],
): LedgerDesk {
  return {
    balance: books.balance,
    async keyUse({ lineage }, at) {
      const day = await books.use(keyCounter("day", lineage, at));
      const month = await books.use(keyCounter("month", lineage, at));
      return { day: day.spent, month: month.spent, held: month.held };
    },
    budgetUse: (budget, at) => books.use(budgetCounter(budget.id, budget.window, at)),
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

/** The recomputed books, with what is held at this moment. */
async function auditOf(books: Bookkeeping): Promise<LedgerAudit> {
  const { credits, charges, losses, writeOffs, drifts } = await books.audit();
  let held = 0n;
  for (const counter of books.ledger.booked()) if (isBalanceCounter(counter.id)) held += BigInt(counter.held);
  return {
    creditsNano: credits,
    chargesNano: charges,
    heldNano: held,
    availableNano: credits - charges - held,
    writeOffsNano: writeOffs,
    lossesNano: losses,
    drifts,
  };
}
