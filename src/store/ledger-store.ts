import type { Database } from "bun:sqlite";
import { balanceCounter, type CounterId } from "../ledger/counter.ts";
import type { Sums } from "../ledger/ledger.ts";
import type { TerminalRecord } from "../ledger/record.ts";
import type { EpochMs } from "../units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { Unapplied } from "./journal.ts";

/**
 * The books in SQLite: append-only double entry, the running sums that a start reads, and the receipts. Ends of requests
 * arrive from the journal in batches; credits are written here directly, durably.
 */
export class LedgerStore implements Sums {
  private readonly statements;

  constructor(private readonly db: Database) {
    this.statements = prepare(db);
  }

  /**
   * Books a batch of ends and the place up to which the journal is now known, in one transaction. An end that is booked
   * already changes nothing, so replaying a journal is safe.
   */
  apply(batch: readonly Unapplied[]): void {
    const last = batch.at(-1);
    if (last === undefined) return;
    this.db.transaction(() => {
      const spent = new Map<CounterId, number>();
      for (const { record } of batch) if (this.book(record)) addSpending(spent, record);
      for (const [counter, amount] of spent) this.statements.spend.run(counter, amount);
      this.statements.reached.run(last.file, last.bytes);
    })();
  }

  /** How far each journal file has been applied, in bytes. */
  reached(): Map<number, number> {
    return new Map(this.statements.reachedAll.all().map(({ file, bytes }) => [file, bytes]));
  }

  /** Forgets the places of files that are gone. */
  forgetReachedBefore(file: number): void {
    this.statements.forgetReached.run(file);
  }

  /** Makes everything applied so far durable in the database itself. */
  checkpoint(): void {
    this.db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  spent(id: CounterId): NanoUsd {
    return (this.statements.total.get(id)?.spent ?? ZERO_USD) as NanoUsd;
  }

  credited(id: BalanceId): NanoUsd {
    return (this.statements.total.get(balanceCounter(id))?.credited ?? ZERO_USD) as NanoUsd;
  }

  /**
   * Credits a balance, once for each idempotency key. Durable on return. `repeated` returns what was credited under that
   * key before.
   */
  credit(credit: Credit): { repeated: Credit | null } {
    return this.db.transaction((): { repeated: Credit | null } => {
      const known = this.statements.creditByKey.get(credit.idempotencyKey);
      if (known !== null) return { repeated: { ...known, idempotencyKey: credit.idempotencyKey } };
      const account = balanceCounter(credit.balanceId);
      this.statements.entry.run(
        credit.at,
        "credit",
        credit.idempotencyKey,
        credit.balanceId,
        "funding",
        account,
        credit.amount,
        credit.note,
        null,
      );
      this.statements.credit.run(account, credit.amount);
      return { repeated: null };
    })();
  }

  receipt(id: ReceiptId): StoredReceipt | null {
    return this.statements.receipt.get(id);
  }

  /** Newest first; `before` is the id of the receipt that the last page ended with. */
  receipts(
    of: { balanceId: BalanceId } | { keyId: KeyId },
    limit: number,
    before: ReceiptId | null,
  ): StoredReceipt[] {
    const from = before === null ? null : this.receipt(before);
    const at = from?.at ?? Number.MAX_SAFE_INTEGER;
    const id = from?.id ?? "";
    return "keyId" in of
      ? this.statements.receiptsOfKey.all(of.keyId, at, id, limit)
      : this.statements.receiptsOfBalance.all(of.balanceId, at, id, limit);
  }

  /**
   * Recomputes every sum from the entries. Rows are those whose running sum is not what the entries say; none, when the
   * books are right.
   */
  audit(): StoreAudit {
    const credited = new Map<string, bigint>();
    const spent = new Map<string, bigint>();
    const totals = { credits: 0n, charges: 0n, losses: 0n, writeOffs: 0n };
    for (const row of this.statements.entries.iterate()) {
      const amount = BigInt(row.amount);
      if (row.kind === "credit") {
        totals.credits += amount;
        add(credited, row.credit, amount);
      } else if (row.kind === "terminal") {
        totals.charges += amount;
        for (const counter of row.counters?.split(" ") ?? []) add(spent, counter, amount);
      } else if (row.kind === "allowance") {
        for (const counter of row.counters?.split(" ") ?? []) add(spent, counter, amount);
      } else if (row.kind === "loss") totals.losses += amount;
      else totals.writeOffs += amount;
    }
    const drifts: Drift[] = [];
    for (const row of this.statements.totals.iterate()) {
      const drift =
        difference(credited.get(row.account), row.credited) + difference(spent.get(row.account), row.spent);
      if (drift !== 0n) drifts.push({ account: row.account, driftNano: drift });
      credited.delete(row.account);
      spent.delete(row.account);
    }
    for (const rest of [credited, spent]) {
      for (const [account, amount] of rest) if (amount !== 0n) drifts.push({ account, driftNano: amount });
    }
    return { ...totals, drifts };
  }

  /** Every balance's stored sums. */
  *balances(): Generator<{ id: BalanceId; credited: NanoUsd; spent: NanoUsd }> {
    for (const row of this.statements.totals.iterate()) {
      if (!row.account.startsWith("balance:")) continue;
      yield {
        id: row.account.slice("balance:".length) as BalanceId,
        credited: row.credited as NanoUsd,
        spent: row.spent as NanoUsd,
      };
    }
  }

  private book(end: TerminalRecord): boolean {
    const { receipt, at, balance, key, charged, writtenOff, lost } = end;
    const account = balanceCounter(balance);
    const counters = end.counters.join(" ");
    const { changes } = this.statements.entry.run(
      at,
      "terminal",
      receipt,
      balance,
      account,
      "revenue",
      charged,
      end.state,
      counters,
    );
    if (changes === 0) return false;
    if (writtenOff > 0) {
      this.statements.entry.run(
        at,
        "write_off",
        receipt,
        balance,
        "write_offs",
        "revenue",
        writtenOff,
        null,
        null,
      );
    }
    if (lost > 0)
      this.statements.entry.run(at, "loss", receipt, balance, "losses", "revenue", lost, null, null);
    if (end.allowances.length > 0) {
      const allowances = end.allowances.join(" ");
      this.statements.entry.run(
        at,
        "allowance",
        receipt,
        balance,
        "allowance",
        "served",
        1,
        null,
        allowances,
      );
    }
    this.statements.addReceipt.run(receipt, at, balance, key, end.body);
    return true;
  }
}

export interface Credit {
  readonly balanceId: BalanceId;
  readonly amount: NanoUsd;
  readonly idempotencyKey: string;
  readonly note: string | null;
  readonly at: EpochMs;
}

export interface StoredReceipt {
  readonly id: ReceiptId;
  readonly at: EpochMs;
  readonly balanceId: BalanceId;
  readonly keyId: KeyId;
  /** JSON, as it is answered. */
  readonly body: string;
}

export interface Drift {
  readonly account: string;
  readonly driftNano: bigint;
}

export interface StoreAudit {
  readonly credits: bigint;
  readonly charges: bigint;
  readonly losses: bigint;
  readonly writeOffs: bigint;
  readonly drifts: readonly Drift[];
}

function addSpending(spent: Map<CounterId, number>, { charged, counters, allowances }: TerminalRecord): void {
  if (charged > 0) for (const counter of counters) spent.set(counter, (spent.get(counter) ?? 0) + charged);
  for (const counter of allowances) spent.set(counter, (spent.get(counter) ?? 0) + 1);
}

function add(sums: Map<string, bigint>, account: string, amount: bigint): void {
  sums.set(account, (sums.get(account) ?? 0n) + amount);
}

const difference = (recomputed: bigint | undefined, stored: number): bigint => {
  const by = (recomputed ?? 0n) - BigInt(stored);
  return by < 0n ? -by : by;
};

interface EntryRow {
  kind: string;
  credit: string;
  amount: number;
  counters: string | null;
}

interface TotalRow {
  account: string;
  credited: number;
  spent: number;
}

const RECEIPT_COLUMNS = "id, at, balance_id AS balanceId, key_id AS keyId, body";

function prepare(db: Database) {
  return {
    entry: db.query<
      never,
      [number, string, string, string, string, string, number, string | null, string | null]
    >(
      `INSERT OR IGNORE INTO entries (at, kind, reference, balance_id, debit, credit, amount, note, counters)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    spend: db.query<never, [string, number]>(
      `INSERT INTO totals (account, spent) VALUES (?, ?)
       ON CONFLICT (account) DO UPDATE SET spent = spent + excluded.spent`,
    ),
    credit: db.query<never, [string, number]>(
      `INSERT INTO totals (account, credited) VALUES (?, ?)
       ON CONFLICT (account) DO UPDATE SET credited = credited + excluded.credited`,
    ),
    creditByKey: db.query<Omit<Credit, "idempotencyKey">, [string]>(
      "SELECT balance_id AS balanceId, amount, note, at FROM entries WHERE kind = 'credit' AND reference = ?",
    ),
    total: db.query<TotalRow, [string]>("SELECT account, credited, spent FROM totals WHERE account = ?"),
    totals: db.query<TotalRow, []>("SELECT account, credited, spent FROM totals"),
    entries: db.query<EntryRow, []>("SELECT kind, credit, amount, counters FROM entries"),
    addReceipt: db.query<never, [string, number, string, string, string]>(
      "INSERT OR IGNORE INTO receipts (id, at, balance_id, key_id, body) VALUES (?, ?, ?, ?, ?)",
    ),
    receipt: db.query<StoredReceipt, [string]>(`SELECT ${RECEIPT_COLUMNS} FROM receipts WHERE id = ?`),
    receiptsOfBalance: db.query<StoredReceipt, [string, number, string, number]>(
      `SELECT ${RECEIPT_COLUMNS} FROM receipts WHERE balance_id = ? AND (at, id) < (?, ?)
       ORDER BY at DESC, id DESC LIMIT ?`,
    ),
    receiptsOfKey: db.query<StoredReceipt, [string, number, string, number]>(
      `SELECT ${RECEIPT_COLUMNS} FROM receipts WHERE key_id = ? AND (at, id) < (?, ?)
       ORDER BY at DESC, id DESC LIMIT ?`,
    ),
    reached: db.query<never, [number, number]>(
      `INSERT INTO applied (file, bytes) VALUES (?, ?)
       ON CONFLICT (file) DO UPDATE SET bytes = max(bytes, excluded.bytes)`,
    ),
    reachedAll: db.query<{ file: number; bytes: number }, []>("SELECT file, bytes FROM applied"),
    forgetReached: db.query<never, [number]>("DELETE FROM applied WHERE file < ?"),
  };
}
