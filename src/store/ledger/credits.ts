import { balanceCounter } from "../../ledger/counter.ts";
import {
  type Credit,
  type CreditClaim,
  type Debit,
  debitEntry,
  lossKey,
  lostOf,
  type TakenCredit,
  type TooMuch,
  taken,
} from "../../ledger/credit.ts";
import { creditEvents } from "../../ledger/credit-events.ts";
import { paymentOfKey } from "../../payments/payment.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { Figure } from "../../units/figure.ts";
import type { BalanceId, PaymentId } from "../../units/id.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import { MAX_NANO_USD, type NanoUsd, usdFromNano, ZERO_USD } from "../../units/usd.ts";
import { logging } from "../customers/change-log.ts";
import { lowCreditOf, recording } from "../customers/events.ts";
import {
  type Batch,
  type CommitStatement,
  changes,
  changesOne,
  type Database,
  finds,
  type Planned,
  type SqlPart,
  sql,
} from "../database/database.ts";

/** Credits, what was taken back of them, and claims on what requests held of that. */
export class SqlCreditStore<Db extends Database = Database> {
  constructor(
    protected readonly db: Db,
    /** Called in the turn in which a balance was credited, by hand or with what a claim has lost. */
    private readonly onCredited: (balance: BalanceId, amount: NanoUsd) => void = () => {},
  ) {}

  /**
   * Credits a balance that exists, once for each idempotency key. Returns what was credited under that key, now or before.
   * Null, and nothing is credited, where it would come to more in all than is counted exactly.
   */
  credit(credit: Credit): Promise<Credit | null> {
    return this.db.change<Credit | null>(credit.balanceId, async () => {
      // Last, the key: what is no room may be what was credited under it meanwhile.
      const fits = await hasRoom(this.db, credit);
      const known = await this.entry(credit.idempotencyKey);
      if (known !== null || !fits) return { result: known };
      const committed = () => this.onCredited(credit.balanceId, credit.amount);
      return { result: credit, statements: enteringCredit(this.db, credit), committed };
    });
  }

  /**
   * Takes credit back, once for each idempotency key: of what is neither spent nor granted to a node; one up to an amount
   * also of what is granted, as a claim. Returns what was done under that key, now or before; or what could be taken, and
   * then nothing was. The only ledger decides by itself what it takes, and `holds` that.
   */
  async debit(debit: Debit, holds?: TakenCredit): Promise<Credit | TooMuch> {
    const { db } = this;
    const done = await db.change(debit.balanceId, () => db.decided(debiting(db, debit, holds)));
    await db.settled();
    return done;
  }

  /** Open claims behind this key, in the order of their keys. */
  claims(after: string, limit: number): Promise<readonly CreditClaim[]> {
    return this.db.rows<CreditClaim>(openClaims(after, limit));
  }

  /**
   * Ends a claim, as soon as what nodes were granted is covered, or none of them has a grant any more. Returns what was
   * lost; null while it has to stay open. The only ledger knows by itself what is lost, by what is still claimed.
   */
  decideClaim(
    claim: CreditClaim,
    at: EpochMs,
    lostOfClaimed?: (claimed: NanoUsd) => NanoUsd | null,
  ): Promise<NanoUsd | null> {
    const { balanceId } = claim;
    return this.db.change(balanceId, async () => {
      const decided = await this.db.decided(decidingClaim(this.db, claim, at, lostOfClaimed));
      const { result: lost } = decided;
      return lost === null ? decided : { ...decided, committed: () => this.onCredited(balanceId, lost) };
    });
  }

  async entry(idempotencyKey: string): Promise<Credit | null> {
    const [row] = await this.db.rows<CreditRow>(sql`${entryOf(idempotencyKey)} ${this.db.forUpdate}`);
    if (row === undefined) return null;
    await this.db.settled();
    return creditFromRow(row);
  }

  /** Newest first. */
  async credits(balance: BalanceId, limit: number): Promise<Credit[]> {
    return (await this.db.rows<CreditRow>(creditsOf(balance, limit))).map(creditFromRow);
  }
}

/** As `SqlCreditStore.debit`. */
export function debiting(db: Database, debit: Debit, holds?: TakenCredit): Planned<Credit | TooMuch> {
  const { balanceId } = debit;
  return {
    // Last, the key: what is not available may be what was taken under it meanwhile.
    reads: [
      lockingSums(db, balanceId),
      sql`${entryOf(debit.idempotencyKey)} ${db.forUpdate}`,
      sql`SELECT ${lowCreditOf(sql`${balanceId}`)} AS low`,
    ],
    decide([rows, entries, lines]) {
      const [known] = entries as readonly CreditRow[];
      if (known !== undefined) return { result: creditFromRow(known) };
      const { credited, spent, reserved } = sumsFrom(rows!);
      const unspent = credited - spent;
      const available = unspent - reserved;
      const done = holds ?? taken(debit.amount, { available, unspent });
      if (done === null) return { result: { available: Math.max(0, available) as NanoUsd } };
      // Only a claim is on what may be spent meanwhile.
      const isCovered = done.amount === 0 || done.claimed > 0 || done.amount <= unspent;
      assert(isCovered, `${done.amount} taken of ${balanceId}, now overspent`);
      const entry = debitEntry(debit, done);
      const [{ low }] = lines as readonly [{ readonly low: NanoUsd | null }];
      const after = { credited: credited + entry.amount, spent };
      const events = creditEvents(balanceId, { credited, spent }, after, { low, at: entry.at });
      const statements = [
        insertEntry(entry),
        crediting(balanceId, entry.amount, rows!),
        recording(db, events),
        loggingEntry(entry),
      ];
      return { result: entry, statements };
    },
  };
}

/** As `SqlCreditStore.decideClaim`. */
function decidingClaim(
  db: Database,
  claim: CreditClaim,
  at: EpochMs,
  lostOfClaimed?: (claimed: NanoUsd) => NanoUsd | null,
): Planned<NanoUsd | null> {
  const { balanceId, idempotencyKey } = claim;
  // A transaction that credits a payment has locked it before the balance.
  const locking = sql`SELECT id FROM payments WHERE id = ${paymentOfKey(idempotencyKey)} ${db.forUpdate}`;
  return {
    reads: [
      sql`SELECT claimed FROM credits WHERE idempotency_key = ${idempotencyKey}`,
      lockingSums(db, balanceId),
    ],
    decide([claims, rows]) {
      const [{ claimed } = claim] = claims as readonly Pick<CreditClaim, "claimed">[];
      if (claimed === 0) return { result: ZERO_USD };
      const { credited, spent, reserved } = sumsFrom(rows!);
      const shortage = { short: spent + reserved - credited, held: reserved };
      const lost = lostOfClaimed ? lostOfClaimed(claimed) : lostOf({ ...claim, claimed }, shortage);
      if (lost === null) return { result: null };
      const ending = endingClaim({ ...claim, claimed }, lost, at, crediting(balanceId, lost, rows!));
      return { result: lost, statements: [locking, ending] };
    },
  };
}

/** What nodes were granted and have not shipped as spent is not spent for good. */
const lockingSums = (db: Database, balance: BalanceId): SqlPart =>
  sql`SELECT credited, spent, reserved FROM counters WHERE id = ${balanceCounter(balance)} ${db.forUpdate}`;

interface BalanceSums {
  readonly credited: number;
  readonly spent: number;
  readonly reserved: number;
}

const sumsFrom = ([row]: readonly unknown[]): BalanceSums =>
  (row as BalanceSums | undefined) ?? { credited: 0, spent: 0, reserved: 0 };

/** A conflict where the balance has other sums by then. */
function crediting(balance: BalanceId, amount: NanoUsd, rows: readonly unknown[]): CommitStatement {
  const { credited, spent, reserved } = sumsFrom(rows);
  return changes(
    rows.length,
    sql`UPDATE counters SET credited = credited + ${amount} WHERE id = ${balanceCounter(balance)}
      AND credited = ${credited} AND spent = ${spent} AND reserved = ${reserved}`,
  );
}

/** Whether the balance, which must exist, can be credited with so much. */
export async function hasRoom(db: Database, { balanceId, amount }: Credit): Promise<boolean> {
  const [row] = await db.read<{ credited: number }>`SELECT coalesce(counters.credited, 0) AS credited
    FROM balances LEFT JOIN counters ON counters.id = ${balanceCounter(balanceId)} WHERE balances.id = ${balanceId}`;
  assert(amount > 0 && Number.isSafeInteger(amount), `a credit of ${amount}`);
  // A balance that nobody ever used may be removed at any time.
  assert(row !== undefined, `credit for ${balanceId}, which does not exist`);
  return row.credited + amount <= MAX_NANO_USD;
}

/** A conflict where the balance was removed, was credited with too much, or the key was used. */
export const enteringCredit = (db: Database, credit: Credit): Batch => [
  finds(1, sql`SELECT id FROM balances WHERE id = ${credit.balanceId} ${db.forReference}`),
  enteringCreditOf(credit),
];

/** The same, whether or not the balance is there. */
export const enteringCreditOf = (credit: Credit): Batch => [
  insertEntry(credit),
  loggingEntry(credit),
  changesOne(sql`INSERT INTO counters (id, credited)
    VALUES (${balanceCounter(credit.balanceId)}, ${credit.amount})
    ON CONFLICT (id) DO UPDATE SET credited = counters.credited + excluded.credited
    WHERE counters.credited + excluded.credited <= ${MAX_NANO_USD}`),
];

/** What a payment is credited again was not taken back after all: its open claims, the latest first, are less by that. */
export async function cancellingClaims(db: Database, payment: PaymentId, credited: NanoUsd): Promise<Batch> {
  const claims = await db.read<{ key: string; claimed: number }>`
    SELECT idempotency_key AS key, claimed FROM credits
    WHERE claimed > 0 AND payment_id = ${payment} ORDER BY at DESC, idempotency_key DESC`;
  let left: number = credited;
  return claims.flatMap(({ key, claimed }) => {
    const less = Math.min(left, claimed);
    left -= less;
    return changesOne(sql`UPDATE credits SET claimed = claimed - ${less}
      WHERE idempotency_key = ${key} AND claimed = ${claimed}`);
  });
}

/** What is lost was not taken back after all. A conflict where somebody else has ended the claim, or changed it. */
function endingClaim(
  { idempotencyKey, balanceId, claimed }: CreditClaim,
  lost: NanoUsd,
  at: EpochMs,
  creditedBack: CommitStatement,
): Batch {
  const end = changesOne(sql`UPDATE credits SET claimed = 0
    WHERE idempotency_key = ${idempotencyKey} AND claimed = ${claimed} AND claimed > 0`);
  if (lost === 0) return [end, creditedBack];
  const note = "spent before it could be taken back";
  return [
    end,
    creditedBack,
    insertEntry({ balanceId, amount: lost, idempotencyKey: lossKey(idempotencyKey), note, at }),
    sql`UPDATE payments SET credited = credited + ${lost}, lost = lost + ${lost}, version = version + 1
      WHERE id = ${paymentOfKey(idempotencyKey)}`,
  ];
}

const openClaims = (after: string, limit: number): SqlPart =>
  sql`SELECT idempotency_key AS "idempotencyKey", balance_id AS "balanceId", claimed FROM credits
    WHERE claimed > 0 AND idempotency_key > ${after} ORDER BY idempotency_key LIMIT ${limit}`;

/** What was credited, or taken back, under this idempotency key. */
const entryOf = (idempotencyKey: string): SqlPart =>
  sql`SELECT ${CREDIT} FROM credits WHERE idempotency_key = ${idempotencyKey}`;

/** Newest first. */
const creditsOf = (balance: BalanceId, limit: number): SqlPart =>
  sql`SELECT ${CREDIT} FROM credits WHERE balance_id = ${balance} AND amount <> 0 ORDER BY at DESC LIMIT ${limit}`;

/** A conflict where the idempotency key has been used. */
function insertEntry(entry: Credit): CommitStatement {
  const { at, idempotencyKey, balanceId, amount, note, tookAll = false, claimed = ZERO_USD } = entry;
  return changesOne(sql`INSERT INTO credits (idempotency_key, at, balance_id, amount, note, took_all, claimed)
    VALUES (${idempotencyKey}, ${at}, ${balanceId}, ${amount}, ${note}, ${Number(tookAll)} = 1, ${claimed})
    ON CONFLICT (idempotency_key) DO NOTHING`);
}

/** What an operator, or a payment, credits or takes back. */
function loggingEntry({ balanceId, amount, idempotencyKey, note }: Credit): Batch {
  const entry = {
    amount_usd: usdFromNano(Math.abs(amount) as NanoUsd),
    idempotency_key: idempotencyKey,
    note,
  };
  return logging({
    action: amount < 0 ? "balance.debited" : "balance.credited",
    subject: balanceId,
    balance: balanceId,
    before: {},
    after: entry,
  });
}

const CREDIT = sql`balance_id AS "balanceId", amount, idempotency_key AS "idempotencyKey", note, at,
  took_all AS "tookAll", claimed`;

/** SQLite knows no booleans. */
type CreditRow = Omit<Credit, "tookAll"> & { readonly tookAll: boolean | 0 | 1 };

const creditFromRow = (row: CreditRow): Credit => ({ ...row, tookAll: Boolean(row.tookAll) });

/** Ends claims on what requests held. Every node does; each claim is ended once. */
export class ClaimRounds {
  /** Lost to claims that this process has ended, since start. */
  lost: NanoUsd = ZERO_USD;
  private readonly rounds: Rounds;
  /** Where the next round begins. */
  private after = "";

  constructor(
    private readonly ledger: Pick<SqlCreditStore, "claims" | "decideClaim">,
    private readonly clock: Clock,
    log: Log,
  ) {
    this.rounds = new Rounds(clock, 0, async () => {
      // The next round tries again.
      await this.round().catch((error) => log("claims", { error: String(error) }));
      return ROUND_MS;
    });
  }

  stop(): Promise<void> {
    return this.rounds.stop();
  }

  private async round(): Promise<void> {
    const claims = await this.ledger.claims(this.after, CLAIMS_A_ROUND);
    this.after = claims.length < CLAIMS_A_ROUND ? "" : claims.at(-1)!.idempotencyKey;
    for (const claim of claims) {
      if (this.rounds.stopped) return;
      const lost = await this.ledger.decideClaim(claim, this.clock.now());
      this.lost = (this.lost + (lost ?? 0)) as NanoUsd;
    }
  }
}

export const lostToClaims = (lost: NanoUsd): Figure => ({
  name: "gateway_claims_lost_usd",
  help: "USD that were taken back while requests held them, and that these requests spent, since start.",
  value: lost / 1e9,
  type: "counter",
});

const ROUND_MS = 2_000;
const CLAIMS_A_ROUND = 64;
