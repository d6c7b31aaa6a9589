import { formatReceipt, type Receipt } from "../ledger/receipt.ts";
import type { SpendableCredit } from "../ledger/spendable-credit.ts";
import type { ReceiptReader, StoredReceipt, UnbookedReceipts } from "../store/ledger/receipts.ts";
import { boundedCache } from "../units/bounded-cache.ts";
import type { BalanceId, ReceiptId } from "../units/id.ts";

/**
 * The books' receipts, and in memory the latest of requests that were refused: those opened no hold and are
 * not written down. Refusals of balances without credit are apart, because they could push out all others. Each
 * worker has its own of both until the store has them, so the others are searched.
 */
export class Receipts implements ReceiptReader {
  readonly receipts: ReceiptReader["receipts"];
  private readonly paying = boundedCache<ReceiptId, StoredReceipt>(MAX_REFUSED);
  private readonly unpaid = boundedCache<ReceiptId, StoredReceipt>(MAX_UNPAID);

  constructor(
    private readonly books: ReceiptReader & UnbookedReceipts,
    private readonly peers: Pick<ReceiptReader, "receipt"> | null,
    private readonly credit: Pick<SpendableCredit, "known">,
  ) {
    this.receipts = books.receipts;
  }

  async receipt(id: ReceiptId): Promise<StoredReceipt | null> {
    const { books, peers } = this;
    const found = this.refused(id) ?? (await books.receipt(id, peers === null));
    if (found !== null || peers === null) return found;
    // It may have become the store's since that was read, or be on its way from another machine.
    return (await peers.receipt(id)) ?? books.receipt(id);
  }

  /** For the other workers. */
  here(id: ReceiptId): StoredReceipt | null {
    return this.refused(id) ?? this.books.unbooked(id);
  }

  /** In memory: the request opened no hold. */
  keepRefused(receipt: Receipt & { readonly balanceId: BalanceId }): void {
    const { id, createdAt, keyId, balanceId } = receipt;
    const pays = (this.credit.known(balanceId) ?? 0) > 0;
    const kept = pays ? this.paying : this.unpaid;
    kept.set(id, { id, at: createdAt, keyId, balanceId, body: formatReceipt(receipt) });
  }

  private refused(id: ReceiptId): StoredReceipt | null {
    return this.paying.get(id) ?? this.unpaid.get(id) ?? null;
  }
}

const MAX_REFUSED = 10_000;
const MAX_UNPAID = 5_000;
