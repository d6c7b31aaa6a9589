import type { HeldAt } from "../../api/answers.ts";
import type { CounterId } from "../../ledger/counter.ts";
import type { CounterCache } from "../../ledger/counter-cache.ts";
import type { Clock } from "../../units/clock.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { BatchQueue } from "./batch-queue.ts";

/**
 * What open requests hold of a counter at all nodes. Only a node's memory knows what its requests hold at this
 * moment: the Authority knows what it granted, and what was used of it when the node last needed more. So a
 * node that shows an amount sends the others a question, and adds up their answers. If one cannot answer, the amount is that of
 * the node itself, and says so.
 */
export class FleetHolds {
  private readonly queue: BatchQueue<{ readonly counter: CounterId }, HeldAmount>;
  private questions = 0;
  /** The question under way: there is one at a time. */
  private current: OpenQuestion | null = null;
  /** Nodes that did not answer the last question: nobody waits for them again until they do. */
  private late: ReadonlySet<string> = new Set();

  constructor(private readonly parts: FleetHoldsParts) {
    this.queue = new BatchQueue(
      (questions) => this.sums(questions.map(({ counter }) => counter)),
      setImmediate,
      MAX_COUNTERS,
    );
  }

  of(counter: CounterId): Promise<HeldAmount> {
    return this.queue.request({ counter });
  }

  /** Another node shows what all hold of these. */
  async handleQuestion({ asker, number, counters }: HeldQuestion): Promise<void> {
    const { node, exchange } = this.parts;
    if (asker === node) return;
    // Without an answer, the asker shows its own part.
    await this.own(counters).then(
      (amounts) => exchange.sendAnswer({ asker, number, node, amounts }).catch(() => {}),
      () => {},
    );
  }

  handleAnswer({ asker, number, node, amounts }: HeldAnswer): void {
    if (asker !== this.parts.node) return;
    if (this.late.has(node)) this.late = new Set([...this.late].filter((name) => name !== node));
    if (this.current?.number !== number) return;
    this.current.answers.set(node, amounts);
    this.current.check();
  }

  private async sums(counters: readonly CounterId[]): Promise<HeldAmount[]> {
    const [elsewhere, own] = await Promise.all([this.elsewhere(counters), this.own(counters)]);
    return own.map((amount, at) =>
      elsewhere === null
        ? { held: amount, heldAt: "this_process" }
        : { held: (amount + elsewhere[at]!) as NanoUsd, heldAt: "all_processes" },
    );
  }

  /**
   * What ends meanwhile counts as held and is on the books as well, until the amount is read again; the other way round, it would
   * be on neither, and more would seem to be available than there is.
   */
  private async own(counters: readonly CounterId[]): Promise<NanoUsd[]> {
    const { ledger, books } = this.parts;
    const amounts = counters.map((counter) => ledger.counters.heldOn(counter));
    await books.catchUp();
    return amounts;
  }

  /** Null where a node did not answer. */
  private async elsewhere(counters: readonly CounterId[]): Promise<number[] | null> {
    const { node, exchange, clock } = this.parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    const question = new OpenQuestion(++this.questions, resolve);
    const timer = clock.after(ANSWER_MS, resolve);
    this.current = question;
    try {
      const others = await exchange.sendQuestion({ asker: node, number: question.number, counters });
      if (others === null || others.some((name) => this.late.has(name))) return null;
      question.others = others;
      question.check();
      await promise;
      this.late = new Set(question.missing);
      if (this.late.size > 0) return null;
      return counters.map((_, at) => others.reduce((sum, name) => sum + question.answers.get(name)![at]!, 0));
    } catch {
      return null;
    } finally {
      timer.cancel();
      this.current = null;
    }
  }
}

class OpenQuestion {
  /** Those that have to answer; null until they are known. */
  others: readonly string[] | null = null;
  readonly answers = new Map<string, readonly number[]>();

  constructor(
    readonly number: number,
    private readonly done: () => void,
  ) {}

  get missing(): string[] {
    return this.others!.filter((name) => !this.answers.has(name));
  }

  check(): void {
    if (this.others !== null && this.missing.length === 0) this.done();
  }
}

/** Carries questions and answers between nodes; both may be lost. */
export interface HeldExchange {
  /**
   * Sends a question to every node. Resolves with the names of the others, which have to answer; null where one of them
   * cannot, because it has lost its lease, or the store carries no messages.
   */
  sendQuestion(question: HeldQuestion): Promise<readonly string[] | null>;
  sendAnswer(answer: HeldAnswer): Promise<void>;
}

export interface HeldQuestion {
  readonly asker: string;
  /** Counts the asker's questions. */
  readonly number: number;
  readonly counters: readonly CounterId[];
}

export interface HeldAnswer extends Pick<HeldQuestion, "asker" | "number"> {
  /** Who answers. */
  readonly node: string;
  /** In the order of the question's counters. */
  readonly amounts: readonly NanoUsd[];
}

/** Held by open requests; of calls, a number of them. */
export interface HeldAmount {
  readonly held: NanoUsd;
  readonly heldAt: HeldAt;
}

interface FleetHoldsParts {
  readonly node: string;
  readonly exchange: HeldExchange;
  readonly ledger: { readonly counters: Pick<CounterCache, "heldOn"> };
  /** Resolves once what has ended is on the books of all. */
  readonly books: { catchUp(): Promise<void> };
  readonly clock: Pick<Clock, "after">;
}

/** A page waits no longer for the other nodes. */
const ANSWER_MS = 1_000;
/** With the longest names, 50 stay below the 8,000 bytes that a notification of PostgreSQL may have. */
const MAX_COUNTERS = 50;
