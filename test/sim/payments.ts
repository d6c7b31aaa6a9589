import type { Database } from "bun:sqlite";
import type { Credit, Debit, TooMuch } from "../../src/ledger/credit.ts";
import { taken } from "../../src/ledger/credit.ts";
import type { Payment } from "../../src/payments/payment.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import { PaymentWatch } from "../../src/payments/rails/payment-watch.ts";
import type { CardRail } from "../../src/payments/rails/stripe/card-rail.ts";
import type { Authorization, SignedPayment } from "../../src/payments/rails/x402/authorization.ts";
import { externalOf } from "../../src/payments/rails/x402/authorization.ts";
import type { Address } from "../../src/payments/rails/x402/network.ts";
import { X402Rail } from "../../src/payments/rails/x402/x402.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SqlPaymentStore } from "../../src/store/payments/payment-store.ts";
import { epochMs, pause } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, PaymentId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import type { VirtualClock } from "./clock.ts";
import { emptyDatabase } from "./database.ts";
import { cardRail, EndingProcess } from "./ending-process.ts";
import { PAYMENT_MUTANTS } from "./mutants/payments.ts";
import type { Random } from "./random.ts";
import { scenario } from "./scenario.ts";
import { BLOCK_MS, NETWORK, PAYER, SETTLER, SimulatedChain } from "./simulated-chain.ts";
import { SimulatedStripe } from "./simulated-stripe.ts";
import { type Auditor, check, type Player, promisesSettled, type World } from "./world.ts";

const COUNTS = [
  "payments",
  "credited",
  "takenBack",
  "cards",
  "refunded",
  "disputed",
  "chargedBack",
  "crashes",
  // Sent by their payers themselves, and held.
  "byPayers",
  "reorgs",
] as const;

/**
 * Payments through thousands of faults: a chain that is reorganised and whose node fails, a settler that lies or forgets,
 * cards with refunds and disputes, gateways that end at any write. The rail, the watch and the store are those of production; an auditor with books of its
 * own compares what the chain and Stripe show in the end with what was credited.
 */
export const PAYMENTS = scenario({
  options: { payments: 2_000 },
  seeds: 50,
  mutants: { rules: PAYMENT_MUTANTS, options: ["--payments", "400"] },
  counts: COUNTS,
  steps: ({ payments }) => payments,
  settled: promisesSettled,
  fill: (world) => void world.judgedBy(world.joins(new Gateways(world))),
  kept: "What is on the chain and at Stripe is what was credited.",
});

const BALANCES = 16;
/** Rounds at the end in which the operator repeats what was started. */
const LAST_REFUNDS = 20;
const GONE = "The chain was reorganised, and the transfer was not made again.";

class Gateways implements Player, Auditor {
  private readonly random: Random;
  private readonly time: VirtualClock;
  private readonly db: Database = emptyDatabase();
  private readonly ledger = new SqliteLedgerStore(new SqliteDatabase(this.db));
  private readonly chain: SimulatedChain;
  private readonly signed = new Map<string, SignedPayment>();
  private readonly spent = new Map<BalanceId, number>();
  private process!: EndingProcess;
  private timers!: ReturnType<VirtualClock["life"]>;
  /** Two gateways have one each, on one store. */
  private rails: X402Rail[] = [];
  private card!: CardRail;
  private readonly stripe: SimulatedStripe;
  /** For charge-backs. */
  private readonly suspended = new Set<BalanceId>();
  /** What the operator has started to refund, and repeats until it is done or there is too little left. */
  private readonly refunding = new Set<PaymentId>();
  /** Recorded, and answered with an error: their customers would pay again. */
  private readonly misled: string[] = [];
  private readonly repeated = new Set<string>();
  private isCalm = false;

  constructor(private readonly world: World<(typeof COUNTS)[number]>) {
    const { random, time } = world;
    this.random = random;
    this.time = time;
    this.chain = new SimulatedChain(random, time);
    this.stripe = new SimulatedStripe(random);
    for (let index = 0; index < BALANCES; index++)
      this.db.run("INSERT INTO balances (id, created_at) VALUES (?, 1)", [`bal_${index}`]);
    this.start();
  }

  async act(): Promise<void> {
    if (this.random.chance(0.3)) this.order();
    else this.arrive();
    this.stripe.happen();
    this.operate();
    if (this.random.chance(0.002)) this.crash();
    if (this.random.chance(0.01)) this.chain.reorganise();
    this.spend();
    await this.pass(this.random.exponential(300));
  }

  /** Everything is over: nothing fails any more, and whatever was signed has run out. */
  async end(): Promise<void> {
    this.isCalm = true;
    this.chain.calm();
    this.stripe.calm();
    for (let round = 0; round < 400 && (round < LAST_REFUNDS || !this.isOver()); round++) {
      this.operate();
      await this.pass(BLOCK_MS * 2);
    }
    await this.pass(PAYMENT_PACE.watchMs * 2);
  }

  private isOver(): boolean {
    const { n } = this.db
      .query<{ n: number }, []>("SELECT count(*) AS n FROM payments WHERE look_at IS NOT NULL")
      .get()!;
    return n === 0 && this.stripe.isDelivered;
  }

  private start(): void {
    this.timers = this.time.life();
    const { clock } = this.timers;
    const process = new EndingProcess(
      () => !this.isCalm && this.random.chance(0.005),
      () => this.crash(),
    );
    this.process = process;
    const sql = new SqlPaymentStore(new SqliteDatabase(this.db), clock);
    const store = process.fenced(sql, ["add", "change"]);
    // Other gateways may have to give something back first.
    const attempt = () =>
      this.random.chance(0.3) ? pause(clock, this.random.below(5_000)) : Promise.resolve();
    const { debit, suspend, lift } = process.fenced(
      {
        debit: (debit: Debit) => attempt().then(() => this.debit(debit)),
        suspend: async (balance: BalanceId) => void this.suspended.add(balance),
        lift: async (balance: BalanceId) => void this.suspended.delete(balance),
      },
      ["debit", "suspend", "lift"],
    );
    const rail = () =>
      new X402Rail({
        networks: [NETWORK],
        open: async () => ({
          chain: process.fenced(this.chain.node()),
          settler: process.fenced({
            settle: (one: SignedPayment) => this.chain.settle(one),
            hasSent: async (sender: Address, isAnswerLost: boolean) => isAnswerLost && sender === SETTLER,
          }),
        }),
        store,
        debit,
        sanctions: { isHit: async () => false, refresh: async () => {} },
        suspend: async () => {},
        pace: PAYMENT_PACE,
        clock,
        random: this.random.bytes,
        log: () => {},
      });
    this.rails = [rail(), rail()];
    const api = process.fenced(this.stripe.api());
    this.card = cardRail({ api, store, debit, suspend, lift, clock, random: this.random.bytes });
    for (const one of this.rails) {
      new PaymentWatch(store, [one, this.card], PAYMENT_PACE, clock, () => {});
      void one.prepare();
    }
  }

  private crash(): void {
    this.world.counts.crashes += 1;
    this.process.isOver = true;
    this.timers.end();
    this.start();
  }

  /** Somebody orders credit by card. */
  private order(): void {
    const amount = (1 + this.random.below(50)) * 1_000_000_000;
    const cap = { of: "balance", limit: Number.MAX_SAFE_INTEGER as NanoUsd, since: epochMs(0) } as const;
    const balanceId: BalanceId = `bal_${this.random.below(BALANCES)}`;
    this.card
      .order({ balanceId, amount: amount as NanoUsd, idempotencyKey: null, caps: [cap] })
      .catch(() => {});
  }

  /** Events come, and the operator refunds. */
  private operate(): void {
    this.stripe.deliverEvents(async (body) => void (await this.card.event({ body, signature: "" })));
    if (!this.isCalm && this.random.chance(0.1)) {
      const found = this.db
        .query<{ id: PaymentId }, [number]>(
          "SELECT id FROM payments WHERE rail = 'card' AND state = 'credited' ORDER BY created_at DESC LIMIT 1 OFFSET ?",
        )
        .get(this.random.below(BALANCES));
      if (found !== null) this.refunding.add(found.id);
    }
    for (const id of this.refunding) if (this.isCalm || this.random.chance(0.3)) void this.refund(id);
  }

  private async refund(id: PaymentId): Promise<void> {
    const payment = await new SqlPaymentStore(new SqliteDatabase(this.db), this.time).find(id);
    const done = await this.card.refund(payment!).catch(() => "no answer");
    if (typeof done === "object") this.refunding.delete(id);
  }

  private arrive(): void {
    const usd = 1 + this.random.below(50);
    const again = this.signed.size > 0 && this.random.chance(0.05);
    const signed = again ? [...this.signed.values()].at(-1)! : this.sign(usd);
    if (again) this.repeated.add(externalOf(signed));
    const amount = (Number(signed.accepted.amount) * 1_000) as NanoUsd;
    const balanceId: BalanceId = `bal_${this.random.below(BALANCES)}`;
    const order = {
      balanceId,
      keyId: "key_1" as KeyId,
      amount,
      isInline: this.random.chance(0.5),
      idempotencyKey: null,
      isOwners: true,
      caps: [],
    };
    const rail = this.rails[this.random.below(this.rails.length)]!;
    if (rail.offered().length === 0) return;
    const { process } = this;
    // Some were not needed when their turn came, and some payers send what they signed themselves.
    const doing = this.random.chance(0.1) ? rail.noteUnused(signed, order) : rail.take(signed, order);
    doing.catch(() => {
      // If one is presented twice, either may be recorded while the other has failed.
      const isAlone = !this.repeated.has(externalOf(signed));
      if (!process.isOver && isAlone && this.isRecorded(signed)) this.misled.push(externalOf(signed));
    });
    if (this.random.chance(0.03)) this.chain.send(signed, PAYER);
  }

  private isRecorded(signed: SignedPayment): boolean {
    return this.db.query("SELECT 1 FROM payments WHERE external = ?").get(externalOf(signed)) !== null;
  }

  private sign(usd: number): SignedPayment {
    const { network, asset, payTo } = NETWORK;
    const hex = (length: number) =>
      `0x${Array.from({ length }, () => this.random.below(16).toString(16)).join("")}` as const;
    const value = String(usd * 1_000_000);
    const validS = this.random.chance(0.5) ? 300 : 10 + this.random.below(50);
    const validBefore = String(Math.floor(this.time.now() / 1_000) + validS);
    const authorization = {
      from: hex(40),
      to: payTo,
      value,
      validAfter: "0",
      validBefore,
      nonce: hex(64),
    } as Authorization;
    const signed: SignedPayment = {
      accepted: { scheme: "exact", network, asset, payTo, amount: value },
      authorization,
      signature: "0x00",
    };
    this.signed.set(externalOf(signed), signed);
    return signed;
  }

  private spend(): void {
    const balance: BalanceId = `bal_${this.random.below(BALANCES)}`;
    const spent = this.spent.get(balance) ?? 0;
    const part = this.random.chance(0.5) ? 1 : this.random.next();
    this.spent.set(balance, spent + Math.floor((this.ledger.credited(balance) - spent) * part));
  }

  private async debit(debit: Debit): Promise<Credit | TooMuch> {
    const known = await this.ledger.entry(debit.idempotencyKey);
    if (known !== null) return known;
    const available = this.ledger.credited(debit.balanceId) - (this.spent.get(debit.balanceId) ?? 0);
    const done = taken(debit.amount, { available, unspent: available });
    if (done === null) return { available: available as NanoUsd };
    return this.ledger.debit(debit, done);
  }

  private sinceBlockMs = 0;

  /** Blocks are mined meanwhile. */
  private async pass(ms: number): Promise<void> {
    await this.world.pass(ms);
    this.sinceBlockMs += ms;
    for (; this.sinceBlockMs >= BLOCK_MS; this.sinceBlockMs -= BLOCK_MS) this.chain.mine();
    await this.world.settled();
  }

  /** What the chain shows in the end, against the payments, against the books. */
  async judge(): Promise<void> {
    const { counts } = this.world;
    const rows = this.db
      .query<
        {
          id: PaymentId;
          rail: Payment["rail"];
          external: string;
          balance_id: BalanceId;
          state: Payment["state"];
          amount: NanoUsd;
          credited: number;
          lost: number;
          reason: string | null;
          nextPollAt: number | null;
        },
        []
      >('SELECT *, look_at AS "nextPollAt" FROM payments')
      .all();
    const moved = this.chain.moved();
    const sentByPayers = this.chain.byPayers();
    const owed = new Map<BalanceId, number>();
    const disputed = new Set<BalanceId>();
    counts.payments = rows.length;
    for (const row of rows) {
      check(row.nextPollAt === null, `${row.external} is ${row.state} and never became final`);
      const isCard = row.rail === "card";
      const kept = isCard ? this.stripe.kept(row.id, row.amount) : (moved.get(row.external) ?? 0);
      check(isCard || kept === 0 || kept === row.amount, `${row.external} moved ${kept}`);
      // Another store may have been shown it as well.
      if (sentByPayers.has(row.external) && row.state === "held" && row.credited === 0) {
        counts.byPayers += 1;
        continue;
      }
      const isSettled = isCard || kept === 0 || this.chain.wasSettled(row.external);
      check(isSettled, `${row.external} is ${row.state}, and was not carried out for us`);
      check(
        row.credited - row.lost === kept,
        `${row.external} is ${row.state}: credited ${row.credited}, lost ${row.lost}, and ${kept} is here`,
      );
      if (isCard && this.stripe.isDisputed(row.id)) disputed.add(row.balance_id);
      const state = COUNTED[row.state];
      if (state !== undefined) counts[state] += 1;
      if (isCard) counts.cards += 1;
      owed.set(row.balance_id, (owed.get(row.balance_id) ?? 0) + row.credited);
      if (row.reason === GONE) counts.takenBack += 1;
    }
    for (let index = 0; index < BALANCES; index++) {
      const id: BalanceId = `bal_${index}`;
      const books = this.ledger.credited(id);
      check(books === (owed.get(id) ?? 0), `${id} has ${books}, and its payments say ${owed.get(id) ?? 0}`);
      check(this.suspended.has(id) === disputed.has(id), `${id} is suspended for no dispute, or not for one`);
      const pending = (await Promise.all(this.rails.map((rail) => rail.pending(id)))).find(Boolean) ?? null;
      check(pending === null, `${id} waits for ${pending}, which is decided`);
    }
    check(this.misled.length === 0, `answered with an error although recorded: ${this.misled.join(", ")}`);
    const { drifts } = await this.ledger.audit();
    check(drifts.length === 0, "the books drift");
    counts.reorgs = this.chain.reorgs;
  }

  close(): void {
    this.db.close();
  }
}

const COUNTED: Partial<Record<Payment["state"], (typeof COUNTS)[number]>> = {
  credited: "credited",
  refunded: "refunded",
  disputed: "disputed",
  charged_back: "chargedBack",
};
