import type { Database } from "bun:sqlite";
import type { Credit, Debit, TooMuch } from "../../src/ledger/credit.ts";
import type { Payment } from "../../src/payments/payment.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import type { CardRail } from "../../src/payments/rails/stripe/card-rail.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SqlPaymentStore } from "../../src/store/payments/payment-store.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId, PaymentId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import type { VirtualClock } from "./clock.ts";
import { emptyDatabase } from "./database.ts";
import { cardRail, EndingProcess } from "./ending-process.ts";
import { TAKE_BACK_MUTANTS } from "./mutants/take-backs.ts";
import type { Random } from "./random.ts";
import { scenario } from "./scenario.ts";
import { SimulatedStripe } from "./simulated-stripe.ts";
import { NodeBooks, type OpenHold, SoleBooks, type TakeBackBooks } from "./take-back-books.ts";
import { type Auditor, check, type Player, promisesSettled, type World } from "./world.ts";

const COUNTS = ["histories", "payments", "admitted", "claims", "lost", "crashes"] as const;

/**
 * Histories of a balance that is paid for by card: refunds, some of which fail, disputes of parts and of the whole,
 * before, during and after requests that hold its credit, events that are missed, late and doubled, operators who
 * credit, debit, refund and decide meanwhile, and processes that end at any write. Rail, ledger, claims and stores are
 * those of production, at one process or at several nodes. The auditor keeps books of its own: what the customer has, spent and got back
 * is what was paid, and what was lost was spent.
 */
export const TAKE_BACKS = scenario({
  // So many payments of one balance, in each history; one node has all of the ledger, several share it by grants.
  options: { histories: 500, payments: 3, nodes: 1 },
  seeds: 200,
  // A stream has to grow on one node while a dispute takes back what another has given back.
  mutants: { rules: TAKE_BACK_MUTANTS, options: ["--histories", "40"], seeds: 400 },
  counts: COUNTS,
  steps: ({ histories }) => histories,
  settled: promisesSettled,
  fill: (world, of) => void world.judgedBy(world.joins(new Histories(world, of))),
  kept: "What customers have, spent and got back is what was paid; what was lost was spent.",
});

/** One after another, on one database. */
class Histories implements Player, Auditor {
  private readonly db = emptyDatabase();

  constructor(
    private readonly world: World<(typeof COUNTS)[number]>,
    private readonly of: { readonly payments: number; readonly nodes: number },
  ) {}

  async act(): Promise<void> {
    await new History(this.db, this.world, this.of).run();
    this.world.counts.histories += 1;
  }

  async judge(): Promise<void> {
    const { drifts } = await new SqliteLedgerStore(new SqliteDatabase(this.db)).audit();
    check(drifts.length === 0, `${drifts[0]?.account} drifts`);
    const later = { now: () => epochMs(this.world.time.now() + 100_000) };
    const [drift] = await new SqlPaymentStore(new SqliteDatabase(this.db), later).drifts();
    check(drift === undefined, `${drift?.payment} is not what it should be`);
  }

  close(): void {
    this.db.close();
  }
}

/** In each history, before everything comes to an end. */
const STEPS = 40;

class History {
  private readonly balance: BalanceId;
  private readonly books: TakeBackBooks;
  private readonly stripe: SimulatedStripe;
  private process!: EndingProcess;
  /** Two gateways, which know the same payments. */
  private rails: CardRail[] = [];
  private store!: SqlPaymentStore;
  private open: OpenHold[] = [];
  private readonly charges = new Map<string, number>();
  private readonly suspensions = new Set<string>();
  /** What the operator wants, until it is answered. */
  private wishes: (() => Promise<boolean>)[] = [];
  private givenByHand = 0;
  private ordered = 0;
  private late: (() => void)[] = [];
  private isCalm = false;

  private readonly number: number;
  private readonly random: Random;
  private readonly time: VirtualClock;

  constructor(
    private readonly db: Database,
    private readonly world: World<(typeof COUNTS)[number]>,
    private readonly of: { readonly payments: number; readonly nodes: number },
  ) {
    const { random, time, counts } = world;
    this.random = random;
    this.time = time;
    this.number = counts.histories;
    this.balance = `bal_${this.number}` as BalanceId;
    db.run("INSERT INTO balances (id, created_at) VALUES (?, 1)", [this.balance]);
    this.books = of.nodes > 1 ? new NodeBooks(db, time, random, of.nodes) : new SoleBooks(db, time, random);
    this.stripe = new SimulatedStripe(random, { isPaidOtherwise: true });
    this.begin();
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      await this.step();
      this.judge();
    }
    await this.end();
    await this.audit();
    this.books.close();
  }

  private async step(): Promise<void> {
    const { random } = this;
    const dice = random.next();
    if (this.ordered < this.of.payments && random.chance(0.3)) this.order();
    if (dice < 0.25) this.stripe.happen();
    else if (dice < 0.5) await this.request();
    else if (dice < 0.6) this.settleOne();
    else if (dice < 0.65) this.grow();
    else if (dice < 0.75) this.watch();
    else if (dice < 0.8) void this.books.endClaims().catch(() => {});
    else if (dice < 0.9) await this.wish();
    else if (dice < 0.92) this.crash();
    this.notify();
    await this.pass(random.below(1_000));
  }

  /** Nothing fails any more, every request ends, and all that was wanted is done. */
  private async end(): Promise<void> {
    this.isCalm = true;
    this.stripe.calm();
    this.books.calm();
    for (let round = 0; round < MAX_ROUNDS; round++) {
      while (this.open.length > 0) this.settleOne();
      this.notify();
      this.watch();
      for (const wish of this.wishes.splice(0)) if (!(await this.during(wish()))) this.wishes.push(wish);
      await this.during(this.books.endClaims());
      await this.pass(10_000);
      this.judge();
      if (round > 8 && (await this.isOver())) return;
    }
    check(false, `${this.name} does not come to an end`);
  }

  private get name(): string {
    return `history ${this.number} of ${this.of.payments} payments`;
  }

  private async isOver(): Promise<boolean> {
    const waiting = (await this.payments()).some(({ nextPollAt }) => nextPollAt !== null);
    return !waiting && this.stripe.isDelivered && this.wishes.length === 0 && this.claimed === 0;
  }

  private begin(): void {
    const { time, random } = this;
    const process = new EndingProcess(
      () => !this.isCalm && random.chance(0.01),
      () => this.crash(),
    );
    this.process = process;
    const credited = ({ balanceId, amount }: Credit) => this.books.credited(balanceId, amount);
    this.store = new SqlPaymentStore(new SqliteDatabase(this.db), time, credited);
    const store = process.fenced(this.store, ["add", "change"]);
    const stripe = this.stripe.api();
    const checkout: typeof stripe.checkout = async (id) => {
      const found = await stripe.checkout(id);
      // The first caller may be answered last.
      await this.someTime();
      return found;
    };
    const api = process.fenced({ ...stripe, checkout }, ["open", "checkout", "refund"]);
    const rail = (gateway: number) => {
      const calls = {
        debit: (debit: Debit) => this.debit(debit, gateway),
        suspend: async () => {
          await this.someTime();
          if (!process.isOver) this.suspensions.add("chargeback");
        },
        lift: async () => void this.suspensions.delete("chargeback"),
      };
      const fenced = process.fenced(calls, ["debit", "suspend", "lift"]);
      const { debit, suspend, lift } = fenced;
      return cardRail({ api, store, debit, suspend, lift, clock: time, random: random.bytes });
    };
    this.rails = [rail(0), rail(1)];
  }

  /** The process ends, or one of them; what was on the disk is booked by the next. */
  private crash(): void {
    if (this.isCalm) return;
    this.world.counts.crashes += 1;
    this.process.isOver = true;
    const ended = this.books.crash();
    for (const [receipt, charged] of ended) this.charges.set(receipt, charged);
    this.open = this.open.filter(({ receipt }) => !ended.has(receipt));
    this.begin();
  }

  private order(): void {
    this.ordered += 1;
    this.world.counts.payments += 1;
    const amount = (100 + this.random.below(4_900)) * 10_000_000;
    const order = { balanceId: this.balance, amount: amount as NanoUsd, idempotencyKey: null, caps: [] };
    this.random
      .pick(this.rails)
      .order(order)
      .catch(() => {});
  }

  private async request(): Promise<void> {
    const amount = Math.ceil(this.random.next() ** 2 * 30_000_000_000) as NanoUsd;
    await this.during(
      this.books.admit(this.balance, amount, (hold) => {
        this.world.counts.admitted += 1;
        this.open.push(hold);
        this.covered("is admitted");
      }),
    );
  }

  /** Every charge and every hold is on credit that the balance has, by its entries. */
  private covered(what: string): void {
    if (this.books.unanswered.size > 0) return;
    const held = this.open.reduce((sum, hold) => sum + hold.held, 0);
    check(held + this.spent <= this.credited, `${this.name}: what ${what} is on credit that was taken back`);
  }

  private get spent(): number {
    return [...this.charges.values()].reduce((sum, charged) => sum + charged, 0);
  }

  private get credited(): number {
    return this.db
      .query<{ sum: number }, [string]>(
        "SELECT coalesce(sum(amount), 0) AS sum FROM credits WHERE balance_id = ?",
      )
      .get(this.balance)!.sum;
  }

  /** By the entries: one that was refused when it was repeated may have been made by the first attempt. */
  private get takenByHand(): number {
    return -this.db
      .query<{ sum: number }, [string, string]>(
        "SELECT coalesce(sum(amount), 0) AS sum FROM credits WHERE balance_id = ? AND idempotency_key LIKE ? || '%'",
      )
      .get(this.balance, TAKEN)!.sum;
  }

  private get claimed(): number {
    return this.db
      .query<{ sum: number }, [string]>(
        "SELECT coalesce(sum(claimed), 0) AS sum FROM credits WHERE balance_id = ?",
      )
      .get(this.balance)!.sum;
  }

  private async debit(debit: Debit, gateway: number): Promise<Credit | TooMuch> {
    const done = await this.books.debit(debit, gateway);
    if ("claimed" in done && done.claimed! > 0) this.world.counts.claims += 1;
    return done;
  }

  private grow(): void {
    const hold = this.random.pick(this.open);
    if (hold?.grow(this.random.below(5_000_000_000) as NanoUsd)) this.covered("a stream has grown to");
  }

  private settleOne(): void {
    const hold = this.open.splice(this.random.below(this.open.length), 1)[0];
    if (hold === undefined) return;
    const part = this.random.chance(0.3) ? 1 : this.random.next() * this.random.next();
    this.charges.set(hold.receipt, hold.end(Math.floor(hold.held * part) as NanoUsd));
  }

  private watch(): void {
    const now = this.time.now();
    const rail = this.random.pick(this.rails);
    const { store, process } = this;
    void store.claim(now, epochMs(now + PAYMENT_PACE.leaseMs), 16).then((due) => {
      for (const payment of due) {
        const again = () => store.change(payment.id, () => ({ nextPollAt: epochMs(now + 5_000) }));
        rail.poll(payment).catch(() => process.isOver || void again());
      }
    });
  }

  /** Events are received, or come again. */
  private notify(): void {
    const rail = this.random.pick(this.rails);
    this.stripe.deliverEvents(async (body) => void (await rail.event({ body, signature: "" })));
  }

  /** Something that the operator wants, and asks for until it is answered. */
  private async wish(): Promise<void> {
    const { random } = this;
    const dice = random.next();
    const payment = random.pick(await this.payments());
    if (dice < 0.2) this.give((1 + random.below(1_000)) * 10_000_000);
    else if (dice < 0.5)
      this.wishes.push(this.debitByHand(random.chance(0.3) ? "all" : random.below(2e10) + 1));
    else if (payment !== undefined && dice < 0.75) this.wishes.push(this.refund(payment.id));
    else if (payment !== undefined) this.wishes.push(this.resolve(payment.id));
    for (const wish of this.wishes.splice(0)) if (!(await this.during(wish()))) this.wishes.push(wish);
  }

  private give(amount: number): void {
    const credit = { balanceId: this.balance, amount: amount as NanoUsd, note: null, at: this.time.now() };
    this.books.credit({ ...credit, idempotencyKey: `given ${this.number} ${this.random.next()}` });
    this.givenByHand += amount;
  }

  private debitByHand(amount: number | "all"): () => Promise<boolean> {
    const requested = amount as NanoUsd | "all";
    const idempotencyKey = `${TAKEN} ${this.number} ${this.random.next()}`;
    const debit = {
      balanceId: this.balance,
      amount: requested,
      idempotencyKey,
      note: null,
      at: this.time.now(),
    };
    return async () => {
      const { process } = this;
      const done = await this.books.debit(debit, 0).catch(() => null);
      return done !== null && !process.isOver;
    };
  }

  private refund = (id: PaymentId) => async (): Promise<boolean> => {
    const payment = (await this.store.find(id))!;
    if (payment.state !== "credited" && payment.state !== "held") return true;
    const done = await this.random
      .pick(this.rails)
      .refund(payment)
      .catch(() => "no answer");
    return typeof done === "object" || done === "not refundable";
  };

  private resolve = (id: PaymentId) => async (): Promise<boolean> => {
    const payment = (await this.store.find(id))!;
    if (payment.state !== "held") return true;
    const as = this.random.chance(0.5) ? "credited" : "refunded";
    const done = await this.random
      .pick(this.rails)
      .resolve(payment, as, null)
      .catch(() => "no answer");
    return done !== "no answer" && done !== "under way";
  };

  private payments(): Promise<readonly Payment[]> {
    return this.store.list({ balanceId: this.balance, keyId: null, state: null }, 100, null);
  }

  /** Resolves at some later moment. */
  private someTime(): Promise<void> {
    if (this.isCalm || this.random.chance(0.6)) return Promise.resolve();
    return new Promise((resolve) => void this.late.push(resolve));
  }

  private async pass(ms: number): Promise<void> {
    for (const go of this.late.splice(0)) {
      if (this.isCalm || this.random.chance(0.5)) go();
      else this.late.push(go);
    }
    await this.world.pass(ms);
  }

  /** Lets time go by until it is done; null where the process ended before. */
  private async during<Result>(done: Promise<Result>): Promise<Result | null> {
    let result: { readonly value: Result | null } | null = null;
    done.then(
      (value) => (result = { value }),
      () => (result = { value: null }),
    );
    const { process } = this;
    for (let turns = 0; result === null && !process.isOver && turns < MAX_TURNS; turns++) await this.pass(50);
    return (result as { readonly value: Result | null } | null)?.value ?? null;
  }

  private judge(): void {
    const { credited, spent } = this;
    const { claimed } = this;
    check(credited >= 0, `${this.name}: more was taken back than was credited`);
    check(
      spent - claimed <= credited,
      `${this.name}: ${spent} was spent of ${credited}, with claims of ${claimed}`,
    );
    const early = this.db
      .query(
        `SELECT id FROM payments WHERE balance_id = ? AND "order" ->> '$.isReturned' AND credited <> lost`,
      )
      .get(this.balance);
    check(early === null, `${this.name}: what the operator refunds is credited again`);
  }

  /** What the customer has, spent and got back is what was paid; what was lost was spent. */
  private async audit(): Promise<void> {
    const { name, spent, credited } = this;
    let [paid, gotBack, lost] = [0, 0, 0];
    let isDisputed = false;
    for (const payment of await this.payments()) {
      const { id, state, amount } = payment;
      const { isPaid, currency, isAsOrdered } = this.stripe.stateOf(id);
      // What did not come as ordered is credit once the operator has said so.
      const isCredit = isPaid && currency === "usd" && (isAsOrdered || JSON.parse(payment.order).isAccepted);
      const kept = isCredit ? this.stripe.kept(id, amount) : 0;
      const is = payment.credited - payment.lost;
      check(is === kept, `${name}: ${id} is ${state}, and credited with ${is} for ${kept}`);
      check(
        this.of.payments > 1 || payment.credited <= amount,
        `${name}: ${id} of ${amount} is credited with ${payment.credited}`,
      );
      check(payment.lost >= 0, `${name}: ${id} has lost less than nothing`);
      isDisputed ||= this.stripe.isDisputed(id);
      const value = isCredit ? amount : 0;
      paid += value;
      gotBack += value - is;
      lost += payment.lost;
    }
    this.world.counts.lost += lost;
    const has = await this.books.has(this.balance);
    check(has === credited - spent, `${name}: has ${has}, by its entries ${credited - spent}`);
    const { takenByHand } = this;
    const byHand = takenByHand - this.givenByHand;
    check(
      has + spent + gotBack + byHand === paid + lost,
      `${name}: ${has} + ${spent} + ${gotBack} + ${byHand} is not ${paid} + ${lost}`,
    );
    check(lost <= spent + takenByHand, `${name}: ${lost} is lost, and ${spent} was spent`);
    check(
      this.suspensions.has("chargeback") === isDisputed,
      `${name}: is suspended for no dispute, or not for one`,
    );
  }
}

/** Idempotency keys of the operator's debits begin so. */
const TAKEN = "taken";
const MAX_ROUNDS = 60;
const MAX_TURNS = 600;
