import type { Grant, Statement } from "../ledger/authority.ts";
import type { CounterId } from "../ledger/counter.ts";

/**
 * A node's statements on their way to its store. Those of one turn go together, and one batch is under way at a
 * time, so they arrive in the order in which they were made.
 */
export class StatementQueue {
  /** One per counter: a later statement replaces one that was not sent yet, because it supersedes it. */
  private readonly queue = new Map<CounterId, PendingStatement>();
  private busy = false;

  constructor(
    private readonly settleAll: (statements: readonly Statement[]) => Promise<readonly Grant[]>,
    private readonly defer: (run: () => void) => void,
  ) {}

  /** Rejects when the store cannot be reached; the statement may have been settled nevertheless. */
  settle(statement: Statement): Promise<Grant> {
    const queued = this.queue.get(statement.counter);
    if (queued !== undefined) {
      queued.statement = statement;
      return queued.answer.promise;
    }
    const waiting = { statement, answer: Promise.withResolvers<Grant>() };
    this.queue.set(statement.counter, waiting);
    if (!this.busy) this.start();
    return waiting.answer.promise;
  }

  private start(): void {
    this.busy = true;
    this.defer(async () => {
      const batch = [...this.queue.values().take(MAX_BATCH)];
      for (const { statement } of batch) this.queue.delete(statement.counter);
      try {
        const grants = await this.settleAll(batch.map(({ statement }) => statement));
        for (const [index, { answer }] of batch.entries()) answer.resolve(grants[index]!);
      } catch (error) {
        for (const { answer } of batch) answer.reject(error);
      }
      this.busy = false;
      if (this.queue.size > 0) this.start();
    });
  }
}

interface PendingStatement {
  statement: Statement;
  readonly answer: PromiseWithResolvers<Grant>;
}

const MAX_BATCH = 256;
