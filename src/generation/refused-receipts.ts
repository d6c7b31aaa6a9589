import { LRUCache } from "lru-cache";
import { formatReceipt, type Receipt } from "../ledger/receipt.ts";
import type { ReceiptReader, StoredReceipt } from "../store/receipts.ts";
import type { BalanceId, ReceiptId } from "../units/id.ts";

/**
 * The books' receipts, and in memory the latest of requests that were refused: those opened no hold and are
 * not written down. Those of balances without credit are apart, because they could push out all others. Of several workers, each remembers its own.
 */
export class Receipts implements ReceiptReader {
  readonly receipts: ReceiptReader["receipts"];
  private readonly paying = new LRUCache<ReceiptId, StoredReceipt>({ max: MAX_REFUSED });
  private readonly unpaid = new LRUCache<ReceiptId, StoredReceipt>({ max: MAX_UNPAID });

  constructor(
    private readonly books: ReceiptReader,
    private readonly peers: Pick<ReceiptReader, "receipt"> | null,
  ) {
    this.receipts = books.receipts;
  }

  async receipt(id: ReceiptId): Promise<StoredReceipt | null> {
    const here = this.refusedHere(id) ?? (await this.books.receipt(id));
    return here ?? this.peers?.receipt(id) ?? null;
  }

  refusedHere(id: ReceiptId): StoredReceipt | null {
    return this.paying.get(id) ?? this.unpaid.get(id) ?? null;
  }

  keepRefused(receipt: Receipt & { readonly balanceId: BalanceId }, pays: boolean): void {
    const { id, createdAt, keyId, balanceId } = receipt;
    const kept = pays ? this.paying : this.unpaid;
    kept.set(id, { id, at: createdAt, keyId, balanceId, body: formatReceipt(receipt) });
  }
}

const MAX_REFUSED = 10_000;
const MAX_UNPAID = 5_000;
