import type { Budget, Key } from "../../src/keys/key.ts";
import { MemoryAuthority, type Statement } from "../../src/ledger/authority.ts";
import { budgetCounter, type CounterId } from "../../src/ledger/counter.ts";
import { Grants } from "../../src/ledger/grants.ts";
import { type Ending, Ledger, Reservation, type Want } from "../../src/ledger/ledger.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { Replay } from "../../src/ledger/recovery.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId, BudgetId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";
import { check } from "./auditor.ts";
import { VirtualClock } from "./clock.ts";
import { Random } from "./random.ts";

/**
 * Three to five ledgers share one Authority over a network that loses, delays, doubles and reorders, with partitions, pauses and
 * crashes. The auditor adds up what every life of every ledger has really spent and holds, and after every step none of the
 * limits may be crossed. Clocks differ between ledgers by up to a minute; nothing depends on them. When the network has
 * healed, what is left of the credit can be spent from anywhere, down to less than one request's worst case.
 */
export async function simulateNodes(seed: number, steps: number): Promise<NodesSummary> {
  const fleet = new Fleet(seed);
  for (let step = 0; step < steps; step++) await fleet.step();
  await fleet.drain();
  return fleet.summary();
}

export interface NodesSummary {
  readonly admitted: number;
  readonly refused: number;
  readonly crashes: number;
  /** Spent, as a share of the credit. */
  readonly drained: number;
}

const START = epochMs(Date.UTC(2026, 10, 21, 12));
const CREDIT = 1_000_000 as NanoUsd;
const BALANCE = "bal_shared" as BalanceId;
const BUDGET: Budget = {
  id: "bud_shared" as BudgetId,
  balanceId: BALANCE,
  name: "team",
  cap: 700_000 as NanoUsd,
  window: "day",
};
const FREE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } as Want["price"];

const RPM = 40;
const WORST_CASE = 8_000 as NanoUsd;

const KEYS: readonly Key[] = [0, 1, 2, 3].map((index) =>
  keyOf({
    id: `key_${index}` as KeyId,
    balanceId: BALANCE,
    dailyLimit: index === 0 ? (300_000 as NanoUsd) : null,
    monthlyLimit: index === 1 ? (400_000 as NanoUsd) : null,
    budgets: index === 2 ? ["team"] : [],
    rpmLimit: index === 2 ? RPM : null,
  }),
);

class Fleet {
  private readonly random: Random;
  private readonly time = new VirtualClock(START);
  private readonly authority = new MemoryAuthority((counter, asker) => this.recall(counter, asker));
  private readonly nodes: Node[];
  private readonly limits: Map<CounterId, NanoUsd>;
  /** What lives that are over have spent, by counter. */
  private readonly buried = new Map<CounterId, number>();
  private readonly network: (() => void)[] = [];
  /** When the key with a rate was admitted, since the last crash: a life's rates end with it. */
  private taken: number[] = [];
  private receipts = 0;
  private counts = { admitted: 0, refused: 0, crashes: 0 };

  constructor(seed: number) {
    this.random = new Random(seed);
    this.limits = new Map<CounterId, NanoUsd>([
      [`balance:${BALANCE}` as CounterId, CREDIT],
      [budgetCounter(BUDGET.id, BUDGET.window, START), BUDGET.cap],
    ]);
    for (const { lineage, dailyLimit, monthlyLimit } of KEYS) {
      const day = new Date(START).setUTCHours(0, 0, 0, 0);
      if (dailyLimit !== null) this.limits.set(`day:${lineage}:${day}` as CounterId, dailyLimit);
      if (monthlyLimit !== null)
        this.limits.set(`month:${lineage}:${Date.UTC(2026, 10, 1)}` as CounterId, monthlyLimit);
    }
    this.nodes = Array.from({ length: 3 + this.random.below(3) }, (_, index) => this.birth(`n${index}`, 1));
  }

  async step(): Promise<void> {
    const { random } = this;
    const node = random.pick(this.nodes);
    const dice = random.next();
    if (dice < 0.3) void this.request(node, random.pick(KEYS), (1 + random.below(WORST_CASE)) as NanoUsd);
    else if (dice < 0.6) this.settleOne(node);
    else if (dice < 0.63) node.cut = random.chance(0.3);
    else if (dice < 0.66) node.giveBack(this.limits);
    else if (dice < 0.665) this.crash(node);
    else if (dice < 0.8) node.grants.tend();
    else if (dice < 0.81) node.grants.returnIdle();
    for (let messages = random.below(8); messages > 0; messages--) this.deliver();
    const untilMs = this.time.elapsedMs() + random.below(100);
    while (this.time.step(untilMs));
    await new Promise((resolve) => setImmediate(resolve));
    this.audit();
  }

  summary(): NodesSummary {
    const balance = `balance:${BALANCE}` as CounterId;
    return { ...this.counts, drained: this.spent(balance).spent / CREDIT };
  }

  /** The network heals, everybody is there again, and one key without caps spends what is left. */
  async drain(): Promise<void> {
    for (const node of this.nodes) node.cut = false;
    for (let refusedInARow = 0; refusedInARow < 2 * this.nodes.length; ) {
      const node = this.random.pick(this.nodes);
      const admitted = await this.during(this.request(node, KEYS[3]!, WORST_CASE));
      refusedInARow = admitted ? 0 : refusedInARow + 1;
      for (const one of this.nodes) while (one.open.length > 0) this.settleOne(one);
    }
    const balance = `balance:${BALANCE}` as CounterId;
    const left = CREDIT - this.spent(balance).spent;
    check(left < WORST_CASE, `${left} of the credit are left, and every ledger refuses ${WORST_CASE}`);
  }

  /** Lets time pass and messages arrive until something has come about. */
  private async during<Result>(something: Promise<Result>): Promise<Result> {
    let done = false;
    void something.finally(() => {
      done = true;
    });
    while (!done) {
      for (const node of this.nodes) node.grants.tend();
      for (const message of this.network.splice(0)) message();
      const untilMs = this.time.elapsedMs() + 10;
      while (this.time.step(untilMs));
      await new Promise((resolve) => setImmediate(resolve));
      this.audit();
    }
    return something;
  }

  private async request(node: Node, key: Key, amount: NanoUsd): Promise<boolean> {
    const want: Want = {
      receipt: `rcpt_${this.receipts++}` as ReceiptId,
      at: epochMs(START + node.skewMs),
      key,
      budgets: key.budgets.length > 0 ? [BUDGET] : [],
      allowances: [],
      rpmLimit: key.rpmLimit,
      freeRpmLimit: null,
      tpmLimit: null,
      amount,
      rateTokens: 0,
      promptTokens: 0,
      price: FREE,
      about: { surface: "messages", model: "a/b", stream: false },
    };
    for (let round = 0; round < 4; round++) {
      const lane = await node.ledger.lane(key, want.budgets, [], want.at);
      if (node.dead) return false;
      const outcome = node.ledger.admit(lane, want);
      if (outcome instanceof Reservation) {
        this.counts.admitted += 1;
        node.open.push(outcome);
        if (key.rpmLimit !== null) this.taken.push(this.time.elapsedMs());
        return true;
      }
      if ((await node.ledger.replenish(lane, want)) !== "room" || node.dead) break;
    }
    this.counts.refused += 1;
    return false;
  }

  private settleOne(node: Node): void {
    const reservation = node.open.splice(this.random.below(node.open.length), 1)[0];
    if (reservation === undefined) return;
    const cost = this.random.below(reservation.held + 1) as NanoUsd;
    const end: Ending = { state: "settled", cost, writeOff: false, rateTokens: 0, allowanceUsed: false };
    node.ledger.settle(reservation, end, () => "{}");
  }

  private deliver(): void {
    if (this.network.length === 0) return;
    const at = this.random.below(this.network.length);
    const message = this.network[at]!;
    // Lost, doubled or delivered.
    if (this.random.chance(0.9)) this.network.splice(at, 1);
    if (this.random.chance(0.85)) message();
  }

  /** A ledger's process ends; its next life reads the journal, and only then closes the epoch. */
  private crash(node: Node): void {
    this.counts.crashes += 1;
    this.taken = [];
    node.dead = true;
    const spent = node.recover();
    for (const [counter, amount] of spent) this.buried.set(counter, (this.buried.get(counter) ?? 0) + amount);
    this.authority.close(node.name, node.epoch, spent);
    this.nodes[this.nodes.indexOf(node)] = this.birth(node.name, node.epoch + 1);
  }

  private birth(name: string, epoch: number): Node {
    const node: Node = new Node(name, epoch, this.random.below(120_000) - 60_000, this.time, (statement) =>
      this.network.push(() => {
        if (node.cut || node.dead) return;
        const grant = this.authority.settle(statement);
        this.network.push(() => {
          if (!node.cut && !node.dead) node.grants.receive(grant);
        });
      }),
    );
    return node;
  }

  /** Lost, doubled and late like every other message. */
  private recall(counter: CounterId, asker: string): void {
    for (const node of this.nodes) {
      if (node.name === asker) continue;
      this.network.push(() => {
        if (!node.cut && !node.dead) node.grants.recall(counter);
      });
    }
  }

  private audit(): void {
    const sinceMs = this.time.elapsedMs() - 60_000;
    this.taken = this.taken.filter((atMs) => atMs > sinceMs);
    check(this.taken.length <= RPM, `${this.taken.length} requests within a minute, of ${RPM}`);
    for (const [counter, limit] of this.limits) {
      const { spent, held } = this.spent(counter);
      check(
        spent + held <= limit,
        `${counter}: ${spent} spent and ${held} held, above its limit of ${limit}`,
      );
      check(
        this.authority.granted(counter) <= limit,
        `${counter}: more is granted than its limit of ${limit}`,
      );
    }
  }

  /** By every life of every ledger, from their own counters. */
  private spent(id: CounterId): { spent: number; held: number } {
    let [spent, held] = [this.buried.get(id) ?? 0, 0];
    for (const { ledger } of this.nodes) {
      for (const counter of ledger.booked()) {
        if (counter.id !== id) continue;
        spent += counter.spent;
        held += counter.held;
      }
    }
    return { spent, held };
  }
}

/** One life of one ledger. */
class Node {
  readonly ledger: Ledger;
  readonly grants: Grants;
  readonly open: Reservation[] = [];
  private readonly records: LedgerRecord[] = [];
  /** On the wrong side of a partition, or paused: neither says nor hears anything. */
  cut = false;
  dead = false;

  constructor(
    readonly name: string,
    readonly epoch: number,
    readonly skewMs: number,
    time: VirtualClock,
    send: (statement: Statement) => void,
  ) {
    const { clock } = time.life();
    this.grants = new Grants(name, epoch, clock, send);
    const journal = {
      append: (_: string, record: LedgerRecord) => this.records.push(record),
      withdraw: () => false,
    };
    this.ledger = new Ledger(clock, journal, { spent: () => ZERO_USD, credited: () => CREDIT }, this.grants);
  }

  giveBack(limits: ReadonlyMap<CounterId, NanoUsd>): void {
    for (const counter of this.ledger.booked()) {
      const limit = limits.get(counter.id);
      if (limit !== undefined) this.grants.giveBack(counter, limit);
    }
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
      if (record.kind === "terminal") add(record.counters, record.charged);
    }
    for (const { hold, held } of replay.orphans.values()) add(hold.counters, held);
    return spent;
  }
}
