import type { Budget, Key } from "../../src/customers/keys/key.ts";
import { NO_OTHERS, type RunLimits, runSubject, stricter } from "../../src/customers/keys/run.ts";
import { type AgentRun, Runs } from "../../src/customers/keys/runs.ts";
import type { Statement } from "../../src/ledger/authority.ts";
import {
  balanceCounter,
  budgetCounter,
  type CounterId,
  keyCounter,
  runCounters,
} from "../../src/ledger/counter.ts";
import { GrantClaim, Grants } from "../../src/ledger/grants.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { Replay, recoveredEnd } from "../../src/ledger/recovery.ts";
import { Reservation } from "../../src/ledger/reservation.ts";
import { addSpending } from "../../src/store/ledger/ends.ts";
import { type Clock, DAY_MS, type EpochMs, epochMs } from "../../src/units/clock.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import type { BalanceId, BudgetId, KeyId } from "../../src/units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { WINDOW_KINDS } from "../../src/units/window.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";
import { FleetAuthority } from "./fleet-authority.ts";
import { TAKING_MUTANTS } from "./mutants/taking.ts";
import type { Random } from "./random.ts";
import { scenario } from "./scenario.ts";
import { type Auditor, check, type Player, settled, type World } from "./world.ts";

const COUNTS = ["admitted", "grown", "refused", "shrunk", "settled", "changes"] as const;

/**
 * Holds grow, shrink and end at one ledger, or at several that share the Authority of a keeper, which dies now and then, while owners lower and raise
 * limits, move keys to other budgets, change their windows, revoke keys, keys tighten runs, owners set theirs again, and the operator
 * suspends. A change is
 * answered once every node has noticed it, but for those whose lease has run out, which notice it before they go
 * on. The auditor keeps a book of its own of what each budget was taken for, piece by piece, and after every step
 * nothing has grown beyond a limit of that moment.
 */
export const TAKING = scenario({
  options: { nodes: 1, steps: 1_000 },
  seeds: 100,
  mutants: { rules: TAKING_MUTANTS, options: ["--steps", "400"] },
  counts: COUNTS,
  steps: ({ steps }) => steps,
  fill: (world, of) => void world.judgedBy(world.joins(new Fleet(world, of))),
  kept: "No limit crossed.",
});

const NOON = epochMs(Date.UTC(2026, 10, 18, 12));
const BALANCE = "bal_shared" as BalanceId;
const CREDIT = 5_000_000 as NanoUsd;
const usd = (nano: number) => nano as NanoUsd;

/** They are only ever tightened. */
const RUNS = 4;

/** A hold and, piece by piece in the order in which it grew, the budgets that each piece counts on. */
interface Open {
  readonly node: Node;
  readonly reservation: Reservation;
  pieces: { amount: number; readonly budgets: readonly BudgetId[] }[];
}

interface Node {
  readonly ledger: Ledger;
  readonly grants: Grants | null;
  readonly holders: KnownHolders;
  readonly runs: Runs;
  readonly records: LedgerRecord[];
  usable: boolean;
  /** How the counters begin whose limits changed while it had no lease. */
  readonly missed: Set<string>;
}

class Fleet implements Player, Auditor {
  private readonly counts: Record<(typeof COUNTS)[number], number>;
  private readonly random: Random;
  private readonly clock: Clock;
  private readonly messages: (() => void)[] = [];
  private readonly authority: FleetAuthority;
  private readonly nodes: Node[];
  private keys: Key[];
  private budgets: Budget[];
  private runs: (RunLimits & { readonly revision: number })[];
  private readonly ofRuns = new Map<string, number>();
  private suspended = false;
  private open: Open[] = [];
  private readonly spent = new Map<CounterId, number>();
  private used = new Map<CounterId, number>();
  private receipts = 0;
  /** By budget and day, its counters in the windows that the day lies in. */
  private readonly windows = new Map<BudgetId, Map<number, readonly CounterId[]>>();

  constructor(
    private readonly world: World<(typeof COUNTS)[number]>,
    { nodes }: { readonly nodes: number },
  ) {
    this.random = world.random;
    this.counts = world.counts;
    // In the middle of a week.
    world.time.begin(NOON);
    this.clock = world.time.life().clock;
    this.authority = new FleetAuthority((counter, asker, inquiry) => {
      for (const [n, { grants }] of this.nodes.entries())
        if (`n${n}` !== asker) this.messages.push(() => grants?.recall(counter, inquiry));
    }, world.apart(0));
    const cap = () => usd(20_000 + this.random.below(200_000));
    this.budgets = ["a", "b", "c"].map((name) => ({
      id: `bud_${name}` as BudgetId,
      balanceId: BALANCE,
      name,
      cap: cap(),
      window: this.random.pick(WINDOW_KINDS),
    }));
    this.keys = [0, 1, 2].map((n) =>
      keyOf({
        id: `key_${n}` as KeyId,
        balanceId: BALANCE,
        dailyLimit: cap(),
        monthlyLimit: cap(),
        budgets: n === 2 ? [] : [this.random.pick(this.budgets).name],
      }),
    );
    this.authority.credit(balanceCounter(BALANCE), CREDIT);
    this.runs = Array.from({ length: RUNS }, () => ({
      cap: cap(),
      calls: 5 + this.random.below(60),
      revision: 0,
    }));
    this.nodes = Array.from({ length: nodes }, (_, n) => this.birth(`n${n}`, nodes > 1));
    for (const node of this.nodes) this.notify(node);
  }

  close(): void {
    this.authority.stop();
  }

  async act(): Promise<void> {
    const { random } = this;
    const dice = random.next();
    const one = random.pick(this.open);
    if (dice < 0.2) await this.admit(random.pick(this.nodes), random.pick(this.keys));
    else if (dice < 0.6) one !== undefined && (await this.grow(one));
    else if (dice < 0.68) one !== undefined && this.shrink(one);
    else if (dice < 0.8) one !== undefined && this.settle(one);
    else if (dice < 0.92) await this.change();
    else if (dice < 0.94 && this.nodes.length > 1) random.pick(this.nodes).usable = false;
    else if (dice < 0.97) for (const node of this.nodes) if (!node.usable) await this.comeBack(node);
    if (random.chance(0.8)) await this.deliver(random.below(12));
    this.world.skip(random.chance(0.004) ? DAY_MS : random.below(40));
    for (const { grants } of this.nodes) if (random.chance(0.2)) grants?.tick();
  }

  /** What each journal says of the holds that are open comes to the auditor's pieces. */
  judge(): void {
    for (const node of this.nodes) {
      const replay = new Replay();
      for (const record of node.records) replay.add(record);
      for (const { node: owner, reservation, pieces } of this.open) {
        if (owner !== node) continue;
        const orphan = replay.orphans.get(reservation.request.receipt)!;
        check(orphan.held === reservation.held, "the journal says another hold");
        orphan.delivered = this.random.below(reservation.held + 1);
        const end = recoveredEnd(orphan, 0, () => "{}");
        this.judgeEnd(end.charged, end.at, pieces, (spent) => addSpending(spent, end));
      }
    }
  }

  private birth(name: string, isShared: boolean): Node {
    const holders = new KnownHolders();
    const records: LedgerRecord[] = [];
    const node = { usable: true, missed: new Set<string>() };
    const send = (statement: Statement) =>
      void this.messages.push(() => {
        const answer = this.authority.settle(statement);
        if (answer !== null) this.messages.push(() => grants?.receive(answer));
      });
    const grants: Grants | null = isShared ? new Grants(name, 1, this.clock, send, () => node.usable) : null;
    const journal = { append: (record: LedgerRecord) => records.push(record), withdraw: () => false };
    const sums = { spent: () => ZERO_USD, credited: () => (isShared ? MAX_NANO_USD : CREDIT) };
    const ledger = new Ledger(this.clock, journal, sums, holders, grants);
    const stored = (name: string) => this.runOf(Number(name.slice(1)));
    const runs = new Runs({
      run: async (_, name) => stored(name),
      changeRun: async (_, name, _most, decide) => decide(stored(name), NO_OTHERS),
      reviseRun: () => Promise.reject(new Error("no owner changes a run here")),
    });
    return Object.assign(node, { ledger, grants, holders, runs, records });
  }

  /** It has read all keys again. */
  private notify({ holders }: Node): void {
    for (const key of this.keys)
      holders.put(key, this.budgetsOf(key), this.suspended ? "acceptable_use" : null);
  }

  /** Its lease is renewed once it has noticed what changed meanwhile, and what it was granted is bound by that. */
  private async comeBack(node: Node): Promise<void> {
    this.notify(node);
    node.runs.forgetAll();
    const noticed = node.grants?.release([...node.missed]);
    if (noticed !== undefined) await this.until(noticed);
    if ((await noticed) === false) return;
    node.missed.clear();
    node.usable = true;
  }

  private runOf = (n: number) => ({
    name: `r${n}`,
    ...this.runs[n]!,
    startedBy: null,
    // None ends by itself.
    startedAt: (NOON + 1_000 * DAY_MS) as EpochMs,
    usedAt: this.clock.now(),
  });

  private async join({ runs }: Node, at: EpochMs): Promise<AgentRun> {
    const name = `r${this.random.below(RUNS)}`;
    const run = await runs.join(
      BALANCE,
      { spec: { name, cap: null, calls: null }, by: "key_0", at },
      async () => RUNS,
    );
    if (refused(run)) throw new Error(run.message);
    return run;
  }

  private budgetsOf = (key: Key): Budget[] => this.budgets.filter(({ name }) => key.budgets.includes(name));

  private async admit(node: Node, { id }: Key): Promise<void> {
    const at = this.clock.now();
    const holder = node.usable ? node.holders.current({ id }, at) : null;
    if (!holder) return;
    const { key, budgets } = holder;
    const amount = usd(1 + this.random.below(6_000));
    const receipt = `rcpt_${this.receipts++}` as const;
    const most = { amount: usd(amount * 4), tokens: 0 };
    const run = this.random.chance(0.5) ? await this.join(node, at) : null;
    const request = reservationRequest({ receipt, at, key, budgets, run, amount, most });
    const keyCounters = await node.ledger.counters.of(key, budgets, [], at, run);
    // While it waits.
    if (this.random.chance(0.1)) await this.change();
    let outcome = node.ledger.admit(keyCounters, request);
    if (!(outcome instanceof Reservation) && outcome.what !== "key" && node.grants !== null) {
      const claim = new GrantClaim();
      await this.until(node.ledger.replenish(keyCounters, request, claim)!);
      outcome = node.ledger.admit(keyCounters, request);
      claim.release();
    }
    if (!(outcome instanceof Reservation)) return;
    this.counts.admitted += 1;
    this.open.push({
      node,
      reservation: outcome,
      pieces: [{ amount, budgets: budgets.map(({ id }) => id) }],
    });
  }

  private async grow(one: Open): Promise<void> {
    const { node, reservation, pieces } = one;
    const key = this.keys.find(({ id }) => id === reservation.request.key.id)!;
    const amount = usd(1 + this.random.below(4_000));
    let has = node.ledger.extend(reservation, amount);
    if (!has && this.hasRoom(one, key, amount)) {
      // Its new budget had to be read.
      await settled();
      has = node.ledger.extend(reservation, amount);
      check(has, `${reservation.request.receipt} cannot grow by ${amount}, although there is room`);
    }
    this.counts[has ? "grown" : "refused"] += 1;
    if (!has) return;
    check(node.usable, "a node without a lease has taken something");
    check(key.state !== "revoked" && !this.suspended, `${key.id} may not spend, and has taken ${amount}`);
    pieces.push({ amount, budgets: this.budgetsOf(key).map(({ id }) => id) });
  }

  /** Only judged where nobody else has anything. */
  private hasRoom({ node, reservation }: Open, key: Key, amount: number): boolean {
    if (this.nodes.length > 1 || key.state === "revoked" || this.suspended) return false;
    const { at, run } = reservation.request;
    const ids = [keyCounter("day", key.id, at), keyCounter("month", key.id, at)];
    if (run) ids.push(runCounters(run).money);
    for (const { id, window } of this.budgetsOf(key)) ids.push(budgetCounter(id, window, at));
    const used = this.usedOf([node]);
    const left = CREDIT - (used.get(balanceCounter(BALANCE)) ?? 0);
    return left >= amount && ids.every((id) => (used.get(id) ?? 0) + amount <= this.limitOn(id));
  }

  private shrink({ node, reservation, pieces }: Open): void {
    const held = usd(this.random.below(reservation.held + 1));
    let back = reservation.held - held;
    node.ledger.shrink(reservation, held);
    // What came last goes first.
    for (const piece of pieces.toReversed()) {
      const less = Math.min(piece.amount, back);
      piece.amount -= less;
      back -= less;
    }
    this.counts.shrunk += 1;
  }

  private settle(one: Open): void {
    const { node, reservation, pieces } = one;
    this.open = this.open.filter((other) => other !== one);
    const cost = this.random.below(reservation.held * 2 + 1);
    const before = reservation.held;
    const allowanceUsed = this.random.chance(0.5);
    const ending = reservationEnd(cost, { allowanceUsed });
    const { charged, held } = node.ledger.settle(reservation, ending, () => "{}");
    const key = this.keys.find(({ id }) => id === reservation.request.key.id)!;
    if (held > before) {
      check(node.usable && key.state !== "revoked" && !this.suspended, `${key.id} has grown at its end`);
      pieces.push({ amount: held - before, budgets: this.budgetsOf(key).map(({ id }) => id) });
    }
    check(charged <= held, "more was charged than was held");
    const end = node.records.at(-1)!;
    const { at, run } = reservation.request;
    const expected = this.judgeEnd(charged, at, pieces, (spent) => {
      if (end.kind === "terminal") addSpending(spent, end);
    });
    for (const [id, amount] of expected) this.count(this.spent, id, at, amount);
    if (run) {
      const { money, calls } = runCounters(run);
      for (const [id, amount] of [
        [money, charged],
        [calls, Number(allowanceUsed)],
      ] as const)
        this.ofRuns.set(id, (this.ofRuns.get(id) ?? 0) + amount);
    }
    this.counts.settled += 1;
  }

  /** A charge is of the first pieces first. */
  private judgeEnd(
    charged: number,
    at: EpochMs,
    pieces: Open["pieces"],
    book: (spent: Map<CounterId, number>) => void,
  ): Map<BudgetId, number> {
    const expected = new Map<BudgetId, number>();
    let left = charged;
    for (const { amount, budgets } of pieces) {
      const part = Math.min(amount, left);
      left -= part;
      for (const id of budgets) expected.set(id, (expected.get(id) ?? 0) + part);
    }
    const booked = new Map<CounterId, number>();
    book(booked);
    for (const { id } of this.budgets) {
      for (const kind of WINDOW_KINDS) {
        const counted = booked.get(budgetCounter(id, kind, at)) ?? 0;
        const due = expected.get(id) ?? 0;
        check(
          counted === due,
          `${id} is booked ${counted} in the ${kind}, of a charge of which it owes ${due}`,
        );
      }
    }
    return expected;
  }

  private async change(): Promise<void> {
    const { random } = this;
    const n = random.below(this.keys.length);
    const key = this.keys[n]!;
    const put = (changed: Partial<Key>) => {
      this.keys = this.keys.map((one) => (one === key ? { ...key, ...changed } : one));
    };
    const cap = () => (random.chance(0.1) ? null : usd(random.below(220_000)));
    const prefixes = ["day", "month"].map((kind) => `${kind}:${key.id}`);
    const notified: string[] = [];
    const dice = random.next();
    if (dice < 0.2) put({ dailyLimit: cap() });
    else if (dice < 0.35) put({ monthlyLimit: cap() });
    else if (dice < 0.55) put({ budgets: random.chance(0.15) ? [] : [random.pick(this.budgets).name] });
    else if (dice < 0.85) {
      const old = random.pick(this.budgets);
      const changed = random.chance(0.5)
        ? { ...old, cap: usd(random.below(220_000)) }
        : { ...old, window: random.pick(WINDOW_KINDS) };
      this.budgets = this.budgets.map((one) => (one === old ? changed : one));
      prefixes.push(`budget:${old.id}:`);
    } else if (dice < 0.9) {
      const changed = random.below(RUNS);
      const limits = { cap: cap(), calls: random.chance(0.5) ? null : random.below(60) };
      const isByOwner = random.chance(0.5);
      this.runs = this.runs.map((one, n) => {
        if (n !== changed) return one;
        return isByOwner ? { ...limits, revision: one.revision + 1 } : { ...one, ...stricter(one, limits) };
      });
      notified.push(this.runOf(changed).name);
      prefixes.push(...Object.values(runCounters({ balanceId: BALANCE, ...this.runOf(changed) })));
    } else if (dice < 0.95)
      put({ state: key.state === "active" && random.chance(0.4) ? "revoked" : "active" });
    else this.suspended = !this.suspended && random.chance(0.4);
    this.counts.changes += 1;
    const there = this.nodes.filter(({ usable }) => usable);
    for (const { usable, missed } of this.nodes)
      if (!usable) for (const prefix of prefixes) missed.add(prefix);
    for (const node of there) {
      this.notify(node);
      for (const name of notified) node.runs.changed(runSubject(BALANCE, name));
      // A caller that asks now learns that it is being read.
      if (random.chance(0.3))
        for (const { id } of this.keys) if (random.chance(0.5)) node.holders.forget({ id });
    }
    this.answering(there, prefixes);
    await this.until(Promise.all(there.map(({ grants }) => grants?.release(prefixes))));
    for (const node of there) this.notify(node);
    // What was pushed out of memory is read once it is needed.
    if (random.chance(0.3)) random.pick(this.nodes).runs.forgetAll();
    // What one node took while others did not know it yet, it took before the change was answered.
    if (this.nodes.length > 1) this.used = this.usedOf(this.nodes);
  }

  /** Nothing is judged by a limit before its change is answered; here, nothing happens until then either. */
  private answering(_nodes: readonly Node[], _prefixes: readonly string[]): void {
    for (const one of this.open) {
      const { node, reservation } = one;
      // A stream that tries while it is being read gets nothing that the auditor would not know of.
      if (!this.random.chance(0.2)) continue;
      const before = reservation.held;
      const key = this.keys.find(({ id }) => id === reservation.request.key.id)!;
      if (!node.ledger.extend(reservation, usd(10))) continue;
      check(
        node.usable && key.state !== "revoked" && !this.suspended,
        `${key.id} may not spend, and has taken 10`,
      );
      one.pieces.push({
        amount: reservation.held - before,
        budgets: this.budgetsOf(key).map(({ id }) => id),
      });
    }
  }

  private limitOn(id: CounterId): number {
    const [kind, subject, window] = id.split(":") as [string, string, string];
    if (kind === "run" || kind === "calls") {
      const { cap, calls } = this.runs[Number(subject.at(-1))]!;
      return (kind === "run" ? cap : calls) ?? Infinity;
    }
    const key = this.keys.find((one) => one.id === subject);
    if (kind === "day") return key!.dailyLimit ?? Infinity;
    if (kind === "month") return key!.monthlyLimit ?? Infinity;
    if (kind === "balance") return CREDIT;
    const budget = this.budgets.find((one) => one.id === subject)!;
    return budget.window === window ? budget.cap : Infinity;
  }

  private usedOf(nodes: readonly Node[]): Map<CounterId, number> {
    const used = new Map<CounterId, number>();
    for (const { ledger } of nodes)
      for (const { id, spent, held } of ledger.counters.booked())
        used.set(id, (used.get(id) ?? 0) + spent + held);
    return used;
  }

  watch(): void {
    const used = this.usedOf(this.nodes);
    for (const [id, now] of used) {
      const before = this.used.get(id) ?? 0;
      if (now <= before) continue;
      const limit = this.limitOn(id);
      check(now <= limit, `${id} has grown from ${before} to ${now}, above ${limit}`);
    }
    this.used = used;
    const due = new Map(this.spent);
    for (const { pieces, reservation } of this.open) {
      for (const { amount, budgets } of pieces)
        for (const id of budgets) this.count(due, id, reservation.request.at, amount);
    }
    const ofRuns = new Map(this.ofRuns);
    for (const { reservation } of this.open) {
      const { run } = reservation.request;
      if (!run) continue;
      const { money, calls } = runCounters(run);
      ofRuns.set(money, (ofRuns.get(money) ?? 0) + reservation.held);
      ofRuns.set(calls, (ofRuns.get(calls) ?? 0) + 1);
    }
    for (const sums of [due, ofRuns])
      for (const [id, amount] of sums) {
        const counted = used.get(id as CounterId) ?? 0;
        check(counted === amount, `${id} counts ${counted}, of ${amount}`);
      }
  }

  /** In every window that a moment lies in. */
  private count(sums: Map<CounterId, number>, budget: BudgetId, at: EpochMs, amount: number): void {
    for (const id of this.windowsOf(budget, at)) sums.set(id, (sums.get(id) ?? 0) + amount);
  }

  private windowsOf(budget: BudgetId, at: EpochMs): readonly CounterId[] {
    let days = this.windows.get(budget);
    if (days === undefined) this.windows.set(budget, (days = new Map()));
    const day = Math.floor(at / DAY_MS);
    let ids = days.get(day);
    if (ids === undefined) days.set(day, (ids = WINDOW_KINDS.map((kind) => budgetCounter(budget, kind, at))));
    return ids;
  }

  private async deliver(most: number): Promise<void> {
    for (const message of this.messages.splice(0, most)) message();
    if (this.nodes.length > 1) await Promise.resolve();
  }

  /** Lets messages arrive and time pass until something has come about. */
  private async until(something: Promise<unknown>): Promise<void> {
    let done = false;
    void something.finally(() => {
      done = true;
    });
    for (let rounds = 0; !done && rounds < 5_000; rounds++) {
      for (const message of this.messages.splice(0)) message();
      await settled();
      if (!done) this.world.skip(10);
      for (const { grants } of this.nodes) grants?.tick();
    }
    check(done, "nothing came of it");
  }
}
