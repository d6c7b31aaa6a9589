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

/** Questions to another process that it has not answered yet. */
export class Questions<Queries extends AsMethods<Queries>> {
  private lastId = 0;
  private readonly open = new Map<number, (answer: unknown) => void>();

  constructor(private readonly send: (question: Question<Queries>) => void) {}

  /** Resolves with undefined once the other process has ended, and at once where too much is open already. */
  async request<Name extends keyof Queries>(
    name: Name,
    ...values: Parameters<Queries[Name]>
  ): Promise<AnswerOf<Queries, Name> | undefined> {
    if (this.open.size >= MAX_OPEN) return undefined;
    const id = ++this.lastId;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.open.set(id, resolve);
    this.send({ kind: "question", id, name, values });
    const answer = await promise;
    this.open.delete(id);
    return answer as AnswerOf<Queries, Name> | undefined;
  }

  answered({ id, answer }: Answer): void {
    this.open.get(id)?.(answer);
  }

  /** The other process has ended. */
  drop(): void {
    for (const resolve of this.open.values()) resolve(undefined);
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
