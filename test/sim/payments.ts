import type { Database } from "bun:sqlite";
import type { Credit, Debit, TooMuch } from "../../src/ledger/credit.ts";
import { debitEntry, taken } from "../../src/ledger/credit.ts";
import type { Payment } from "../../src/payments/payment.ts";
import type { PaymentStore } from "../../src/payments/payment-store.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import { PaymentWatch } from "../../src/payments/rails/payment-watch.ts";
import { CardRail } from "../../src/payments/rails/stripe/card-rail.ts";
import type { Authorization, SignedPayment } from "../../src/payments/rails/x402/authorization.ts";
import { externalOf } from "../../src/payments/rails/x402/authorization.ts";
import type { Address } from "../../src/payments/rails/x402/network.ts";
import { X402Rail } from "../../src/payments/rails/x402/x402.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { LedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SqlPaymentStore } from "../../src/store/payments/payment-store.ts";
import { epochMs, pause } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, PaymentId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { VirtualClock } from "./clock.ts";
import { emptyDatabase } from "./database.ts";
import { Random } from "./random.ts";
import { BLOCK_MS, NETWORK, PAYER, SETTLER, SimulatedChain } from "./simulated-chain.ts";
import { SimulatedStripe } from "./simulated-stripe.ts";

/**
 * Payments through thousands of faults: a chain that is reorganised and whose node fails, a settler that lies or forgets,
 * cards with refunds and disputes, gateways that end at any write. The rail, the watch and the store are those of production; an auditor with books of its
 * own compares what the chain and Stripe show in the end with what was credited.
 */
export async function simulatePayments(seed: number, payments: number): Promise<PaymentTotals> {
  const world = new PaymentWorld(new Random(seed), payments);
  await world.run();
  return world.audit();
}

export interface PaymentTotals {
  readonly payments: number;
  readonly credited: number;
  readonly takenBack: number;
  readonly cards: number;
  readonly refunded: number;
  readonly disputed: number;
  readonly chargedBack: number;
  readonly crashes: number;
  /** Sent by their payers themselves, and held. */
  readonly byPayers: number;
  readonly reorgs: number;
}

const START = epochMs(Date.UTC(2026, 0, 1));
const BALANCES = 16;
/** Rounds at the end in which the operator repeats what was started. */
const LAST_REFUNDS = 20;
const GONE = "The chain was reorganised, and the transfer was not made again.";

class PaymentWorld {
  private readonly time = new VirtualClock(START);
  private readonly db: Database = emptyDatabase();
  private readonly ledger = new LedgerStore(this.db);
  private readonly chain: SimulatedChain;
  private readonly signed = new Map<string, SignedPayment>();
  private readonly spent = new Map<BalanceId, number>();
  private life = { over: true, end() {} };
  /** One for each of two gateways on one store. */
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
  private made = 0;
  private isCalm = false;
  private crashes = 0;

  constructor(
    private readonly random: Random,
    private readonly payments: number,
  ) {
    this.chain = new SimulatedChain(random, this.time);
    this.stripe = new SimulatedStripe(random);
    for (let index = 0; index < BALANCES; index++)
      this.db.run("INSERT INTO balances (id, created_at) VALUES (?, 1)", [`bal_${index}`]);
  }

  async run(): Promise<void> {
    this.begin();
    while (this.made < this.payments) {
      if (this.random.chance(0.3)) this.order();
      else this.arrive();
      this.stripe.happen();
      this.operate();
      if (this.random.chance(0.002)) this.crash();
      if (this.random.chance(0.01)) this.chain.reorganise();
      this.spend();
      await this.pass(this.random.exponential(300));
    }
    // In the end, everything is over: nothing fails any more, and whatever was signed has run out.
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

  private begin(): void {
    const { clock, end } = this.time.life();
    const life = { over: false, end };
    this.life = life;
    const fenced = <T extends object>(parts: T): T => fence(parts, life);
    const after = this.crashingAfter(life);
    const store = fenced(crashing(new SqlPaymentStore(new SqliteDatabase(this.db), clock), after));
    // Other gateways may have to give something back first.
    const attempt = () =>
      this.random.chance(0.3) ? pause(clock, this.random.below(5_000)) : Promise.resolve();
    const { debit } = fenced({ debit: (debit: Debit) => after(attempt().then(() => this.debit(debit))) });
    const rail = () =>
      new X402Rail({
        networks: [NETWORK],
        open: async () => ({
          chain: fenced(this.chain.node()),
          settler: fenced({
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
    this.card = new CardRail({
      pace: PAYMENT_PACE,
      api: fenced(this.stripe.api()),
      store,
      clock,
      random: this.random.bytes,
      fee: { percent: 2.9, fixed: 300_000_000 as NanoUsd },
      onFault() {},
      debit,
      ...fenced({
        suspend: (balance: BalanceId) => after(Promise.resolve(void this.suspended.add(balance))),
        lift: (balance: BalanceId) => after(Promise.resolve(void this.suspended.delete(balance))),
      }),
      returnUrl: () => "https://gateway.example",
    });
    for (const one of this.rails) {
      new PaymentWatch(store, [one, this.card], PAYMENT_PACE, clock, () => {});
      void one.prepare();
    }
  }

  private crash(): void {
    if (this.life.over) return;
    this.crashes += 1;
    this.life.over = true;
    this.life.end();
    this.begin();
  }

  /** The process may end right after a write that is durable, before anybody is answered. */
  private crashingAfter(life: { over: boolean }): After {
    return async (done) => {
      const result = await done;
      if (!life.over && !this.isCalm && this.random.chance(0.005)) this.crash();
      return result;
    };
  }

  /** Somebody orders credit by card. */
  private order(): void {
    this.made += 1;
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
    this.made += 1;
    const rail = this.rails[this.random.below(this.rails.length)]!;
    if (rail.offered().length === 0) return;
    const { life } = this;
    // Some were not needed when their turn came, and some payers send what they signed themselves.
    const doing = this.random.chance(0.1) ? rail.noteUnused(signed, order) : rail.take(signed, order);
    doing.catch(() => {
      // If one is presented twice, either may be recorded while the other has failed.
      const isAlone = !this.repeated.has(externalOf(signed));
      if (!life.over && isAlone && this.isRecorded(signed)) this.misled.push(externalOf(signed));
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

  private debit(debit: Debit): Credit | TooMuch {
    const known = this.ledger.entry(debit.idempotencyKey);
    if (known !== null) return known;
    const available = this.ledger.credited(debit.balanceId) - (this.spent.get(debit.balanceId) ?? 0);
    const done = taken(debit.amount, { available, unspent: available });
    if (done === null) return { available: available as NanoUsd };
    return this.ledger.debit(debitEntry(debit, done));
  }

  private sinceBlockMs = 0;

  /** Lets time go by, timer by timer, and whatever that sets off happen. */
  private async pass(ms: number): Promise<void> {
    const untilMs = this.time.elapsedMs() + ms;
    this.sinceBlockMs += ms;
    while (this.time.step(untilMs)) await settled();
    for (; this.sinceBlockMs >= BLOCK_MS; this.sinceBlockMs -= BLOCK_MS) this.chain.mine();
    await settled();
  }

  /** The auditor: what the chain shows in the end, against the payments, against the books. */
  async audit(): Promise<PaymentTotals> {
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
    const states: Partial<Record<Payment["state"], number>> = {};
    let cards = 0;
    let takenBack = 0;
    let byPayers = 0;
    for (const row of rows) {
      check(row.nextPollAt === null, `${row.external} is ${row.state} and never became final`);
      const isCard = row.rail === "card";
      const kept = isCard ? this.stripe.kept(row.id, row.amount) : (moved.get(row.external) ?? 0);
      check(isCard || kept === 0 || kept === row.amount, `${row.external} moved ${kept}`);
      // Another store may have been shown it as well.
      if (sentByPayers.has(row.external) && row.state === "held" && row.credited === 0) {
        byPayers += 1;
        continue;
      }
      const isSettled = isCard || kept === 0 || this.chain.wasSettled(row.external);
      check(isSettled, `${row.external} is ${row.state}, and was not carried out for us`);
      check(
        row.credited - row.lost === kept,
        `${row.external} is ${row.state}: credited ${row.credited}, lost ${row.lost}, and ${kept} is here`,
      );
      if (isCard && this.stripe.isDisputed(row.id)) disputed.add(row.balance_id);
      states[row.state] = (states[row.state] ?? 0) + 1;
      if (isCard) cards += 1;
      owed.set(row.balance_id, (owed.get(row.balance_id) ?? 0) + row.credited);
      if (row.reason === GONE) takenBack += 1;
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
    const { drifts } = this.ledger.audit();
    check(drifts.length === 0, "the books drift");
    this.db.close();
    const { credited = 0, refunded = 0, disputed: open = 0, charged_back: chargedBack = 0 } = states;
    const { crashes, chain } = this;
    return {
      payments: rows.length,
      credited,
      takenBack,
      cards,
      refunded,
      disputed: open,
      chargedBack,
      crashes,
      byPayers,
      reorgs: chain.reorgs,
    };
  }
}

type After = <Result>(done: Promise<Result>) => Promise<Result>;

const crashing = (store: PaymentStore, after: After): PaymentStore => ({
  add: (payment, caps) => after(store.add(payment, caps)),
  change: (id, decide) => after(store.change(id, decide)),
  find: (id) => store.find(id),
  byExternal: (rail, external) => store.byExternal(rail, external),
  claim: (now, until, limit) => store.claim(now, until, limit),
  oldestSubmitted: (butOfReason) => store.oldestSubmitted(butOfReason),
  list: (filter, limit, before) => store.list(filter, limit, before),
});

/** Nothing that a dead process still does is done, and nothing answers it. */
function fence<T extends object>(parts: T, life: { readonly over: boolean }): T {
  const wrapped: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(parts) as [
    string,
    (...sent: unknown[]) => Promise<unknown>,
  ][]) {
    wrapped[name] = async (...sent: unknown[]) => {
      if (life.over) return new Promise(() => {});
      const answer = await method(...sent);
      return life.over ? new Promise(() => {}) : answer;
    };
  }
  return wrapped as T;
}

/** Promises that wait for nothing but each other. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 60; turn++) await null;
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}
