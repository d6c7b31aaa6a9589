import type { Answer, Question } from "./messages.ts";

/** What one process has asked another, and has no answer to yet. */
export class Questions<Query extends { readonly about: keyof Answers }, Answers> {
  private lastId = 0;
  private readonly open = new Map<number, (answer: unknown) => void>();

  constructor(private readonly send: (question: Question<Query>) => void) {}

  /** Resolves with undefined once the other process has ended, and at once where too much is open already. */
  async request<Q extends Query>(query: Q): Promise<Answers[Q["about"]] | undefined> {
    if (this.open.size >= MAX_OPEN) return undefined;
    const id = ++this.lastId;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.open.set(id, resolve);
    this.send({ kind: "question", id, query });
    const answer = await promise;
    this.open.delete(id);
    return answer as Answers[Q["about"]] | undefined;
  }

  answered({ id, answer }: Answer<unknown>): void {
    this.open.get(id)?.(answer);
  }

  /** Nobody answers what is open. */
  drop(): void {
    for (const resolve of this.open.values()) resolve(undefined);
  }
}

const MAX_OPEN = 10_000;
