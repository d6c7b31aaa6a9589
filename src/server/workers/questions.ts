/** A method that another process has, and what it is called with. */
export interface Question<Queries> {
  readonly kind: "question";
  readonly id: number;
  readonly name: keyof Queries;
  readonly values: readonly unknown[];
}

export interface Answer {
  readonly kind: "answer";
  /** The question's. */
  readonly id: number;
  readonly answer: unknown;
}

/**
 * Questions to another process that it has not answered yet. An answer may be lost, so the oldest question is given up when a
 * new one needs its place. A process that hangs or falls behind is sent no more than `MAX_OPEN` ahead: they wait in its pipe.
 */
export class Questions<Queries extends AsMethods<Queries>> {
  private lastId = 0;
  private readonly open = new Map<number, (answer: unknown) => void>();
  /** The newest question that was answered: those before it have been read. */
  private answeredId = 0;

  constructor(private readonly send: (question: Question<Queries>) => void) {}

  /** Resolves with undefined once the other process has ended, and at once if it answered none of the last `MAX_OPEN`. */
  request<Name extends keyof Queries>(
    name: Name,
    ...values: Parameters<Queries[Name]>
  ): Promise<AnswerOf<Queries, Name> | undefined> {
    if (this.lastId - this.answeredId >= MAX_OPEN) return Promise.resolve(undefined);
    if (this.open.size >= MAX_OPEN) this.settle(this.open.keys().next().value!, undefined);
    const id = ++this.lastId;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.open.set(id, resolve);
    this.send({ kind: "question", id, name, values });
    return promise as Promise<AnswerOf<Queries, Name> | undefined>;
  }

  answered({ id, answer }: Answer): void {
    this.answeredId = Math.max(this.answeredId, id);
    this.settle(id, answer);
  }

  /** The other process has ended. */
  drop(): void {
    this.answeredId = this.lastId;
    for (const id of this.open.keys()) this.settle(id, undefined);
  }

  private settle(id: number, answer: unknown): void {
    this.open.get(id)?.(answer);
    this.open.delete(id);
  }
}

/** Answers another process's question. */
export const answerTo = async <Queries extends AsMethods<Queries>>(
  { id, name, values }: Question<Queries>,
  queries: Queries,
): Promise<Answer> => ({ kind: "answer", id, answer: await queries[name](...(values as never[])) });

type AsMethods<Queries> = { readonly [Name in keyof Queries]: (...values: never[]) => unknown };

export type AnswerOf<Queries extends AsMethods<Queries>, Name extends keyof Queries> = Awaited<
  ReturnType<Queries[Name]>
>;

const MAX_OPEN = 10_000;
