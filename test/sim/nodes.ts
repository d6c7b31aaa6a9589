import type { Budget, Key } from "../../src/customers/keys/key.ts";
import type { Tags } from "../../src/customers/keys/tags.ts";
import {
  allowanceCounter,
  balanceCounter,
  budgetCounter,
  type CounterId,
  keyCounter,
  tagValueOf,
  valueCounter,
} from "../../src/ledger/counter.ts";
import { GrantClaim } from "../../src/ledger/grants.ts";
import { Reservation, type ReservationRequest } from "../../src/ledger/reservation.ts";
import { type Clock, type EpochMs, epochMs } from "../../src/units/clock.ts";
import type { BalanceId, BudgetId, KeyId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";
import { Asking, type RequestedAmounts, type UseOf } from "./asking.ts";
import type { VirtualClock } from "./clock.ts";
import { commitsOver, Promises, SimulatedPostgres } from "./diskless.ts";
import { FleetAuthority } from "./fleet-authority.ts";
import { DisklessNode, type FleetNode, JournalNode, type NodeParts } from "./fleet-node.ts";
import { FreeRequests } from "./free-requests.ts";
import { NODE_MUTANTS } from "./mutants/nodes.ts";
import type { Random } from "./random.ts";
import { scenario } from "./scenario.ts";
import { type Auditor, check, type Player, settled, type World } from "./world.ts";

const COUNTS = [
  "admitted",
  "refused",
  // Nobody knew whether there was room.
  "unanswered",
  "crashes",
  // Nodes without a journal that were not dead.
  "closed",
  // Answers that such nodes gave to their end.
  "committed",
  // Times that credit was taken back.
  "debited",
  // Spent, as a share of the credit that was left to it.
  "drained",
  // Free requests that were admitted, and found the day's allowance spent.
  "free",
  "freeRefused",
  // Times that a hold grew; at once by as much as a host sent in one packet, or could not.
  "grown",
  "burst",
  "burstRefused",
  // Times that a region was cut off.
  "regionCuts",
  // Requests with a tag that were admitted, and values that nodes forgot.
  "tagged",
  "forgotten",
] as const;

/**
 * Three to five ledgers share the Authority of a keeper, which dies now and then, over a network that loses, delays, doubles and reorders, with
 * partitions, pauses and crashes. Some keep a journal that outlives them, and come back; others keep nothing,
 * commit to a PostgreSQL beyond that network, and are closed by somebody else, sooner or later, dead or not.
 * The auditor adds up what every life of every ledger has really spent and holds, and after every step none
 * of the limits may be crossed. Clocks differ between ledgers by up to a minute; nothing depends on them, even
 * where it is midnight, and not yet the next day for everybody. Nobody is refused for whom there was room all
 * the while he waited, wherever it was, and no stream stops for which there was, also of a host that sends several times
 * what is held in one packet.
 * One key draws from a budget that caps each value of a tag. Nodes forget values that are quiet and give them back, while
 * their statements are lost, doubled and late like all others; no value's cap may be crossed, whichever node forgot it.
 * With two regions, every other ledger is far from the Authority: each message takes 40 ms, and all of the region may be
 * cut off at once, for up to half a minute.
 * When the network has healed, what is left of the credit can be spent from anywhere, down to less than one
 * request's worst case, all free requests of the day can be made, and what ledgers answered clients
 * without a journal is in the books.
 */
export const NODES = scenario({
  // With `--regions`, half of the ledgers are in another region.
  options: { steps: 400, regions: false },
  seeds: 1_000,
  mutants: { rules: NODE_MUTANTS },
  counts: COUNTS,
  steps: ({ steps }) => steps,
  fill: (world, of) => void world.judgedBy(world.joins(new Fleet(world, of))),
  kept: "No limit crossed, nothing lost that was answered, nobody refused who had room, credit spent to the last worst case.",
});

const MIDNIGHT = epochMs(Date.UTC(2026, 10, 22));
const MAX_SKEW_MS = 60_000;
const CREDIT = 1_000_000 as NanoUsd;
const BALANCE = "bal_shared" as BalanceId;
const CREDITED = balanceCounter(BALANCE);
const BUDGET: Budget = {
  id: "bud_shared" as BudgetId,
  balanceId: BALANCE,
  name: "team",
  cap: 700_000 as NanoUsd,
  window: "day",
};

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

/** Each user has the cap for itself, and the smallest part of the credit by far. */
const EACH_USER: Budget = {
  id: "bud_each" as BudgetId,
  balanceId: BALANCE,
  name: "each",
  cap: 12_000 as NanoUsd,
  window: "day",
  perTag: "user",
};
const USERS = [0, 1, 2, 3].map((user) => ({ user: `u${user}` }));
const TAG_KEY = keyOf({ id: "key_tagged" as KeyId, balanceId: BALANCE, budgets: ["each"] });

const HOLDERS = new KnownHolders();
/** A request is of the budgets that were read with its key: another list is a change of them. */
const TEAM = [BUDGET];
for (const key of KEYS) HOLDERS.put(key, key.budgets.length > 0 ? TEAM : []);

const EACH = [EACH_USER];
HOLDERS.put(TAG_KEY, EACH);

/** Its requests cost nothing, and draw on an allowance. */
const FREE_KEY = keyOf({ id: "key_free" as KeyId, balanceId: BALANCE });
HOLDERS.put(FREE_KEY, []);
const ALLOWANCE = { owner: "acct_shared", limit: 12 };
const MAX_WORDS = 50;
const ONE_WAY_MS = 40;
const MAX_CUT_MS = 30_000;

class Fleet implements Player, Auditor {
  private readonly random: Random;
  /** What is taken back, and when, is decided apart, so that nothing else happens differently for it. */
  private readonly taking: Random;
  /** The same of free requests. */
  private readonly giving: Random;
  /** The same of what is held more or less of a request while it is open. */
  private readonly following: Random;
  private readonly bursting: Random;
  private readonly parting: Random;
  private readonly tagging: Random;
  private readonly free = new FreeRequests(ALLOWANCE.limit);
  private readonly start: EpochMs;
  private readonly time: VirtualClock;
  private readonly counts: Record<(typeof COUNTS)[number], number>;
  private readonly regions: 1 | 2;
  /** It goes on whichever node dies. */
  private readonly farLine: Clock;
  private regionIsCut = false;
  private readonly authority: FleetAuthority;
  private readonly postgres: SimulatedPostgres;
  private readonly promises = new Promises();
  private readonly nodes: FleetNode[];
  /** Lives without a journal that are over, and that nobody has closed yet. */
  private readonly gone: DisklessNode[] = [];
  private readonly limits: Map<CounterId, NanoUsd>;
  /** What lives that are over have spent, by counter. */
  private readonly spentByEnded = new Map<CounterId, number>();
  private readonly network: (() => void)[] = [];
  /** When the key with a rate was admitted, since the last crash: a life's rates end with it. */
  private taken: number[] = [];
  /** The same by lives that are not over, for as long as they count it. */
  private counted: { readonly atMs: number; readonly node: FleetNode }[] = [];
  private readonly asking = new Asking();
  private receipts = 0;
  private lives = 0;
  /** By the name of the node. */
  private readonly numbers = new Map<string, number>();
  private debits = 0;
  /** Debits that were answered, and with what. */
  private readonly answered = new Map<string, NanoUsd>();

  constructor(
    private readonly world: World<(typeof COUNTS)[number]>,
    { regions }: { readonly regions: boolean },
  ) {
    this.authority = new FleetAuthority((...about) => this.recall(...about), world.apart(0));
    this.random = world.random;
    this.time = world.time;
    this.counts = world.counts;
    this.regions = regions ? 2 : 1;
    this.taking = world.apart(1);
    this.giving = world.apart(2);
    this.following = world.apart(9);
    this.bursting = world.apart(10);
    this.parting = world.apart(11);
    this.tagging = world.apart(12);
    if (this.giving.chance(0.5)) this.start = this.time.now();
    else this.time.begin((this.start = MIDNIGHT));
    this.farLine = this.time.life().clock;
    this.authority.credit(CREDITED, CREDIT);
    this.postgres = new SimulatedPostgres(this.random);
    this.limits = new Map<CounterId, NanoUsd>([[CREDITED, CREDIT]]);
    for (const at of [this.start - MAX_SKEW_MS, this.start + MAX_SKEW_MS]) this.limitDay(epochMs(at));
    this.nodes = Array.from({ length: 3 + this.random.below(3) }, (_, index) =>
      this.random.chance(0.5) ? this.diskless() : this.birth(`n${index}`, 1),
    );
  }

  private limitDay(at: EpochMs): void {
    this.limits.set(budgetCounter(BUDGET.id, BUDGET.window, at), BUDGET.cap);
    this.limits.set(allowanceCounter(ALLOWANCE.owner, at), ALLOWANCE.limit as NanoUsd);
    for (const { user } of USERS) this.limits.set(valueCounter(EACH_USER, user, at), EACH_USER.cap);
    const day = new Date(at).setUTCHours(0, 0, 0, 0);
    for (const { rotationId, dailyLimit, monthlyLimit } of KEYS) {
      if (dailyLimit !== null) this.limits.set(`day:${rotationId}:${day}` as CounterId, dailyLimit);
      if (monthlyLimit !== null)
        this.limits.set(`month:${rotationId}:${Date.UTC(2026, 10, 1)}` as CounterId, monthlyLimit);
    }
  }

  async act(): Promise<void> {
    const { random } = this;
    const node = random.pick(this.nodes);
    const dice = random.next();
    if (dice < 0.3) void this.request(node, random.pick(KEYS), (1 + random.below(WORST_CASE)) as NanoUsd);
    else if (dice < 0.5) void this.settleOne(node);
    else if (dice < 0.56) this.deliverSome(node);
    else if (dice < 0.59) node.checkpoint();
    else if (dice < 0.596) this.closeOne(random.chance(0.3) ? node : (random.pick(this.gone) ?? node));
    else if (dice < 0.63) node.cut = random.chance(0.3);
    else if (dice < 0.66) node.giveBack(this.limits);
    else if (dice < 0.667) this.crash(node);
    else if (dice < 0.8) node.grants.tick();
    else if (dice < 0.81) node.grants.returnIdle();
    else if (dice < 0.82) this.postgres.resolve();
    if (this.giving.chance(0.05)) void this.request(this.giving.pick(this.nodes), FREE_KEY, ZERO_USD);
    if (this.tagging.chance(0.15)) void this.requestTagged();
    if (this.tagging.chance(0.05)) this.counts.forgotten += this.tagging.pick(this.nodes).forgetQuiet();
    if (this.regions === 2 && this.parting.chance(0.003)) this.cutRegion();
    if (this.following.chance(0.15)) this.follow(node);
    if (this.bursting.chance(0.02)) void this.burst(node);
    if (this.taking.chance(0.005)) this.takeBack(this.taking.chance(0.02) ? "all" : this.someCredit());
    for (let messages = random.below(8); messages > 0; messages--) this.deliver();
    this.world.skip(random.below(100));
    await settled();
  }

  /** What the other region's ledgers send and are sent is lost, until it is joined again. */
  private cutRegion(): void {
    if (this.regionIsCut) return;
    this.regionIsCut = true;
    this.counts.regionCuts += 1;
    this.farLine.after(this.parting.below(MAX_CUT_MS), () => {
      this.regionIsCut = false;
    });
  }

  private isFar({ name }: Pick<FleetNode, "name">): boolean {
    return this.regions === 2 && this.numbers.get(name)! % 2 === 0;
  }

  private isCut(node: FleetNode): boolean {
    return node.cut || node.dead || (this.regionIsCut && this.isFar(node));
  }

  /** Between the Authority and a node. */
  private carry(node: Pick<FleetNode, "name">, message: () => void): void {
    if (this.isFar(node)) void this.farLine.after(ONE_WAY_MS, () => void this.network.push(message));
    else this.network.push(message);
  }

  close(): void {
    this.authority.stop();
  }

  /** The network heals, everybody is there again, and one key without caps spends what is left. */
  async end(): Promise<void> {
    for (const node of this.nodes) node.cut = false;
    this.regionIsCut = false;
    this.postgres.slowMs = 0;
    for (const node of [...this.gone]) this.closeOne(node);
    for (const node of [...this.nodes]) if (this.postgres.isClosed(node.name)) this.crash(node);
    await this.flushed();
    // What a request has been granted in part is given back when it gives up.
    for (const node of this.nodes) while (!node.dead && node.asking > 0) await this.during(Promise.resolve());
    for (let refusedInARow = 0; refusedInARow < 2 * this.nodes.length; ) {
      const node = this.random.pick(this.nodes);
      const admitted = await this.during(this.request(node, KEYS[3]!, WORST_CASE));
      refusedInARow = admitted ? 0 : refusedInARow + 1;
      for (const one of this.nodes) while (one.open.length > 0) void this.settleOne(one);
    }
    // Streams begin once their holds are committed.
    await this.flushed();
    for (const one of this.nodes) while (one.open.length > 0) void this.settleOne(one);
    await this.flushed();
    this.postgres.resolve();
    this.promises.judge(this.postgres);
    await this.drainAllowance();
    const { spent } = this.spent().get(CREDITED)!;
    const left = this.limits.get(CREDITED)! - spent;
    check(left < WORST_CASE, `${left} of the credit are left, and every ledger refuses ${WORST_CASE}`);
    await this.refund();
    const { counts } = this;
    counts.drained = spent / (spent + left || 1);
    counts.committed = this.promises.count;
    counts.debited = this.answered.size;
    counts.free = this.free.count;
  }

  /** Free requests are made until every node refuses them: by then, all of its day's have been. */
  private async drainAllowance(): Promise<void> {
    const nodes = [...this.nodes];
    for (let refusedInARow = 0; refusedInARow < 2 * nodes.length; ) {
      for (const node of nodes) {
        const admitted = await this.during(this.request(node, FREE_KEY, ZERO_USD));
        refusedInARow = admitted ? 0 : refusedInARow + 1;
      }
    }
    for (const node of nodes) if (!node.dead) this.free.judgeSpent(this.now(node));
  }

  private now({ skewMs }: FleetNode): EpochMs {
    return epochMs(this.start + skewMs);
  }

  /** Once every node has given back what it does not use, all that is left can be taken. */
  private async refund(): Promise<void> {
    for (const node of this.nodes) await this.during(node.grants.release([CREDITED]));
    this.takeBack("all");
    while (this.network.length > 0) await this.during(Promise.resolve());
    check(this.left === 0, `${this.left} of the credit are left, and cannot be taken back`);
  }

  private get left(): number {
    const { spent, held } = this.spent().get(CREDITED)!;
    return this.limits.get(CREDITED)! - spent - held;
  }

  private someCredit(): NanoUsd {
    return (1 + this.taking.below(60_000)) as NanoUsd;
  }

  /**
   * Takes credit back as an operator does it: at once where it is free, and otherwise again after the nodes
   * were asked to give back, whether they have or not. What is asked and what is answered may be lost; then it
   * is asked again, under the same key.
   */
  private takeBack(requested: NanoUsd | "all"): void {
    const key = `debit ${this.debits++}`;
    for (const node of this.nodes) {
      if (this.taking.chance(0.5))
        this.carry(node, () => void (this.isCut(node) || node.grants.release([CREDITED])));
    }
    for (let times = 1 + this.taking.below(3); times > 0; times--) {
      this.network.push(() => this.debit(key, requested));
    }
  }

  private debit(key: string, requested: NanoUsd | "all"): void {
    const amount = this.authority.debit(key, CREDITED, requested);
    if (amount === null) return;
    const known = this.answered.get(key);
    check(known === undefined || known === amount, `${key} took ${amount}, and ${known} before`);
    this.answered.set(key, amount);
    if (known !== undefined) return;
    this.limits.set(CREDITED, (this.limits.get(CREDITED)! - amount) as NanoUsd);
  }

  private async flushed(): Promise<void> {
    for (const node of [...this.nodes]) {
      // One that had given up says so at once, and tries again.
      while (node instanceof DisklessNode && !node.dead && !(await this.during(node.journal.flushed())));
    }
  }

  /** Lets time pass and messages arrive until something has come about. */
  private async during<Result>(something: Promise<Result>): Promise<Result> {
    let done = false;
    void something.finally(() => {
      done = true;
    });
    for (let isFirst = true; !done; isFirst = false) {
      for (const node of this.nodes) node.grants.tick();
      const messages = this.network.splice(0);
      for (const message of messages) message();
      let hasHappened = isFirst || messages.length > 0;
      const untilMs = this.time.elapsedMs() + 10;
      while (this.time.step(untilMs)) hasHappened = true;
      await settled();
      // Most of what is waited for here is that time passes.
      if (hasHappened) this.watch();
      else this.forgetRates();
    }
    return something;
  }

  private async requestTagged(): Promise<void> {
    const { tagging } = this;
    const amount = (1 + tagging.below(WORST_CASE)) as NanoUsd;
    if (await this.request(tagging.pick(this.nodes), TAG_KEY, amount, tagging.pick(USERS)))
      this.counts.tagged += 1;
  }

  private async request(node: FleetNode, key: Key, amount: NanoUsd, tags?: Tags): Promise<boolean> {
    node.asking += 1;
    return this.admit(node, key, amount, tags).finally(() => {
      node.asking -= 1;
    });
  }

  private async admit(node: FleetNode, key: Key, amount: NanoUsd, tags?: Tags): Promise<boolean> {
    const request = reservationRequest({
      receipt: `rcpt_${this.receipts++}`,
      at: this.now(node),
      key,
      budgets: key === TAG_KEY ? EACH : key.budgets.length > 0 ? TEAM : [],
      allowances: key === FREE_KEY ? [ALLOWANCE] : [],
      rpmLimit: key.rpmLimit,
      amount,
      about: { surface: "messages", model: "a/b", stream: this.random.chance(0.5), tags },
    });
    const amounts = asksFor(request);
    const isGone = () => node.dead || this.postgres.isClosed(node.name);
    this.asking.begin(amounts, { isGone }, this.useNow());
    const end = await this.answer(node, request);
    // Nobody counts what a closed node has.
    this.asking.end(amounts, isGone() ? "unknown" : end, this.useNow());
    if (end === "admitted") return true;
    this.counts[end === "refused" ? "refused" : "unanswered"] += 1;
    if (key === FREE_KEY && end === "refused") this.counts.freeRefused += 1;
    return false;
  }

  /** As generation/admission does it. */
  private async answer(
    node: FleetNode,
    request: ReservationRequest,
  ): Promise<"admitted" | "refused" | "unknown"> {
    const claim = new GrantClaim();
    return this.answerWith(claim, node, request).finally(() => claim.release());
  }

  private async answerWith(
    claim: GrantClaim,
    node: FleetNode,
    request: ReservationRequest,
  ): Promise<"admitted" | "refused" | "unknown"> {
    const { key } = request;
    for (let round = 0; round < 4; round++) {
      const { budgets, allowances, at, about } = request;
      const found = node.ledger.counters.of(key, budgets, allowances, at, null, about.tags);
      // In the same turn, or they may be forgotten.
      const keyCounters = found instanceof Promise ? await found : found;
      if (node.dead) return "unknown";
      const outcome = node.ledger.admit(keyCounters, request);
      if (outcome instanceof Reservation) {
        this.counts.admitted += 1;
        if (key.rpmLimit !== null) {
          this.taken.push(this.time.elapsedMs());
          this.counted.push({ atMs: this.time.elapsedMs(), node });
        }
        if (key === FREE_KEY) {
          const isGone = () => node.dead || this.postgres.isClosed(node.name);
          this.free.admitted(request.receipt, request.at, { isGone });
        }
        void this.open(node, outcome);
        return "admitted";
      }
      const grantAnswer = await node.ledger.replenish(keyCounters, request, claim);
      if (grantAnswer !== "room" || node.dead) return grantAnswer === "short" ? "refused" : "unknown";
    }
    return "unknown";
  }

  /** As generation/generate does it: the first byte of a stream leaves once its hold is durable. */
  private async open(node: FleetNode, reservation: Reservation): Promise<void> {
    const { receipt, about } = reservation.request;
    if (about.stream) {
      const durable = await node.durable(reservation.sequence);
      if (node.dead) return;
      if (!durable) {
        this.free.ended(receipt, "unused");
        node.ledger.settle(reservation, reservationEnd(0, { state: "failed" }), () => "{}");
        return;
      }
      if (node instanceof DisklessNode) this.promises.begin(receipt);
    }
    node.open.push(reservation);
  }

  private async settleOne(node: FleetNode): Promise<void> {
    const reservation = node.open.splice(this.random.below(node.open.length), 1)[0];
    if (reservation === undefined) return;
    const { receipt, about, allowances } = reservation.request;
    const cost = this.random.below(reservation.held + 1);
    const allowanceUsed = allowances.length > 0 && (reservation.delivered > 0 || this.giving.chance(0.5));
    const settled = node.ledger.settle(reservation, reservationEnd(cost, { allowanceUsed }), () => "{}");
    this.free.ended(receipt, allowanceUsed ? "used" : "unused");
    const durable = await node.durable(settled.sequence);
    if (durable && (!node.dead || node instanceof JournalNode)) this.free.kept(receipt);
    if (node.dead || !(node instanceof DisklessNode)) return;
    if (durable) this.promises.end(receipt, settled.charged);
    // What uses nothing is never a whole answer.
    else if (!about.stream && (allowanceUsed || allowances.length === 0)) {
      if (node.ledger.takeBack(reservation, settled, "{}")) this.free.ended(receipt, "unused");
    }
  }

  /** A hold shrinks, to no less than was delivered, or grows, where there is room. */
  private follow({ ledger, open }: FleetNode): void {
    const { following } = this;
    const reservation = following.pick(open);
    if (reservation === undefined || reservation.request.amount === 0) return;
    const { held, delivered } = reservation;
    if (following.chance(0.5))
      ledger.shrink(reservation, (delivered + following.below(held - delivered + 1)) as NanoUsd);
    else if (ledger.extend(reservation, (1 + following.below(WORST_CASE)) as NanoUsd)) this.counts.grown += 1;
  }

  /** A host sends much more in one packet than is held: as generation/hold covers it. */
  private async burst(node: FleetNode): Promise<void> {
    const reservation = this.bursting.pick(node.open);
    if (reservation === undefined || reservation.request.amount === 0) return;
    const amount = (WORST_CASE + this.bursting.below(4 * WORST_CASE)) as NanoUsd;
    const amounts = asksFor({ ...reservation.request, amount, allowances: [], rpmLimit: null });
    const isGone = () => node.dead || this.postgres.isClosed(node.name);
    this.asking.begin(amounts, { isGone }, this.useNow());
    const end = await this.grow(node, reservation, amount);
    this.asking.end(amounts, isGone() ? "unknown" : end, this.useNow());
    this.counts[end === "admitted" ? "burst" : "burstRefused"] += 1;
  }

  private async grow(
    node: FleetNode,
    reservation: Reservation,
    amount: NanoUsd,
  ): ReturnType<Fleet["answer"]> {
    for (let round = 0; round < 4; round++) {
      if (node.dead || !reservation.isOpen) return "unknown";
      if (node.ledger.extend(reservation, amount)) return "admitted";
      const outcome = await node.ledger.replenishHold(reservation, amount);
      if (outcome !== "room") return outcome === "short" ? "refused" : "unknown";
    }
    return "unknown";
  }

  /** Some of a stream reaches its client. */
  private deliverSome(node: FleetNode): void {
    const reservation = this.random.pick(node.open.filter(({ request }) => request.about.stream));
    if (reservation === undefined) return;
    const { held, delivered, request } = reservation;
    const left = request.allowances.length > 0 ? MAX_WORDS : held - delivered;
    node.ledger.delivered(reservation, delivered + this.random.below(left + 1));
    if (reservation.delivered > 0) this.free.delivered(request.receipt);
  }

  private deliver(): void {
    if (this.network.length === 0) return;
    const at = this.random.below(this.network.length);
    const message = this.network[at]!;
    // Lost, doubled or delivered.
    if (this.random.chance(0.9)) this.network.splice(at, 1);
    if (this.random.chance(0.85)) message();
  }

  /** A ledger's process ends. With a journal, its next life reads that, and only then closes the epoch. */
  private crash(node: FleetNode): void {
    this.counts.crashes += 1;
    node.die();
    if (node instanceof JournalNode) {
      this.endNode(node, node.recover());
      this.nodes[this.nodes.indexOf(node)] = this.birth(node.name, node.epoch + 1);
      return;
    }
    if (!this.postgres.isClosed(node.name)) this.gone.push(node as DisklessNode);
    this.nodes[this.nodes.indexOf(node)] = this.diskless();
  }

  /** Somebody thinks that it is gone, rightly or not. */
  private closeOne(node: FleetNode): void {
    if (!(node instanceof DisklessNode) || this.postgres.isClosed(node.name)) return;
    if (!node.dead) this.counts.closed += 1;
    for (const receipt of this.postgres.started(node.name)) this.free.started(receipt);
    const spent = this.postgres.close(node.name);
    for (const [counter, amount] of spent) {
      const granted = this.authority.grantedTo(counter, node.name);
      check(
        amount <= granted,
        `${node.name} was closed with ${amount} of ${counter}, and granted ${granted}`,
      );
    }
    this.endNode(node, spent);
    const at = this.gone.indexOf(node);
    if (at !== -1) this.gone.splice(at, 1);
  }

  private endNode({ name, epoch }: FleetNode, spent: ReadonlyMap<CounterId, NanoUsd>): void {
    this.taken = [];
    for (const [counter, amount] of spent)
      this.spentByEnded.set(counter, (this.spentByEnded.get(counter) ?? 0) + amount);
    this.authority.close(name, epoch, spent);
  }

  private birth(name: string, epoch: number): JournalNode {
    const node: JournalNode = new JournalNode({ epoch, ...this.surroundings(name, () => node) });
    return node;
  }

  private diskless(): DisklessNode {
    const name = `d${this.lives++}`;
    const parts = this.surroundings(name, () => node);
    const commit = commitsOver(this.network, this.postgres, {
      life: name,
      cut: () => this.isCut(node),
      random: this.random,
      after: (ms, run) => void parts.clock.after(ms, run),
    });
    const node: DisklessNode = new DisklessNode({ epoch: 1, ...parts }, commit, () => {
      // It finds itself closed, and ends.
      if (!node.dead) this.crash(node);
    });
    return node;
  }

  private surroundings(name: string, of: () => FleetNode): Omit<NodeParts, "epoch"> {
    if (!this.numbers.has(name)) this.numbers.set(name, this.numbers.size + 1);
    const { clock, end } = this.time.life();
    return {
      name,
      skewMs: this.random.below(2 * MAX_SKEW_MS) - MAX_SKEW_MS,
      clock,
      end,
      credit: CREDIT,
      holders: HOLDERS,
      send: (statement) =>
        this.carry({ name }, () => {
          const node = of();
          if (this.isCut(node) || this.postgres.isClosed(node.name)) return;
          const grant = this.authority.settle(statement);
          if (grant === null) return;
          this.carry(node, () => {
            if (!this.isCut(node)) node.grants.receive(grant);
          });
        }),
    };
  }

  /** Lost, doubled and late like every other message. */
  private recall(counter: CounterId, asker: string, inquiry: number): void {
    for (const node of this.nodes) {
      if (node.name === asker) continue;
      this.carry(node, () => {
        if (!this.isCut(node)) node.grants.recall(counter, inquiry);
      });
    }
  }

  private forgetRates(): void {
    const sinceMs = this.time.elapsedMs() - 60_000;
    this.taken = this.taken.filter((atMs) => atMs > sinceMs);
    this.counted = this.counted.filter(({ atMs }) => atMs > sinceMs - SLOT_MS);
  }

  watch(): void {
    this.forgetRates();
    this.free.judge();
    const uses = this.spent();
    this.asking.judge(this.useNow(uses));
    check(this.taken.length <= RPM, `${this.taken.length} requests within a minute, of ${RPM}`);
    for (const [counter, limit] of this.limits) {
      const { spent, held } = uses.get(counter)!;
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

  private useNow(known: ReadonlyMap<CounterId, Spent> | null = null): UseOf {
    let uses = known;
    return (limit) => {
      const id = limit as CounterId;
      if (limit !== RATE) {
        uses ??= this.spent();
        return { of: this.limits.get(id)!, by: uses.get(id)!.by };
      }
      const counted = this.counted.filter(({ node }) => !node.dead).length;
      return { of: RPM, by: [counted] };
    };
  }

  /** What every life of every ledger spent of each limit, by their own counters. */
  private spent(): ReadonlyMap<CounterId, Spent> {
    const all = new Map<CounterId, Spent>();
    for (const id of this.limits.keys())
      all.set(id, new Spent(this.spentByEnded.get(id) ?? 0, this.numbers.size));
    for (const { name } of this.gone) {
      const number = this.numbers.get(name)!;
      for (const [id, spent] of this.postgres.spent(name)) all.get(id)?.add(number, spent, 0);
      for (const [id, held] of this.postgres.held(name)) all.get(id)?.add(number, 0, held);
    }
    for (const { name, ledger, forgotten } of this.nodes) {
      // What it counts in its memory reaches nobody.
      if (this.postgres.isClosed(name)) continue;
      const number = this.numbers.get(name)!;
      for (const { id, spent, held } of ledger.counters.booked()) all.get(id)?.add(number, spent, held);
      for (const [id, spent] of forgotten) all.get(id)?.add(number, spent, 0);
    }
    return all;
  }
}

/** What is spent and held of a limit; in all, and by the number of the node, of which 0 stands for lives that are over. */
class Spent {
  held = 0;
  readonly by: number[];

  constructor(
    public spent: number,
    nodes: number,
  ) {
    this.by = new Array(nodes + 1).fill(0);
    this.by[0] = spent;
  }

  add(node: number, spent: number, held: number): void {
    this.spent += spent;
    this.held += held;
    this.by[node]! += spent + held;
  }
}

/** What the auditor knows the limits of. */
function asksFor({
  at,
  key,
  amount,
  budgets,
  allowances,
  rpmLimit,
  about,
}: ReservationRequest): RequestedAmounts {
  const amounts = new Map<string, NanoUsd>();
  for (const { owner } of allowances) amounts.set(allowanceCounter(owner, at), ONE_REQUEST);
  if (rpmLimit !== null) amounts.set(RATE, ONE_REQUEST);
  if (amount === 0) return amounts;
  amounts.set(CREDITED, amount);
  if (key.dailyLimit !== null) amounts.set(keyCounter("day", key.rotationId, at), amount);
  if (key.monthlyLimit !== null) amounts.set(keyCounter("month", key.rotationId, at), amount);
  for (const budget of budgets) {
    const value = tagValueOf(budget, about.tags);
    const { id, window } = budget;
    amounts.set(
      value === undefined ? budgetCounter(id, window, at) : valueCounter(budget, value, at),
      amount,
    );
  }
  return amounts;
}

const RATE = "the rate";
/** A rate is counted in seconds, the first of which may be gone only in part. */
const SLOT_MS = 1_000;
const ONE_REQUEST = 1 as NanoUsd;
