import type { CounterId } from "../../src/ledger/counter.ts";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import { type HoldRecord, parseRecord, partOf, type TerminalRecord } from "../../src/ledger/record.ts";
import { type OrphanHold, recoveredEnd } from "../../src/ledger/recovery.ts";
import { type CommitBatch, CommitUnknown } from "../../src/store/journal/postgres-journal.ts";
import { addSpending } from "../../src/store/ledger/ends.ts";
import type { ReceiptId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import type { Random } from "./random.ts";
import { check } from "./world.ts";

/**
 * What PostgreSQL keeps of nodes that have no journal: streams under way, ends, and which lives may still
 * commit. A commit whose answer is given up may be under way for long: it comes about, or does not, before
 * another one that inserts the same may, and before its life is closed. That is what PostgreSQL's locks come
 * to.
 */
export class SimulatedPostgres {
  readonly ends = new Map<ReceiptId, TerminalRecord>();
  readonly holds = new Map<ReceiptId, LifesHold>();
  private readonly sums = new Map<string, Map<CounterId, number>>();
  private readonly closed = new Set<string>();
  private stuck: Commit[] = [];
  /** A commit may take so long. */
  slowMs = 3_000;

  constructor(private readonly random: Random) {}

  /** Throws for a life that is over. */
  commit(life: string, batch: CommitBatch): void {
    const inserts = new Set(rowsOf(batch));
    this.resolve((one) => one.life === life && rowsOf(one.batch).some((row) => inserts.has(row)));
    if (this.closed.has(life)) throw new EpochFenced(`${life} is over`);
    this.apply(life, batch);
  }

  /** Given up by its node, on its way all the same. */
  getStuck(life: string, batch: CommitBatch): void {
    if (!this.closed.has(life)) this.stuck.push({ life, batch });
  }

  isClosed(life: string): boolean {
    return this.closed.has(life);
  }

  /**
   * From now on the life can commit nothing; what it left open is ended. Returns what it has spent in all.
   */
  close(life: string): ReadonlyMap<CounterId, NanoUsd> {
    this.resolve((one) => one.life === life);
    this.closed.add(life);
    for (const [receipt, orphan] of this.holds) {
      if (orphan.life !== life) continue;
      this.insertEnd(
        life,
        recoveredEnd(orphan, WRITE_OFF_TOKENS, () => "{}"),
      );
      this.holds.delete(receipt);
    }
    return this.spent(life);
  }

  /** Streams of which something was given to their clients, as far as is committed. */
  started(life: string): ReceiptId[] {
    this.resolve((one) => one.life === life);
    return [...this.holds].flatMap(([receipt, one]) =>
      one.life === life && one.delivered > 0 ? [receipt] : [],
    );
  }

  /** By ends that are committed. */
  spent(life: string): ReadonlyMap<CounterId, NanoUsd> {
    return (this.sums.get(life) ?? new Map()) as ReadonlyMap<CounterId, NanoUsd>;
  }

  /** By streams that are there. */
  held(life: string): ReadonlyMap<CounterId, number> {
    const sums = new Map<CounterId, number>();
    const add = (id: CounterId, amount: number) => void sums.set(id, (sums.get(id) ?? 0) + amount);
    for (const { life: owner, hold, held } of this.holds.values()) {
      if (owner !== life) continue;
      for (const [counter, from, to] of hold.parts ?? []) add(counter, partOf({ from, to }, held));
      for (const counter of hold.counters) add(counter, held);
      for (const counter of hold.allowances) add(counter, 1);
    }
    return sums;
  }

  /** What was under way comes about, or does not. */
  resolve(which: (one: Commit) => boolean = () => true): void {
    const resolved = this.stuck.filter(which);
    this.stuck = this.stuck.filter((one) => !resolved.includes(one));
    for (const { life, batch } of resolved) if (this.random.chance(0.5)) this.apply(life, batch);
  }

  private apply(life: string, { ends, holds, moved, closed }: CommitBatch): void {
    for (const end of ends) this.insertEnd(life, end);
    for (const { receipt, text, held, delivered } of holds) {
      const known = this.holds.get(receipt)?.delivered ?? 0;
      const hold = parseRecord(text) as HoldRecord;
      this.holds.set(receipt, { life, hold, held, delivered: Math.max(known, delivered) });
    }
    for (const { receipt, held, delivered } of moved) {
      const hold = this.holds.get(receipt);
      if (hold === undefined) continue;
      this.holds.set(receipt, { ...hold, held: held ?? hold.held, delivered: delivered ?? hold.delivered });
    }
    for (const receipt of closed) this.holds.delete(receipt);
  }

  private insertEnd(life: string, end: TerminalRecord): void {
    if (this.ends.has(end.receipt)) return;
    this.ends.set(end.receipt, end);
    const sums = this.sums.get(life) ?? new Map<CounterId, number>();
    this.sums.set(life, sums);
    addSpending(sums, end);
  }
}

/**
 * A way to it that loses what goes there and what comes back, for as long as `cut` says, and now and then
 * besides; and now and then PostgreSQL takes its time.
 */
export function commitsOver(
  network: { push(message: () => void): unknown },
  postgres: SimulatedPostgres,
  { life, cut, random, after }: CommitLine,
): (batch: CommitBatch) => Promise<void> {
  return (batch) =>
    new Promise((resolve, reject) => {
      let state: "on its way" | "committed" | "given up" = "on its way";
      const arrive = () => {
        if (cut() || state !== "on its way") return;
        let answer: () => void;
        try {
          postgres.commit(life, batch);
          answer = resolve;
        } catch (error) {
          answer = () => reject(error);
        }
        state = "committed";
        network.push(() => {
          if (!cut()) answer();
        });
      };
      after(random.chance(0.2) ? random.below(postgres.slowMs) : 0, () => network.push(arrive));
      after(GIVE_UP_MS, () => {
        const wasSent = state === "committed";
        const isStuck = state === "on its way" && random.chance(0.5);
        state = "given up";
        if (isStuck) postgres.getStuck(life, batch);
        reject(wasSent || isStuck ? new CommitUnknown("no answer") : new Error("it never left"));
      });
    });
}

export interface CommitLine {
  readonly life: string;
  readonly cut: () => boolean;
  readonly random: Random;
  /** On the node's own time, which ends with it. */
  readonly after: (ms: number, run: () => void) => void;
}

/** A node waits so long for the answer to a commit. */
const GIVE_UP_MS = 5_000;

/** Answers to clients of nodes without a journal. */
export class Promises {
  private readonly started = new Set<ReceiptId>();
  private readonly charged = new Map<ReceiptId, NanoUsd>();

  /** The first byte is with the client. */
  begin(receipt: ReceiptId): void {
    this.started.add(receipt);
  }

  /** The last one is. */
  end(receipt: ReceiptId, charged: NanoUsd): void {
    this.charged.set(receipt, charged);
  }

  /** Once everything is over: whatever was promised is in the books. */
  judge({ ends, holds }: SimulatedPostgres): void {
    for (const receipt of this.started) check(ends.has(receipt), `${receipt} had started and has no receipt`);
    for (const [receipt, charged] of this.charged) {
      const end = ends.get(receipt);
      check(end?.state === "settled", `${receipt} was acknowledged and is ${end?.state ?? "nowhere"}`);
      check(end.charged === charged, `${receipt} was quoted ${charged} and charged ${end.charged}`);
    }
    check(holds.size === 0, `${holds.size} holds were left behind`);
  }

  get count(): number {
    return this.charged.size;
  }
}

interface LifesHold extends OrphanHold {
  readonly life: string;
}

interface Commit {
  readonly life: string;
  readonly batch: CommitBatch;
}

/** Who inserts one that another is inserting waits for that; who deletes or changes it does not see it. */
const rowsOf = ({ ends, holds }: CommitBatch): string[] => [
  ...ends.map(({ receipt }) => `end ${receipt}`),
  ...holds.map(({ receipt }) => `hold ${receipt}`),
];

const WRITE_OFF_TOKENS = 50;
