import type { StoredReceipt } from "../../store/ledger/receipts.ts";
import type { Clock } from "../../units/clock.ts";
import type { ReceiptId } from "../../units/id.ts";
import { ANSWER_MS } from "./messages.ts";

/** A receipt that is in the memory of one worker, for whichever of the others was asked for it. */
export class ReceiptSearch {
  private searches = 0;
  private readonly open = new Map<number, OpenSearch>();

  constructor(private readonly clock: Clock) {}

  /** Null when none of them has it, or those that have not said so keep silent. */
  async find(id: ReceiptId, workers: readonly SearchedWorker[]): Promise<StoredReceipt | null> {
    if (workers.length === 0) return null;
    const search = ++this.searches;
    const { promise, resolve } = Promise.withResolvers<StoredReceipt | null>();
    this.open.set(search, { missing: workers.length, resolve });
    const timer = this.clock.after(ANSWER_MS, () => resolve(null));
    for (const worker of workers) worker.find(search, id);
    try {
      return await promise;
    } finally {
      this.open.delete(search);
      timer.cancel();
    }
  }

  answered(search: number, receipt: StoredReceipt | null): void {
    const open = this.open.get(search);
    if (open === undefined) return;
    open.missing -= 1;
    if (receipt !== null || open.missing === 0) open.resolve(receipt);
  }
}

export interface SearchedWorker {
  find(search: number, id: ReceiptId): void;
}

interface OpenSearch {
  /** Workers that have not answered. */
  missing: number;
  resolve(receipt: StoredReceipt | null): void;
}
