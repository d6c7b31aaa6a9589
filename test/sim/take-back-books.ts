import type { Database } from "bun:sqlite";
import type { Statement } from "../../src/ledger/authority.ts";
import { balanceCounter } from "../../src/ledger/counter.ts";
import type { Credit, Debit, TooMuch } from "../../src/ledger/credit.ts";
import { Debits } from "../../src/ledger/debits.ts";
import { GrantClaim, Grants } from "../../src/ledger/grants.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import type { LedgerRecord, TerminalRecord } from "../../src/ledger/record.ts";
import { Replay, recoveredEnd } from "../../src/ledger/recovery.ts";
import { Reservation, type ReservationRequest } from "../../src/ledger/reservation.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqliteAuthority } from "../../src/store/ledger/grants.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SqliteRegistry } from "../../src/store/nodes/sqlite-registry.ts";
import { type Clock, pause } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";
import { enterCredit } from "../store/enter-credit.ts";
import type { VirtualClock } from "./clock.ts";
import type { Random } from "./random.ts";

/** The ledger of one process that has all of it, or of several nodes. */
export interface TakeBackBooks {
  /** Tells of the hold in the turn in which it is taken; of none where there is no room. */
  admit(balance: BalanceId, amount: NanoUsd, taken: (hold: OpenHold) => void): Promise<void>;
  debit(debit: Debit, gateway: number): Promise<Credit | TooMuch>;
  credit(credit: Credit): void;
  /** The store has credited it. */
  credited(balance: BalanceId, amount: NanoUsd): void;
  endClaims(): Promise<void>;
  /** A process ends. What its requests were charged, by their receipts. */
  crash(): ReadonlyMap<string, number>;
  /** Nothing fails any more. */
  calm(): void;
  has(balance: BalanceId): Promise<number>;
  /** Debits that were started and not answered: nodes may not know of them yet. */
  readonly unanswered: ReadonlySet<string>;
  close(): void;
}

export interface OpenHold {
  readonly receipt: ReceiptId;
  readonly held: number;
  grow(amount: NanoUsd): boolean;
  /** Returns what is charged. */
  end(cost: NanoUsd): number;
}

let receipts = 0;

/** A journal in memory: what was flushed survives its process. */
class Journal {
  readonly records: LedgerRecord[] = [];
  durable = 0;
  isCalm = false;
  private isOver = false;

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  append(record: LedgerRecord): number {
    return this.records.push(record);
  }

  withdraw(): boolean {
    return false;
  }

  async flushed(): Promise<boolean> {
    const through = this.records.length;
    if (!this.isCalm) await pause(this.clock, this.random.below(20));
    // A process that has ended writes nothing more.
    if (this.isOver) return new Promise(() => {});
    if (!this.isCalm && this.random.chance(0.02)) return false;
    this.durable = Math.max(this.durable, through);
    return true;
  }

  /** Its process has ended: every request has one end, by what was durable. */
  recovered(): { readonly ends: readonly TerminalRecord[]; readonly charges: ReadonlyMap<string, number> } {
    this.isOver = true;
    const charges = new Map<string, number>();
    for (const record of this.records) if ("receipt" in record) charges.set(record.receipt, 0);
    const kept = this.records.slice(0, this.durable);
    const replay = new Replay();
    for (const record of kept) replay.add(record);
    const ends = kept.filter((record): record is TerminalRecord => record.kind === "terminal");
    for (const orphan of replay.orphans.values()) {
      orphan.delivered = this.random.below(orphan.held + 1);
      ends.push(recoveredEnd(orphan, 0, () => "{}"));
    }
    for (const { receipt, charged } of ends) charges.set(receipt, charged);
    return { ends, charges };
  }
}

async function admit(
  { ledger, holders, isOver }: { ledger: Ledger; holders: KnownHolders; isOver: () => boolean },
  balance: BalanceId,
  amount: NanoUsd,
  taken: (hold: OpenHold) => void,
): Promise<void> {
  const at = 0 as ReservationRequest["at"];
  const key = keyOf({ balanceId: balance, id: `key_${balance}` as KeyId });
  holders.put(key);
  const most = { amount: MAX_NANO_USD, tokens: 0 };
  const request = reservationRequest({ receipt: `rcpt_${++receipts}`, at, key, amount, most });
  const { key: current, budgets } = holders.current(key, at)!;
  const counters = await ledger.counters.of(current, budgets, [], at);
  const refreshed = { ...request, key: current, budgets };
  let outcome = isOver() ? null : ledger.admit(counters, refreshed);
  if (outcome !== null && !(outcome instanceof Reservation)) {
    const claim = new GrantClaim();
    const answer = ledger.replenish(counters, refreshed, claim);
    if (answer !== null && (await answer) === "room" && !isOver())
      outcome = ledger.admit(counters, refreshed);
    claim.release();
  }
  if (!(outcome instanceof Reservation)) return;
  const reservation = outcome;
  taken({
    receipt: request.receipt,
    get held() {
      return reservation.held;
    },
    grow: (more) => ledger.extend(reservation, more),
    end: (cost) => ledger.settle(reservation, reservationEnd(cost), () => "{}").charged,
  });
}

export class SoleBooks implements TakeBackBooks {
  readonly unanswered = new Set<string>();
  private readonly store: SqliteLedgerStore;
  private readonly holders = new KnownHolders();
  private journal!: Journal;
  private ledger!: Ledger;
  private debits!: Debits;
  private life!: ReturnType<VirtualClock["life"]>;
  private isCalm = false;

  constructor(
    private readonly db: Database,
    private readonly time: VirtualClock,
    private readonly random: Random,
  ) {
    const credited = (balance: BalanceId, amount: NanoUsd) => this.credited(balance, amount);
    this.store = new SqliteLedgerStore(new SqliteDatabase(db), { onCredited: credited });
    this.begin();
  }

  private begin(): void {
    this.life = this.time.life();
    this.journal = new Journal(this.life.clock, this.random);
    this.journal.isCalm = this.isCalm;
    this.ledger = new Ledger(this.life.clock, this.journal, this.store, this.holders);
    this.debits = new Debits(this.ledger, this.journal, this.store);
  }

  admit(...request: Parameters<TakeBackBooks["admit"]>): Promise<void> {
    const { ledger, holders } = this;
    return admit({ ledger, holders, isOver: () => this.ledger !== ledger }, ...request);
  }

  debit(debit: Debit): Promise<Credit | TooMuch> {
    return this.debits.take(debit);
  }

  credit(credit: Credit): void {
    enterCredit(this.db, credit);
    this.credited(credit.balanceId, credit.amount);
  }

  credited(balance: BalanceId, amount: NanoUsd): void {
    this.ledger.credited(balance, amount);
  }

  async endClaims(): Promise<void> {
    const claims = await this.store.claims("", 64);
    for (const claim of claims) await this.debits.decideClaim(claim, this.time.now());
  }

  crash(): ReadonlyMap<string, number> {
    this.life.end();
    const { ends, charges } = this.journal.recovered();
    void this.store.ship(null, null, placed(ends));
    this.begin();
    return charges;
  }

  calm(): void {
    this.isCalm = this.journal.isCalm = true;
  }

  async has(balance: BalanceId): Promise<number> {
    await this.journal.flushed();
    return (await this.ledger.balance(balance)).total;
  }

  close(): void {
    this.journal.durable = this.journal.records.length;
    this.crash();
  }
}

interface Node {
  readonly name: string;
  readonly epoch: number;
  readonly ledger: Ledger;
  readonly grants: Grants;
  readonly journal: Journal;
  readonly life: ReturnType<VirtualClock["life"]>;
  shipped: number;
}

/** Nodes on one database, which a keeper writes. A message takes its time. */
export class NodeBooks implements TakeBackBooks {
  readonly unanswered = new Set<string>();
  private readonly store: SqliteLedgerStore;
  private readonly registry: SqliteRegistry;
  private readonly authority: SqliteAuthority;
  private readonly holders = new KnownHolders();
  private readonly nodes: Node[];
  private isCalm = false;

  constructor(
    private readonly db: Database,
    private readonly time: VirtualClock,
    private readonly random: Random,
    count: number,
  ) {
    this.store = new SqliteLedgerStore(new SqliteDatabase(db));
    this.registry = new SqliteRegistry(db, time, () => {});
    this.authority = new SqliteAuthority(
      db,
      time,
      () => this.nodes.map(({ name }) => name),
      (asker, { counter, inquiry }) => {
        for (const { name, grants, life } of this.nodes)
          if (name !== asker) life.clock.after(this.random.below(5), () => grants.recall(counter, inquiry));
      },
    );
    this.nodes = Array.from({ length: count }, (_, n) => this.birth(`n${n}`));
  }

  private birth(name: string): Node {
    const { epoch } = this.registry.join(name);
    const life = this.time.life();
    const { clock } = life;
    const journal = new Journal(clock, this.random);
    journal.isCalm = this.isCalm;
    const send = (statement: Statement) =>
      void journal.flushed().then((isDurable) => {
        if (isDurable) clock.after(this.random.below(5), () => this.settle(statement, grants, clock));
      });
    const grants: Grants = new Grants(name, epoch, clock, send);
    const sums = { spent: () => ZERO_USD, credited: () => MAX_NANO_USD };
    const ledger = new Ledger(clock, journal, sums, this.holders, grants);
    const node: Node = { name, epoch, ledger, grants, journal, life, shipped: 0 };
    let turns = 0;
    const tend = () => {
      grants.tick();
      if (++turns % IDLE_EVERY === 0) grants.returnIdle();
      void journal.flushed().then(() => this.ship(node));
      clock.after(250, tend);
    };
    clock.after(250, tend);
    return node;
  }

  private settle(statement: Statement, grants: Grants, clock: Clock): void {
    try {
      const [answer] = this.authority.settle([statement]);
      clock.after(this.random.below(5), () => grants.receive(answer!));
    } catch (error) {
      if (!(error instanceof EpochFenced)) throw error;
    }
  }

  private ship(node: Node): void {
    const { name, epoch, journal } = node;
    const fresh = journal.records.slice(node.shipped, journal.durable);
    node.shipped = Math.max(node.shipped, journal.durable);
    void this.store.ship(name, epoch, placed(fresh));
  }

  admit(...request: Parameters<TakeBackBooks["admit"]>): Promise<void> {
    const { holders } = this;
    const node = this.random.pick(this.nodes);
    const isOver = () => !this.nodes.includes(node);
    return admit({ ledger: node.ledger, holders, isOver }, ...request);
  }

  /** As a node does. */
  async debit(debit: Debit): Promise<Credit | TooMuch> {
    const { idempotencyKey, amount } = debit;
    this.unanswered.add(idempotencyKey);
    const known = await this.store.entry(idempotencyKey);
    const done = known ?? (typeof amount === "number" ? await this.store.debit(debit) : null);
    const isKnown = done !== null && !("available" in done);
    if (!isKnown) await this.recall(debit.balanceId);
    const entry = isKnown ? done : await this.store.debit(debit);
    if ("claimed" in entry && entry.claimed! > 0) await this.recall(debit.balanceId);
    this.unanswered.delete(idempotencyKey);
    return entry;
  }

  private async recall(balance: BalanceId): Promise<void> {
    const prefixes = [balanceCounter(balance)];
    for (const { grants, life } of [...this.nodes]) {
      const ended = new Promise<void>((resolve) => {
        life.clock.after(0, () => void grants.release(prefixes).then(() => resolve()));
        // Nobody waits for a node that is gone.
        this.time.life().clock.after(12_000, resolve);
      });
      await ended;
    }
  }

  credit(credit: Credit): void {
    enterCredit(this.db, credit);
  }

  credited(): void {}

  async endClaims(): Promise<void> {
    for (const claim of await this.store.claims("", 64)) await this.store.decideClaim(claim, this.time.now());
  }

  crash(): ReadonlyMap<string, number> {
    const at = this.random.below(this.nodes.length);
    const node = this.nodes[at]!;
    const charges = this.end(node);
    this.nodes[at] = this.birth(node.name);
    return charges;
  }

  private end({ name, epoch, journal, life }: Node): ReadonlyMap<string, number> {
    life.end();
    const { ends, charges } = journal.recovered();
    // What is booked already changes nothing.
    void this.store.ship(name, epoch, placed(ends));
    this.registry.leave(name, epoch);
    return charges;
  }

  calm(): void {
    this.isCalm = true;
    for (const { journal } of this.nodes) journal.isCalm = true;
  }

  async has(balance: BalanceId): Promise<number> {
    for (const node of this.nodes) {
      await node.journal.flushed();
      this.ship(node);
    }
    return this.store.credited(balance) - this.store.spent(balanceCounter(balance));
  }

  close(): void {
    for (const node of this.nodes) {
      node.journal.durable = node.journal.records.length;
      this.end(node);
    }
  }
}

/** Rounds of 250 ms, as in nodes. */
const IDLE_EVERY = 40;
let journalPosition = 0;
const placed = (records: readonly LedgerRecord[]) =>
  records.flatMap((record) =>
    record.kind === "terminal" ? [{ record, sequence: 0, file: 1, bytes: ++journalPosition }] : [],
  );
