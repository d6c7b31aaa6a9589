import type { Statement } from "../../src/ledger/authority.ts";
import { type CounterId, isValueCounter } from "../../src/ledger/counter.ts";
import { Grants, onceDurable } from "../../src/ledger/grants.ts";
import { type Journal, type KeyHolders, Ledger } from "../../src/ledger/ledger.ts";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import { type LedgerRecord, partOf } from "../../src/ledger/record.ts";
import { Replay } from "../../src/ledger/recovery.ts";
import type { Reservation } from "../../src/ledger/reservation.ts";
import { type CommitBatch, PostgresJournal } from "../../src/store/journal/postgres-journal.ts";
import type { Clock } from "../../src/units/clock.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";

/** One life of one ledger. */
export abstract class FleetNode {
  readonly ledger: Ledger;
  readonly grants: Grants;
  readonly open: Reservation[] = [];
  /** Requests that are not admitted or refused yet. */
  asking = 0;
  /** On the wrong side of a partition, or paused: neither sends nor receives anything. */
  cut = false;
  dead = false;
  /** What it has spent of values of tags that it forgot. */
  readonly forgotten = new Map<CounterId, number>();

  constructor(
    private readonly parts: NodeParts,
    private readonly pages: Pages,
  ) {
    const { name, epoch, clock, send } = parts;
    this.grants = new Grants(name, epoch, clock, onceDurable(pages, send));
    this.ledger = new Ledger(
      clock,
      pages,
      { spent: () => ZERO_USD, credited: () => parts.credit },
      parts.holders,
      this.grants,
    );
  }

  get name(): string {
    return this.parts.name;
  }

  get epoch(): number {
    return this.parts.epoch;
  }

  get skewMs(): number {
    return this.parts.skewMs;
  }

  durable(sequence: number): true | Promise<boolean> {
    return this.pages.durable(sequence);
  }

  die(): void {
    this.dead = true;
    this.parts.end();
  }

  /** Forgets counters that nobody uses, and gives back what it was granted of values of tags. */
  forgetQuiet(): number {
    const before = [...this.ledger.counters.booked()].filter(({ id }) => isValueCounter(id));
    this.ledger.forgetIdle(this.appliedThrough, QUIET_MS);
    const left = new Set(this.ledger.counters.booked());
    const gone = before.filter((counter) => !left.has(counter));
    for (const { id, spent } of gone) this.forgotten.set(id, (this.forgotten.get(id) ?? 0) + spent);
    return gone.length;
  }

  /** The record up to which its ends are shipped. */
  protected abstract get appliedThrough(): number;

  giveBack(limits: ReadonlyMap<CounterId, NanoUsd>): void {
    for (const counter of this.ledger.counters.booked()) {
      const limit = limits.get(counter.id);
      if (limit !== undefined) this.grants.giveBack(counter, limit);
    }
  }

  checkpoint(): void {
    this.ledger.checkpoint();
  }
}

export interface NodeParts {
  readonly name: string;
  readonly epoch: number;
  readonly skewMs: number;
  readonly clock: Clock;
  readonly credit: NanoUsd;
  readonly holders: KeyHolders;
  readonly send: (statement: Statement) => void;
  /** Silences its timers. */
  end(): void;
}

/** What a ledger writes into. */
interface Pages extends Journal {
  durable(sequence: number): true | Promise<boolean>;
  flushed(): Promise<boolean>;
}

/** Its journal takes everything at once, and outlives it. */
export class JournalNode extends FleetNode {
  constructor(
    parts: NodeParts,
    private readonly records: LedgerRecord[] = [],
  ) {
    super(parts, {
      append: (record) => records.push(record),
      withdraw: () => false,
      durable: () => true,
      flushed: async () => true,
    });
  }

  protected override get appliedThrough(): number {
    return Number.POSITIVE_INFINITY;
  }

  /** What the journal says was spent, with what was open billed whole, as the worst recovery would. */
  recover(): ReadonlyMap<CounterId, NanoUsd> {
    const spent = new Map<CounterId, NanoUsd>();
    const add = (counters: readonly CounterId[], amount: NanoUsd) => {
      for (const counter of counters) spent.set(counter, ((spent.get(counter) ?? 0) + amount) as NanoUsd);
    };
    const replay = new Replay();
    for (const record of this.records) {
      replay.add(record);
      if (record.kind !== "terminal") continue;
      add(record.counters, record.charged);
      for (const [counter, part] of record.parts ?? []) add([counter], part);
      add(record.allowances, ONE_REQUEST);
    }
    for (const { hold, held, delivered } of replay.orphans.values()) {
      add(hold.counters, held);
      for (const [counter, from, to] of hold.parts ?? []) add([counter], partOf({ from, to }, held));
      if (delivered > 0) add(hold.allowances, ONE_REQUEST);
    }
    return spent;
  }
}

/** It keeps nothing. */
export class DisklessNode extends FleetNode {
  constructor(
    parts: NodeParts,
    commit: (batch: CommitBatch) => Promise<void>,
    onClosed: () => void,
    readonly journal = new PostgresJournal({
      commit,
      clock: parts.clock,
      defer: queueMicrotask,
      onFault: (error) => {
        if (error instanceof EpochFenced) onClosed();
      },
    }),
  ) {
    super(parts, journal);
  }

  protected override get appliedThrough(): number {
    return this.journal.durableNow;
  }

  override checkpoint(): void {
    super.checkpoint();
    this.journal.schedule();
  }
}

/** Counters that nobody used for so long are forgotten. */
const QUIET_MS = 500;
const ONE_REQUEST = 1 as NanoUsd;
