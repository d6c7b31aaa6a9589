import type { CounterId } from "../../ledger/counter.ts";

/**
 * Questions of a node about counters. All from one turn go together, and one batch is under way at a time, so they
 * arrive in the order in which they were made.
 */
export class BatchQueue<Question extends { readonly counter: CounterId }, Answer> {
  /** One per counter: a later question replaces one that was not sent yet, because it supersedes it. */
  private readonly queue = new Map<CounterId, PendingQuestion<Question, Answer>>();
  private busy = false;

  constructor(
    private readonly answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
    private readonly defer: (run: () => void) => void,
    private readonly maxBatch = 256,
  ) {}

  /** Rejects when the batch cannot be answered; the question may have had its effect nevertheless. */
  request(question: Question): Promise<Answer> {
    const queued = this.queue.get(question.counter);
    if (queued !== undefined) {
      queued.question = question;
      return queued.answer.promise;
    }
    const pending = { question, answer: Promise.withResolvers<Answer>() };
    this.queue.set(question.counter, pending);
    if (!this.busy) this.start();
    return pending.answer.promise;
  }

  private start(): void {
    this.busy = true;
    this.defer(async () => {
      const batch = [...this.queue.values().take(this.maxBatch)];
      for (const { question } of batch) this.queue.delete(question.counter);
      try {
        const answers = await this.answerAll(batch.map(({ question }) => question));
        for (const [index, { answer }] of batch.entries()) answer.resolve(answers[index]!);
      } catch (error) {
        for (const { answer } of batch) answer.reject(error);
      }
      this.busy = false;
      if (this.queue.size > 0) this.start();
    });
  }
}

interface PendingQuestion<Question, Answer> {
  question: Question;
  readonly answer: PromiseWithResolvers<Answer>;
}
