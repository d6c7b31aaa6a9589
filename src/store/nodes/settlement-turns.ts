import type { Grant, Statement } from "../../ledger/authority.ts";
import type { EpochFenced } from "../../ledger/membership.ts";

/** What nodes state in one turn of the event loop shares a sync, and is answered once that is done. */
export class SettlementTurns {
  private waiting: WaitingBatch[] = [];

  constructor(
    private readonly settleAll: (
      batches: readonly (readonly Statement[])[],
    ) => (readonly Grant[] | EpochFenced)[],
    private readonly durable: () => Promise<void>,
    private readonly defer: (run: () => void) => void,
  ) {}

  /** Of one node, which waits for the answer before it states more. */
  settle(statements: readonly Statement[]): Promise<readonly Grant[]> {
    const answer = Promise.withResolvers<readonly Grant[]>();
    if (this.waiting.push({ statements, answer }) === 1) this.defer(() => void this.settleWaiting());
    return answer.promise;
  }

  private async settleWaiting(): Promise<void> {
    const batches = this.waiting;
    this.waiting = [];
    try {
      const answers = this.settleAll(batches.map(({ statements }) => statements));
      // A grant that a power cut made undone would be given to another, and spent twice.
      await this.durable();
      for (const [index, { answer }] of batches.entries()) {
        const grants = answers[index]!;
        if (grants instanceof Error) answer.reject(grants);
        else answer.resolve(grants);
      }
    } catch (error) {
      for (const { answer } of batches) answer.reject(error);
    }
  }
}

interface WaitingBatch {
  readonly statements: readonly Statement[];
  readonly answer: PromiseWithResolvers<readonly Grant[]>;
}
