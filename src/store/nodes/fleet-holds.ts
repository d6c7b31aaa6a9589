import type { HeldAt } from "../../api/schema.ts";
import type { CounterId } from "../../ledger/counter.ts";
import type { CounterCache } from "../../ledger/counter-cache.ts";
import type { Clock } from "../../units/clock.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { BatchQueue } from "./batch-queue.ts";

/**
 * What open requests hold of a counter at all nodes. Only a node's memory knows what its requests hold at this
 * moment: the Authority knows what it granted, and what was used of it when the node last needed more. So a
 * node that shows an amount sends the others a question, and adds up their answers. A node that does not answer holds at
 * most what it was granted and has not shipped, and nobody else can spend that.
 */
export class FleetHolds {
  private readonly queue: BatchQueue<{ readonly counter: CounterId }, HeldAmount>;
  private questions = 0;
  /** The question under way: there is one at a time. */
  private current: OpenQuestion | null = null;
  /** Nodes that did not answer the last question. */
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
    // Without an answer, the asker counts what this node was granted.
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
    return own.map((amount, at) => {
      const { held, isExact } = elsewhere[at]!;
      return {
        held: (amount + held) as NanoUsd,
        heldAt: isExact ? "all_processes" : "all_processes_at_most",
      };
    });
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

  private async elsewhere(counters: readonly CounterId[]): Promise<HeldElsewhere[]> {
    const { node, exchange, clock, grants } = this.parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    const question = new OpenQuestion(++this.questions, resolve);
    const timer = clock.after(ANSWER_MS, resolve);
    this.current = question;
    try {
      const { answering, silent } = await exchange.sendQuestion({
        asker: node,
        number: question.number,
        counters,
      });
      question.awaited = answering.filter((name) => !this.late.has(name));
      question.check();
      await promise;
      this.late = new Set(answering.filter((name) => !question.answers.has(name)));
      const absent = [...silent, ...this.late];
      // Before what is spent is read: what is shipped meanwhile counts twice, and not on neither.
      const granted = absent.length === 0 ? [] : await grants.granted(absent, counters);
      return counters.map((_, at) => {
        const unknown = granted[at] ?? 0;
        const answers = [...question.answers.values()].map((amounts) => amounts[at]!);
        return { held: answers.reduce((sum, held) => sum + held, unknown), isExact: unknown === 0 };
      });
    } finally {
      timer.cancel();
      this.current = null;
    }
  }
}

interface HeldElsewhere {
  readonly held: number;
  /** False where it counts what was granted to a node that does not answer. */
  readonly isExact: boolean;
}

class OpenQuestion {
  /** Nodes whose answers are awaited; null until they are known. */
  awaited: readonly string[] | null = null;
  readonly answers = new Map<string, readonly number[]>();

  constructor(
    readonly number: number,
    private readonly done: () => void,
  ) {}

  check(): void {
    if (this.awaited?.every((name) => this.answers.has(name))) this.done();
  }
}

/** Carries questions and answers between nodes; both may be lost. */
export interface HeldExchange {
  /** Sends a question to every node. */
  sendQuestion(question: HeldQuestion): Promise<OtherNodes>;
  sendAnswer(answer: HeldAnswer): Promise<void>;
}

/** The open nodes but the one that asks. */
export interface OtherNodes {
  readonly answering: readonly string[];
  /** Cannot answer: they have lost their leases, or the store carries no messages. */
  readonly silent: readonly string[];
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
  readonly grants: {
    /** Granted to these nodes, and not shipped as spent, of each counter. */
    granted(nodes: readonly string[], counters: readonly CounterId[]): Promise<readonly number[]>;
  };
  /** Resolves once what has ended is on the books of all. */
  readonly books: { catchUp(): Promise<void> };
  readonly clock: Pick<Clock, "after">;
}

/** A page waits no longer for the other nodes, and for those that were late not again until they have answered. */
const ANSWER_MS = 1_000;
/** With the longest names, 50 stay below the 8,000 bytes that a notification of PostgreSQL may have. */
const MAX_COUNTERS = 50;
