import type { Grant, Statement } from "../../src/ledger/authority.ts";
import type { CounterId } from "../../src/ledger/counter.ts";
import type { Debit } from "../../src/ledger/credit.ts";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import { flattened } from "../../src/store/database/database.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { debiting } from "../../src/store/ledger/credits.ts";
import { SqliteAuthority } from "../../src/store/ledger/grants.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SqliteRegistry } from "../../src/store/nodes/sqlite-registry.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { end } from "../store/end-record.ts";
import { enterCredit } from "../store/enter-credit.ts";
import { emptyDatabase } from "./database.ts";
import type { Random } from "./random.ts";

/** Asks the other ledgers to give back what they do not use of a counter, or to say that they do. */
type SendInquiries = (counter: CounterId, asker: string, inquiry: number) => void;

/** A keeper's Authority, books and registry, on a database. Where there is chance, it dies now and then, and another goes on. */
export class FleetAuthority {
  private readonly db = emptyDatabase();
  private readonly sql = new SqliteDatabase(this.db);
  private readonly store = new SqliteLedgerStore(this.sql);
  private readonly grantOf = this.db.query<
    { granted: number; shipped: number; number: number },
    [string, string]
  >("SELECT granted, shipped, number FROM grants WHERE counter = ? AND node = ?");
  private readonly reserved = this.db.query<{ reserved: number }, [string]>(
    "SELECT reserved FROM counters WHERE id = ?",
  );
  private registry = this.newRegistry();
  private authority = this.newAuthority();
  private closed = 0;
  /** What `granted` says, until something is written that may change it. */
  private readonly sums = new Map<CounterId, number>();
  private readonly started = new Set<string>();
  /** What each ledger has shipped of a counter before it retired it, by name and counter. */
  private readonly retired = new Map<string, number>();

  constructor(
    private readonly recall: SendInquiries = () => {},
    private readonly random: Random | null = null,
  ) {}

  stop(): void {
    this.db.close();
  }

  /** Null where the ledger's epoch is over. */
  settle(statement: Statement): Grant | null {
    this.sums.delete(statement.counter);
    if (this.random?.chance(0.005)) {
      this.registry = this.newRegistry();
      this.authority = this.newAuthority();
    }
    this.begin(statement.ledger, statement.epoch);
    if (statement.retires) this.shipRetired(statement);
    try {
      return this.authority.settle([statement])[0]!;
    } catch (error) {
      if (error instanceof EpochFenced) return null;
      throw error;
    }
  }

  /** A ledger retires a counter once what was spent of it is shipped. */
  private shipRetired({ ledger, epoch, counter, number, used }: Statement): void {
    const row = this.grantOf.get(counter, ledger);
    if (row === null || row.number >= number || used > row.granted || used <= row.shipped) return;
    const amount = (used - row.shipped) as NanoUsd;
    this.ship(ledger, epoch, [[counter, amount]]);
    const of = `${ledger} ${counter}`;
    this.retired.set(of, (this.retired.get(of) ?? 0) + amount);
  }

  private ship(name: string, epoch: number, parts: readonly (readonly [CounterId, NanoUsd])[]): void {
    const { balance, ...record } = end(++this.closed);
    const ended = { ...record, balance, charged: 0 as NanoUsd, counters: [], allowances: [], parts };
    // A journal may be shipped twice.
    for (let times = this.random?.chance(0.5) ? 2 : 1; times > 0; times--)
      void this.store.ship(name, epoch, [{ record: ended, sequence: 0, file: 1, bytes: this.closed }]);
  }

  credit(counter: CounterId, amount: NanoUsd): void {
    enterCredit(this.db, {
      balanceId: balanceOf(counter),
      amount,
      idempotencyKey: "all",
      note: null,
      at: epochMs(0),
    });
  }

  /** Takes credit back that nobody was granted, once for each key; null where that is too little. */
  debit(key: string, counter: CounterId, amount: Debit["amount"]): NanoUsd | null {
    const debit = { balanceId: balanceOf(counter), idempotencyKey: key, amount, note: null, at: epochMs(0) };
    const { reads, decide } = debiting(this.sql, debit);
    const done = this.sql.transact(function* () {
      const { result, statements = [] } = decide(yield reads);
      yield flattened(statements);
      return result;
    });
    return "available" in done ? null : (-done.amount as NanoUsd);
  }

  /** The ledger's epoch is over, and its journal says what it spent; the rest of its grants is free again. */
  close(name: string, epoch: number, spent: ReadonlyMap<CounterId, NanoUsd>): void {
    this.sums.clear();
    this.begin(name, epoch);
    const parts = [...spent].map(([counter, amount]) => {
      const shipped = this.retired.get(`${name} ${counter}`) ?? 0;
      this.retired.delete(`${name} ${counter}`);
      return [counter, (amount - shipped) as NanoUsd] as const;
    });
    this.ship(name, epoch, parts);
    this.registry.leave(name, epoch);
  }

  /** Spent by closed epochs and granted to open ones: never above the limit. */
  granted(counter: CounterId): number {
    const known = this.sums.get(counter);
    if (known !== undefined) return known;
    const granted = this.store.spent(counter) + (this.reserved.get(counter)?.reserved ?? 0);
    this.sums.set(counter, granted);
    return granted;
  }

  /** To one epoch that is open, with what it has spent of it and forgotten. */
  grantedTo(counter: CounterId, name: string): number {
    return (this.grantOf.get(counter, name)?.granted ?? 0) + (this.retired.get(`${name} ${counter}`) ?? 0);
  }

  /** A life begins before it states anything. */
  private begin(name: string, epoch: number): void {
    const life = `${name} ${epoch}`;
    if (this.started.has(life)) return;
    this.started.add(life);
    this.sums.clear();
    while (this.registry.join(name).epoch < epoch);
  }

  private newRegistry(): SqliteRegistry {
    return new SqliteRegistry(this.db, { now: () => epochMs(0), elapsedMs: () => 0 }, () => {});
  }

  private newAuthority(): SqliteAuthority {
    const everybody = () =>
      this.db
        .query<{ name: string }, []>("SELECT name FROM nodes")
        .all()
        .map(({ name }) => name);
    return new SqliteAuthority(this.db, { now: () => epochMs(0) }, everybody, (asker, { counter, inquiry }) =>
      this.recall(counter, asker, inquiry),
    );
  }
}

const balanceOf = (counter: CounterId): BalanceId => counter.slice("balance:".length) as BalanceId;
