import type { Database } from "bun:sqlite";
import {
  decide,
  type Grant,
  type Inquiry,
  LATE_MS,
  MOST_LATE,
  NOTHING_GRANTED,
  type SharedCounter,
  type Standing,
  type Statement,
} from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import type { Clock } from "../../units/clock.ts";
import { MAX_NANO_USD, type NanoUsd } from "../../units/usd.ts";

/**
 * The Authority on SQLite, in the one process that writes the database: what is settled together is one
 * transaction, decided by the same rule as everywhere, and no other decision can come between.
 */
export class SqliteAuthority {
  private readonly statements;
  /** Made once: to make a transaction costs a quarter of what it costs to settle a statement. */
  private readonly settleAll;
  /** Inquiries of late, for nodes that missed the announcement; the oldest first. */
  private readonly late = new Map<CounterId, LateInquiry>();

  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, "elapsedMs">,
    /** Nobody waits for a node without a lease. */
    private readonly isAlive: (node: string) => boolean,
    /** Asks the others. */
    private readonly recall: (asker: string, inquiry: Inquiry) => void,
  ) {
    this.statements = prepare(db);
    this.settleAll = db.transaction((batches: readonly (readonly Statement[])[], asked: AskedInquiry[]) =>
      batches.map((statements) => this.settleOf(statements, asked)),
    );
  }

  /** Settles the statements of several nodes; a node whose epoch is over gets that for its answer. */
  settle(batches: readonly (readonly Statement[])[]): (Grant[] | EpochFenced)[] {
    const asked: AskedInquiry[] = [];
    const answers = this.settleAll.immediate(batches, asked);
    for (const { asker, inquiry } of asked) {
      this.remember(inquiry);
      this.recall(asker, inquiry);
    }
    return answers;
  }

  /** Forgets grants of counters whose window is over, if everything was shipped. */
  retire(node: string, counters: readonly CounterId[]): void {
    this.db
      .transaction(() => {
        for (const counter of counters) this.statements.retire.run(counter, node);
      })
      .immediate();
  }

  /** The inquiries of late after what this node was granted, which it has not answered. */
  inquiries(node: string): Inquiry[] {
    this.forgetLate();
    return [...this.late.values()].filter(({ counter, inquiry }) => {
      const row = this.statements.grants.all(counter).find((one) => one.node === node);
      return row !== undefined && row.granted > row.shipped && row.heard < inquiry;
    });
  }

  /** Whether any node may be serving requests that draw on one of these. */
  isGranted(counters: readonly CounterId[]): boolean {
    return counters.some((counter) =>
      this.statements.grants.all(counter).some(({ granted, shipped }) => granted > shipped),
    );
  }

  /** Granted of it, and not shipped as spent. */
  reserved(counter: CounterId): number {
    return reservedOf(this.statements.grants.all(counter));
  }

  private settleOf(statements: readonly Statement[], asked: AskedInquiry[]): Grant[] | EpochFenced {
    const { ledger, epoch } = statements[0]!;
    if (this.statements.openEpoch.get(ledger)?.epoch !== epoch)
      return new EpochFenced(`epoch ${epoch} of ${ledger} is over`);
    return statements.map((statement) => this.settleOne(statement, asked));
  }

  private settleOne(statement: Statement, asked: AskedInquiry[]): Grant {
    const { ledger, counter, inquiry: awaited } = statement;
    const rows = this.statements.grants.all(counter);
    const mine = rows.find(({ node }) => node === ledger);
    const before: Standing = mine ?? NOTHING_GRANTED;
    const total = this.statements.total.get(counter);
    const book: SharedCounter = {
      credited: total?.credited ?? 0,
      spent: total?.spent ?? 0,
      reserved: reservedOf(rows),
      shipped: mine?.shipped ?? 0,
      // What somebody has answered was begun, by a node that may have left.
      inquiries: Math.max(0, ...rows.map(({ heard, inquiry }) => Math.max(heard, inquiry))),
      standing: before,
    };
    const limit = Math.min(statement.limit, this.limitOf(counter)) as NanoUsd;
    const granted = decide(book, { ...statement, limit });
    const { standing, inquiries } = book;
    if (standing !== before || inquiries !== mine?.inquiry) {
      const { granted, used, number, heard } = standing;
      this.statements.put.run(counter, ledger, granted, used, number, heard, inquiries);
    }
    if (!granted.short) return granted;
    const others = this.othersOf(rows, ledger, inquiries);
    if (others.spare > 0 || others.answered < awaited)
      asked.push({ asker: ledger, inquiry: { counter, inquiry: inquiries } });
    return { ...granted, ...others };
  }

  private othersOf(
    rows: readonly GrantRow[],
    ledger: string,
    inquiry: number,
  ): Pick<Grant, "spare" | "open" | "answered"> {
    let [spare, open, answered] = [0, 0, inquiry];
    for (const { node, granted, used, heard, shipped } of rows) {
      if (node === ledger || !this.isAlive(node)) continue;
      spare += granted - used;
      open += granted - shipped;
      if (granted > shipped) answered = Math.min(answered, heard);
    }
    return { spare: spare as NanoUsd, open: open as NanoUsd, answered };
  }

  /**
   * What owners last set, of keys and budgets, and keys of runs; without bound for every other counter. A node may state what it
   * knew before: a request that it admits may have waited since.
   */
  private limitOf(counter: CounterId): number {
    const [kind, subject = "", period = "", start] = counter.split(":");
    const column = KEY_LIMITS[kind!];
    if (column !== undefined) {
      const set = this.statements.limits.all(subject).map((row) => row[column] ?? MAX_NANO_USD);
      return set.length === 0 ? MAX_NANO_USD : Math.max(...set);
    }
    if (kind === "run" || kind === "calls") {
      const [balance, name] = subject.split("/") as [string, string];
      const run = this.statements.run.get(balance, name, Number(period));
      return run?.[kind === "run" ? "cap" : "calls"] ?? MAX_NANO_USD;
    }
    if (kind !== "budget") return MAX_NANO_USD;
    const budget = this.statements.budget.get(subject);
    // All windows are counted, and the cap is that of one.
    return budget !== null && (start === undefined || period === budget.period) ? budget.cap : MAX_NANO_USD;
  }

  private remember({ counter, inquiry }: Inquiry): void {
    this.late.delete(counter);
    this.late.set(counter, { counter, inquiry, atMs: this.clock.elapsedMs() });
    this.forgetLate();
  }

  private forgetLate(): void {
    const sinceMs = this.clock.elapsedMs() - LATE_MS;
    for (const [counter, { atMs }] of this.late) {
      if (atMs > sinceMs && this.late.size <= MOST_LATE) break;
      this.late.delete(counter);
    }
  }
}

interface AskedInquiry {
  readonly asker: string;
  readonly inquiry: Inquiry;
}

interface LateInquiry extends Inquiry {
  readonly atMs: number;
}

interface GrantRow extends Standing {
  readonly node: string;
  readonly inquiry: number;
  readonly shipped: number;
}

/** Which column of a key limits a counter. */
const KEY_LIMITS: Readonly<Record<string, keyof KeyLimitsRow>> = {
  day: "daily_limit",
  month: "monthly_limit",
  rpm: "rpm_limit",
  tpm: "tpm_limit",
};

type KeyLimitsRow = Readonly<
  Record<"daily_limit" | "monthly_limit" | "rpm_limit" | "tpm_limit", number | null>
>;

const reservedOf = (rows: readonly GrantRow[]): number =>
  rows.reduce((sum, { granted, shipped }) => sum + granted - shipped, 0);

function prepare(db: Database) {
  return {
    openEpoch: db.query<{ epoch: number }, [string]>("SELECT epoch FROM nodes WHERE name = ? AND open = 1"),
    grants: db.query<GrantRow, [string]>(
      "SELECT node, granted, used, number, heard, inquiry, shipped FROM grants WHERE counter = ?",
    ),
    put: db.query<never, [string, string, number, number, number, number, number]>(
      `INSERT INTO grants (counter, node, granted, used, number, heard, inquiry) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (counter, node) DO UPDATE SET granted = excluded.granted, used = excluded.used,
         number = excluded.number, heard = excluded.heard, inquiry = excluded.inquiry`,
    ),
    retire: db.query<never, [string, string]>(
      "DELETE FROM grants WHERE counter = ? AND node = ? AND granted = shipped",
    ),
    total: db.query<{ credited: number; spent: number }, [string]>(
      "SELECT credited, spent FROM counters WHERE id = ?",
    ),
    limits: db.query<KeyLimitsRow, [string]>(
      `SELECT daily_limit, monthly_limit, rpm_limit, tpm_limit FROM keys WHERE lineage = ? AND state <> 'revoked'`,
    ),
    budget: db.query<{ cap: number; period: string }, [string]>(
      "SELECT cap, period FROM budgets WHERE id = ?",
    ),
    run: db.query<{ cap: number | null; calls: number | null }, [string, string, number]>(
      "SELECT cap, calls FROM runs WHERE balance_id = ? AND name = ? AND started_at = ?",
    ),
  };
}
