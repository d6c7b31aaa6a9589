import type { Database } from "bun:sqlite";
import type { Credit, Debit, TooMuch } from "../../src/ledger/credit.ts";
import { taken } from "../../src/ledger/credit.ts";
import type { Payment } from "../../src/payments/payment.ts";
import type { PaymentStore } from "../../src/payments/payment-store.ts";
import { PaymentWatch } from "../../src/rails/payment-watch.ts";
import type { Authorization, SignedPayment } from "../../src/rails/x402/authorization.ts";
import { externalOf } from "../../src/rails/x402/authorization.ts";
import type { Chain, Movement } from "../../src/rails/x402/chain.ts";
import type { X402Network } from "../../src/rails/x402/network.ts";
import type { SettleHint } from "../../src/rails/x402/settler.ts";
import { X402Rail } from "../../src/rails/x402/x402.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { LedgerStore } from "../../src/store/sqlite/ledger-store.ts";
import { SqlitePaymentStore } from "../../src/store/sqlite/payment-store.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { VirtualClock } from "./clock.ts";
import { Random } from "./random.ts";

/**
 * Payments through thousands of faults: a chain that is reorganised and whose node fails, a settler that lies or forgets,
 * gateways that end at any write. The rail, the watch and the store are those of production; an auditor with books of its
 * own compares what the chain shows in the end with what was credited.
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
  readonly crashes: number;
  readonly reorgs: number;
}

const START = epochMs(Date.UTC(2026, 0, 1));
const BALANCES = 16;
const BLOCK_MS = 2_000;
const FINAL_BLOCKS = 10;
const DEEPEST_REORG = 8;
const NETWORK: X402Network = {
  network: "eip155:1",
  asset: `0x${"a".repeat(40)}`,
  payTo: `0x${"b".repeat(40)}`,
  rpc: "",
  settledBy: { facilitator: "" },
  confirmations: 2,
  finalizedAbove: 30_000_000_000 as NanoUsd,
  waitMs: 10_000,
};
const TOKEN = { name: "T", version: "1", decimals: 6 };

const GONE = "The chain was reorganised, and the transfer was not made again.";

interface Mined {
  readonly external: string;
  readonly value: string;
  readonly transaction: string;
}

class PaymentWorld {
  private readonly time = new VirtualClock(START);
  private readonly db: Database = openDatabase(":memory:");
  private readonly ledger = new LedgerStore(this.db);
  private readonly blocks: { time: number; mined: Mined[] }[] = [];
  private mempool: { authorization: Authorization; mined: Mined }[] = [];
  private readonly signed = new Map<string, SignedPayment>();
  private readonly poor = new Set<string>();
  private readonly spent = new Map<BalanceId, number>();
  private life = { over: true, end() {} };
  private rail!: X402Rail;
  private made = 0;
  private isCalm = false;
  private crashes = 0;
  private reorgs = 0;

  constructor(
    private readonly random: Random,
    private readonly payments: number,
  ) {
    for (let index = 0; index < BALANCES; index++)
      this.db.run("INSERT INTO balances (id, created_at) VALUES (?, 1)", [`bal_${index}`]);
    for (let index = 0; index <= FINAL_BLOCKS; index++) this.mine();
  }

  async run(): Promise<void> {
    this.begin();
    while (this.made < this.payments) {
      this.arrive();
      if (this.random.chance(0.002)) this.crash();
      if (this.random.chance(0.01)) this.reorganise();
      this.spend();
      await this.pass(this.random.exponential(300));
    }
    // In the end, everything is over: nothing fails any more, and whatever was signed has run out.
    this.isCalm = true;
    for (let round = 0; round < 400 && this.open() > 0; round++) await this.pass(BLOCK_MS * 2);
  }

  private open(): number {
    return this.db
      .query<{ n: number }, []>("SELECT count(*) AS n FROM payments WHERE look_at IS NOT NULL")
      .get()!.n;
  }

  private begin(): void {
    const { clock, end } = this.time.life();
    const life = { over: false, end };
    this.life = life;
    const fenced = <T extends object>(parts: T): T => fence(parts, life);
    const store = fenced(this.crashing(new SqlitePaymentStore(this.db, this.ledger, clock, () => {}), life));
    this.rail = new X402Rail({
      networks: [NETWORK],
      open: async () => ({
        chain: fenced(this.chain()),
        settler: fenced({ settle: (one: SignedPayment) => this.settle(one) }),
      }),
      store,
      debit: async (debit) => this.debit(debit),
      sanctions: { isHit: async () => false, listAgeS: async () => null },
      suspend: async () => {},
      clock,
      random: (into) => {
        for (let index = 0; index < into.length; index++) into[index] = this.random.below(256);
        return into;
      },
      log: () => {},
    });
    new PaymentWatch(store, [this.rail], clock, () => {});
    void this.rail.prepare();
  }

  private crash(): void {
    if (this.life.over) return;
    this.crashes += 1;
    this.life.over = true;
    this.life.end();
    this.begin();
  }

  /** The process may end right after a write that is durable, before anybody hears of it. */
  private crashing(store: SqlitePaymentStore, life: { over: boolean }): PaymentStore {
    const after = async <Result>(done: Promise<Result>): Promise<Result> => {
      const result = await done;
      if (!life.over && !this.isCalm && this.random.chance(0.005)) this.crash();
      return result;
    };
    return {
      add: (payment, caps) => after(store.add(payment, caps)),
      change: (id, decide) => after(store.change(id, decide)),
      find: (id) => store.find(id),
      byExternal: (rail, external) => store.byExternal(rail, external),
      claim: (now, until, limit) => store.claim(now, until, limit),
      list: (filter, limit, before) => store.list(filter, limit, before),
    };
  }

  private arrive(): void {
    const usd = 1 + this.random.below(50);
    const again = this.signed.size > 0 && this.random.chance(0.05);
    const signed = again ? [...this.signed.values()].at(-1)! : this.sign(usd);
    const amount = (Number(signed.accepted.amount) * 1_000) as NanoUsd;
    const balanceId: BalanceId = `bal_${this.random.below(BALANCES)}`;
    const order = {
      balanceId,
      keyId: "key_1" as KeyId,
      amount,
      isInline: this.random.chance(0.5),
      idempotencyKey: null,
      caps: [],
    };
    this.made += 1;
    const { rail } = this;
    if (rail.offered().length === 0) return;
    // Some were not needed when their turn came, and some payers send what they signed themselves.
    const doing = this.random.chance(0.1) ? rail.noteUnused(signed, order) : rail.take(signed, order);
    doing.catch(() => {});
    if (this.random.chance(0.03)) this.send(signed);
  }

  private sign(usd: number): SignedPayment {
    const { network, asset, payTo } = NETWORK;
    const hex = (length: number) =>
      `0x${Array.from({ length }, () => this.random.below(16).toString(16)).join("")}` as const;
    const value = String(usd * 1_000_000);
    const validBefore = String(Math.floor(this.time.now() / 1_000) + 300);
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
    this.spent.set(balance, spent + Math.floor((this.ledger.credited(balance) - spent) * this.random.next()));
  }

  private debit(debit: Debit): Credit | TooMuch {
    const known = this.ledger.entry(debit.idempotencyKey);
    if (known !== null) return known;
    const available = this.ledger.credited(debit.balanceId) - (this.spent.get(debit.balanceId) ?? 0);
    const amount = taken(debit.amount, available);
    if (amount === null) return { available: available as NanoUsd };
    return this.ledger.debit({ ...debit, amount: -amount as NanoUsd, tookAll: false });
  }

  private settle(signed: SignedPayment): Promise<SettleHint> {
    const transaction = this.isCalm || this.random.chance(0.8) ? this.send(signed) : "0xlie";
    return Promise.resolve(this.random.chance(0.3) ? { problem: "no answer" } : { transaction });
  }

  private send({ authorization, accepted }: SignedPayment): string {
    const external = externalOf({ authorization, accepted, signature: "0x" });
    const transaction = `0x${external}`;
    if (
      !this.poor.has(external) &&
      !this.isUsed(external) &&
      !this.mempool.some(({ mined }) => mined.external === external)
    )
      this.mempool.push({ authorization, mined: { external, value: authorization.value, transaction } });
    return transaction;
  }

  private mine(time = Math.floor(this.time.now() / 1_000)): void {
    const mined: Mined[] = [];
    const left: typeof this.mempool = [];
    for (const one of this.mempool) {
      if (Number(one.authorization.validBefore) <= time || this.isUsed(one.mined.external)) continue;
      if (this.random.chance(0.9)) mined.push(one.mined);
      else left.push(one);
    }
    this.mempool = left;
    this.blocks.push({ time, mined });
  }

  /** The transactions of the last blocks are gone; only some wait for a block again. */
  private reorganise(): void {
    this.reorgs += 1;
    const depth = 1 + this.random.below(DEEPEST_REORG);
    const dropped = this.blocks.splice(-depth);
    for (const { mined } of dropped) {
      for (const one of mined) {
        // Some have spent their money elsewhere meanwhile.
        if (this.random.chance(0.2)) this.poor.add(one.external);
        else if (this.random.chance(0.3)) this.send(this.signed.get(one.external)!);
      }
    }
    for (const { time } of dropped) this.mine(time);
  }

  private isUsed(external: string, upTo = this.blocks.length): boolean {
    for (let index = upTo - 1; index >= Math.max(0, upTo - 400); index--)
      if (this.blocks[index]!.mined.some((one) => one.external === external)) return true;
    return false;
  }

  private chain(): Chain {
    const failing = async () => {
      if (!this.isCalm && this.random.chance(0.02)) throw new Error("the node is away");
    };
    const nameOf = (authorization: Authorization) =>
      [NETWORK.network, NETWORK.asset, authorization.from, authorization.nonce].join("/");
    const finalized = () => this.blocks.length - 1 - FINAL_BLOCKS;
    return {
      token: async () => TOKEN,
      head: async () => {
        await failing();
        const latest = this.blocks.length - 1;
        return {
          latest,
          time: this.blocks[latest]!.time,
          finalized: finalized(),
          finalizedTime: this.blocks[finalized()]!.time,
        };
      },
      movement: async (authorization): Promise<Movement> => {
        await failing();
        const external = nameOf(authorization);
        for (let block = this.blocks.length - 1; block >= Math.max(0, this.blocks.length - 400); block--) {
          const found = this.blocks[block]!.mined.find((one) => one.external === external);
          if (found !== undefined)
            return {
              kind: "moved",
              transaction: found.transaction,
              block,
              to: NETWORK.payTo,
              value: found.value,
            };
        }
        return { kind: "unused" };
      },
      unusedAtFinality: async (authorization) => !this.isUsed(nameOf(authorization), finalized() + 1),
      refusal: async (authorization) => {
        const external = nameOf(authorization);
        return this.isUsed(external) ? "used" : this.poor.has(external) ? "too little money" : null;
      },
      isWaiting: async (transaction) => this.mempool.some(({ mined }) => mined.transaction === transaction),
      isSanctioned: async () => false,
      hasDomain: async () => true,
      gasOf: async () => 1n,
    };
  }

  private sinceBlockMs = 0;

  /** Lets time go by, timer by timer, and whatever that sets off happen. */
  private async pass(ms: number): Promise<void> {
    const untilMs = this.time.elapsedMs() + ms;
    this.sinceBlockMs += ms;
    while (this.time.step(untilMs)) await settled();
    for (; this.sinceBlockMs >= BLOCK_MS; this.sinceBlockMs -= BLOCK_MS) this.mine();
    await settled();
  }

  /** The auditor: what the chain shows in the end, against the payments, against the books. */
  audit(): PaymentTotals {
    const rows = this.db
      .query<
        {
          external: string;
          balance_id: BalanceId;
          state: Payment["state"];
          amount: number;
          credited: number;
          lost: number;
          reason: string | null;
          look_at: number | null;
        },
        []
      >("SELECT * FROM payments")
      .all();
    const moved = new Map<string, number>();
    for (const { mined } of this.blocks)
      for (const { external, value } of mined)
        moved.set(external, (moved.get(external) ?? 0) + Number(value) * 1_000);
    const owed = new Map<BalanceId, number>();
    let credited = 0;
    let takenBack = 0;
    for (const row of rows) {
      check(row.look_at === null, `${row.external} is ${row.state} and never became final`);
      const onChain = moved.get(row.external) ?? 0;
      check(onChain === 0 || onChain === row.amount, `${row.external} moved ${onChain}`);
      check(
        row.credited - row.lost === onChain,
        `${row.external} is ${row.state}: credited ${row.credited}, lost ${row.lost}, on the chain ${onChain}`,
      );
      owed.set(row.balance_id, (owed.get(row.balance_id) ?? 0) + row.credited);
      if (row.state === "credited") credited += 1;
      if (row.reason === GONE) takenBack += 1;
    }
    for (let index = 0; index < BALANCES; index++) {
      const id: BalanceId = `bal_${index}`;
      const books = this.ledger.credited(id);
      check(books === (owed.get(id) ?? 0), `${id} has ${books}, and its payments say ${owed.get(id) ?? 0}`);
    }
    const { drifts } = this.ledger.audit();
    check(drifts.length === 0, "the books drift");
    this.db.close();
    return { payments: rows.length, credited, takenBack, crashes: this.crashes, reorgs: this.reorgs };
  }
}

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
