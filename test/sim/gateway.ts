import { SURFACE_NAMES } from "../../src/catalog/catalog.ts";
import type { Key } from "../../src/customers/keys/key.ts";
import { recoveredReceipt } from "../../src/ledger/receipt.ts";
import { type LedgerOnDisk, openLedger } from "../../src/store/books/bookkeeping-sqlite.ts";
import { type Clock, type EpochMs, epochMs, pause } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { Auditor, isStopped, PROMPT_BYTES, type SimulatedRequest } from "./auditor.ts";
import { BookReader, compareHolds } from "./book-reader.ts";
import { atOnceOf, FREE_HOSTS, FREE_MODELS, makeTier, NETWORKS, PAID_MODELS, SETTINGS } from "./catalogue.ts";
import { Client } from "./client.ts";
import type { VirtualClock } from "./clock.ts";
import { SimulatedDatabase } from "./database.ts";
import { SimulatedDisk } from "./disk.ts";
import { type GatewayLife, openLife, verifyFree } from "./gateway-life.ts";
import { accountOf, fromOneBudget, Holders, makeBusyKeys, makeKeys } from "./holders.ts";
import { type Served, SimulatedHosts } from "./hosts.ts";
import { LANGUAGES } from "./languages.ts";
import { DEFAULT_CEILING, drawsOf, judgeLimits, type Tier } from "./limits.ts";
import { GATEWAY_MUTANTS } from "./mutants/gateway.ts";
import { Operator } from "./operator.ts";
import type { Random } from "./random.ts";
import { listed, scenario } from "./scenario.ts";
import { Takes } from "./takes.ts";
import { check, type Player, settled, type World, type Auditor as WorldAuditor } from "./world.ts";

const COUNTS = [
  "requests",
  "complete",
  "refused",
  "broken",
  "left",
  // Broken streams for which nothing more could be held.
  "stopped",
  // Open when the process died.
  "unknown",
  "crashes",
  // Changes to limits, keys and balances.
  "changes",
  "simulatedHours",
  // Free requests that were sent to a host.
  "free",
  // Refusals by the limit that was reached.
  "overAllowance",
  "overRpm",
  "overFreeRpm",
  "overTpm",
] as const;

/**
 * The production conductor, ledger, router, failover, relay, journal and store, on simulated hosts, clients,
 * disk, clock and chance. One seed is one run; whatever goes wrong in it can be replayed. The process is
 * killed and the power is cut at any moment between two turns of the event loop, and in the middle of a
 * write.
 */
export const GATEWAY = scenario({
  options: { steps: 1_000 },
  seeds: 1,
  mutants: { rules: GATEWAY_MUTANTS, options: ["--steps", "30"] },
  counts: COUNTS,
  steps: ({ steps }) => steps,
  fill: (world) => void world.judgedBy(world.joins(new GatewayAndClients(world))),
  says({ simulatedHours = 0, free, overAllowance, overRpm, overFreeRpm, overTpm, ...counts }) {
    return [
      `${simulatedHours.toFixed(1)} simulated hours, ${listed(counts)}`,
      `Free requests: ${free} reached a host; refused were ${overAllowance} by the day's allowance, ${overRpm} by the key's requests a minute, ${overFreeRpm} by the Open Tier's, ${overTpm} by the key's tokens.`,
    ];
  },
  kept: "No cap, rate or allowance crossed, nothing refused for one that had room, no acknowledged answer lost, no receipt doubled, drift 0.",
});

/** Just before a month, a week or another day ends, so that short runs cross midnight, and often more. */
const STARTS = [30, 30, 29, 28].map((day) => epochMs(Date.UTC(2026, 10, day, 23, 58)));
/** Small enough that even a short run turns pages. */
const JOURNAL_FILE_BYTES = [2_000, 40_000];

class GatewayAndClients implements Player, WorldAuditor {
  private readonly random: Random;
  private readonly time: VirtualClock;
  private readonly disk = new SimulatedDisk();
  private readonly database = new SimulatedDatabase();
  private readonly auditor = new Auditor();
  /** Receipts are deleted at moments of its own, so that nothing else happens differently for it. */
  private readonly deleting: Random;
  /** The same of what the database does. */
  private readonly booking: Random;
  /** The same of what an operator takes back. */
  private readonly taking: Random;
  /**
   * In every other run, keys with rates that can be reached ask several things at once, for free, too: then
   * this decides what. Null in the others.
   */
  private readonly rushing: Random | null;
  /**
   * In most of the others, limits are lowered and raised, keys moved to other budgets and revoked, and balances
   * suspended, while streams run: then this decides what.
   */
  private readonly changing: Random | null;
  /** Decides in which language each client speaks. */
  private readonly speaking: Random;
  private readonly takes: Takes;
  private readonly tier: Tier;
  /** Free hosts that no probe has shown to be free. */
  private readonly unverified = new Set<string>();
  private readonly operator: Operator;
  private readonly books: BookReader;
  private readonly served = new Map<string, Served[]>();
  /** Asks that may still be open. */
  private readonly asking = new Set<SimulatedRequest>();
  private readonly holders: Holders;
  private readonly trouble: number;
  /** Whether answers wait for what is written only, and not for its sync. */
  private readonly relaxed: boolean;
  /** Chance of a crash in each step. */
  private readonly crashing: number;
  private life: GatewayLife | null = null;
  private credits = 0;
  private refusingSinceMs: number | null = null;
  private isEnding = false;

  constructor(private readonly world: World<(typeof COUNTS)[number]>) {
    this.random = world.random;
    this.deleting = world.apart(1);
    this.booking = world.apart(2);
    this.taking = world.apart(6);
    this.speaking = world.apart(10);
    this.operator = new Operator(this.taking, this.auditor);
    this.books = new BookReader(this.database);
    this.time = world.time;
    this.time.begin(world.apart(5).pick(STARTS));
    this.relaxed = world.apart(3).chance(0.25);
    this.trouble = this.random.pick([0, 0.1, 0.4, 0.8]);
    this.crashing = this.random.pick([0.005, 0.04]);
    const rushing = world.apart(7);
    this.rushing = rushing.chance(0.5) ? rushing : null;
    this.tier = makeTier(rushing);
    const changing = world.apart(8);
    this.changing = this.rushing === null && changing.chance(0.75) ? changing : null;
    const make = this.rushing === null ? makeKeys : makeBusyKeys;
    const keys = make(this.random, world.apart(4));
    this.holders = new Holders(this.changing === null ? keys : fromOneBudget(keys, this.changing));
    this.takes = new Takes(this.holders);
  }

  async begin(): Promise<void> {
    for (const balance of this.holders.balances) this.credit(balance);
    await this.start();
  }

  async act(): Promise<void> {
    const { random, holders } = this;
    const dice = random.next();
    if (random.chance(this.crashing)) await this.crash(random.chance(0.5) ? "power" : "process");
    else if (dice < 0.35) this.startRequest(random.pick(holders.keys), random);
    else if (dice < 0.36) this.credit(random.pick(holders.keys).balanceId);
    else if (dice < 0.37) this.disk.mood = random.pick(["full", "read-only"] as const);
    else if (dice < 0.4) this.disk.mood = "fine";
    else if (dice < 0.402) this.time.set(-random.below(3_600_000));
    else if (dice < 0.41) await this.world.pass(random.below(3_600_000));
    else await this.world.pass(random.below(2_000));
    if (this.taking.chance(0.03)) this.takeBack();
    if (this.rushing !== null) await this.rush(this.rushing);
    await settled();
    this.watch();
    compareHolds(this.life!.ledger);
    if (this.changing?.chance(0.2)) this.changeLimits(this.changing);
    if (this.taking.chance(0.005)) await this.stall();
    if (this.booking.chance(0.1)) this.books.compareMemory(this.life!);
    if (this.deleting.chance(0.3)) void this.deleteReceipts();
    if (this.booking.chance(0.004)) this.time.set(this.booking.below(MAX_LEAP_MS) - MAX_LEAP_MS / 4);
  }

  async end(): Promise<void> {
    this.isEnding = true;
    this.disk.mood = "fine";
    for (
      let round = 0;
      round < 20_000 && this.auditor.asks.some(({ outcome }) => outcome === "open");
      round++
    ) {
      await this.world.pass(1_000);
    }
    // Streams that were relayed to clients who left end within the gap and total deadlines, too.
    await this.world.pass(SETTINGS.totalMs);
    await this.operator.clear(this.life!.debits, () => this.world.pass(1_000));
    const left = this.life!.inUse();
    check(left.length === 0, `every client is gone, and these were not given back: ${left.join("; ")}`);
    this.watch();
    await this.crash(this.random.chance(0.5) ? "power" : "process");
  }

  async judge(): Promise<void> {
    const { counts } = this.world;
    const { asks } = this.auditor;
    const audit = await this.database.store.audit();
    check(audit.drifts.length === 0, `the running sums drifted: ${JSON.stringify(audit.drifts, bigints)}`);
    const receipts = this.books.receipts(this.holders.balances);
    for (const balance of this.auditor.credits.keys()) {
      this.auditor.judgeCredited(balance, this.database.store.credited(balance));
    }
    const hostsOf = (name: string) => this.served.get(name) ?? [];
    this.auditor.judge(receipts, hostsOf, this.changing === null, (request) => this.takes.wasTight(request));
    if (this.changing !== null) this.takes.judge(asks, receipts, (id) => this.database.store.spent(id));
    Object.assign(counts, judgeLimits(asks, hostsOf, this.auditor.deaths));
    const charged = receipts.reduce((sum, receipt) => sum + receipt.charged, 0);
    check(audit.charges === BigInt(charged), `${audit.charges} is booked, of receipts over ${charged}`);
    counts.requests = asks.length;
    for (const { outcome } of asks) if (outcome !== "open") counts[outcome] += 1;
    counts.stopped = asks.filter((request) => isStopped(request) && request.words > 0).length;
    counts.simulatedHours = this.time.elapsedMs() / 3_600_000;
  }

  private async start(): Promise<void> {
    const { clock, end } = this.time.life();
    const hosts = new SimulatedHosts(this.served, clock, this.random, () => this.trouble);
    let open = null as LedgerOnDisk | null;
    let failed: unknown = null;
    const { disk, database } = this;
    disk.syncsLater = this.booking.chance(0.5)
      ? (done) => void clock.after(this.booking.below(MAX_SYNC_MS), done)
      : null;
    const opening = {
      disk,
      store: database.overNetwork(clock, this.booking, () => disk.mood !== "fine"),
      clock,
      relaxed: this.relaxed,
      journalFileBytes: this.random.pick(JOURNAL_FILE_BYTES),
      writeOffTokens: SETTINGS.writeOffTokens,
      defer: (run: () => void) => void clock.after(0, run),
      recoveredBody: recoveredReceipt,
      onFault: (error: unknown) => {
        if (disk.mood === "fine" && !String(error).includes("SQLITE_FULL")) throw error;
      },
    };
    const debits = database.debits(this.taking, () => disk.mood !== "fine");
    const holders = {
      current: (key: Key) => this.holders.current(key, clock),
      reread: () => pause(clock, READING_MS),
    };
    const { store: sums } = database;
    void openLedger(opening, { sums, debits, holders }).then(
      (opened) => {
        open = opened;
      },
      (error) => {
        failed = error;
      },
    );
    while (open === null && failed === null) {
      await settled();
      this.time.step(this.time.elapsedMs() + 1);
    }
    if (failed !== null) throw failed;
    const { random, tier, unverified } = this;
    this.life = openLife({ clock, end, hosts, open: open!, random, holders: this.holders, tier, unverified });
  }

  private judgeLost(): void {
    this.auditor.judgeLost(
      this.world.counts.crashes,
      this.life!.ledger.lost,
      (name) => this.served.get(name) ?? [],
    );
  }

  /** Kills the process, or the machine under it, sometimes in the middle of a sync. */
  private async crash(kind: "process" | "power"): Promise<void> {
    if (this.random.chance(0.5)) {
      this.disk.syncing = false;
      await this.world.pass(this.random.below(50));
    }
    this.judgeLost();
    this.life!.end();
    const lossMs = this.relaxed && kind === "power" ? RELAXED_LOSS_MS : 0;
    if (lossMs > 0) this.auditor.powerCut(this.unsureSinceMs - lossMs);
    this.auditor.deaths.push({ keptMs: this.unsureSinceMs - lossMs - CHECKPOINT_LOSS_MS });
    for (const request of this.asking) if (request.outcome === "open") request.outcome = "unknown";
    this.asking.clear();
    this.operator.crash();
    this.takes.reset();
    this.disk.crash(this.random, kind);
    this.disk.syncing = true;
    this.disk.mood = "fine";
    this.database.crash(this.random, kind);
    this.world.counts.crashes += 1;
    await this.start();
  }

  /** Requests end, and the disk does not say so until it is too late: what they leave must not be taken. */
  private async stall(): Promise<void> {
    this.disk.syncing = false;
    await this.world.pass(this.taking.below(2_000));
    for (const balance of this.auditor.credits.keys()) {
      this.operator.take(balance, "all", this.time.now(), this.life!.debits);
    }
    await settled();
    await this.crash(this.taking.chance(0.5) ? "power" : "process");
  }

  /** Syncs that are due are done until now, or until the disk began to refuse them. */
  private get unsureSinceMs(): number {
    return Math.min(this.time.elapsedMs(), this.refusingSinceMs ?? Number.POSITIVE_INFINITY);
  }

  private credit(balance: BalanceId): void {
    const amount = this.random.below(2_000_000) as NanoUsd;
    const at = this.time.now();
    this.database.credit({
      balanceId: balance,
      amount,
      idempotencyKey: `c${this.credits++}`,
      note: null,
      at,
    });
    this.life?.ledger.credited(balance, amount);
    this.auditor.credit(balance, amount);
  }

  private takeBack(): void {
    const { balanceId } = this.taking.pick(this.holders.keys);
    this.operator.act(balanceId, this.time.now(), this.life!.debits);
  }

  private startRequest(key: Key, random: Random, isFree = false): void {
    const { auditor, unverified, tier } = this;
    const model = random.pick(isFree ? FREE_MODELS : PAID_MODELS);
    const stream = random.chance(0.7);
    const prompt = "x".repeat(40 + random.below(PROMPT_BYTES - 200));
    const name = `r${auditor.asks.length}`;
    const surface = this.speaking.pick(SURFACE_NAMES);
    const requested = random.chance(0.8) ? 400 + random.below(200) : null;
    // A message has to name a ceiling.
    const maxTokens = requested ?? (surface === "messages" ? DEFAULT_CEILING : null);
    const about = { model: model.id, prompt: `${name} ${prompt}`, stream, maxTokens };
    const body = JSON.stringify(LANGUAGES[surface].requestBody(about));
    const blocks = isFree ? random.pick(NETWORKS) : [];
    const request: SimulatedRequest = {
      name,
      key,
      chain: this.holders.chainOf(key),
      budgets: this.holders.budgetsOf(key),
      prices: new Map([...model.prices].filter(([host]) => !unverified.has(host))),
      draws: isFree ? drawsOf(key.balanceId, accountOf(key.balanceId), blocks, tier) : null,
      freeRpm: tier.rpm,
      size: { body: body.length, prompt: prompt.length, maxTokens, atOnce: atOnceOf(stream) },
      at: this.time.now(),
      atMs: this.time.elapsedMs(),
      life: this.world.counts.crashes,
      turn: auditor.turn(),
      endTurn: null,
      surface,
      seen: null,
      receipt: null,
      outcome: "open",
      error: null,
      message: "",
      retryAfterS: null,
      answer: null,
      words: 0,
      firstWordMs: null,
      answeredMs: 0,
      mayBeLost: false,
    };
    auditor.asks.push(request);
    this.asking.add(request);
    const { clock, generate } = this.life!;
    const client = new Client(request, random, clock, auditor);
    const refused = client.send(body, blocks, generate);
    if (this.rushing !== null) void refused.then(() => this.comeBack(request, clock));
  }

  private changeLimits(random: Random): void {
    this.holders.change(random, this.time);
    this.world.counts.changes += 1;
    this.watch();
    if (random.chance(0.2)) this.holders.replaceEnded(this.time.now());
  }

  /** Now and then somebody wants several things in the same moment, or a key is rotated or changed, or time passes. */
  private async rush(random: Random): Promise<void> {
    await settled();
    const dice = random.next();
    if (dice < 0.12) {
      const key = random.chance(0.5) ? this.holders.pick(random) : null;
      for (let asks = 1 + random.below(4); asks > 0; asks--)
        this.startRequest(key ?? this.holders.pick(random), random, random.chance(0.7));
    } else if (dice < 0.14) await this.holders.rotate(random, this.time);
    else if (dice < 0.15) await this.holders.revise(random, this.time);
    else if (dice < 0.17) this.verify(random.pick(FREE_HOSTS), true);
    else if (dice < 0.18) this.verify(random.pick(FREE_HOSTS), false);
    else if (dice < 0.21) await this.world.pass(random.below(70_000));
  }

  /** What a probe of a free host has shown. */
  private verify(host: string, isFree: boolean): void {
    if (isFree) this.unverified.delete(host);
    else this.unverified.add(host);
    verifyFree(this.life!.health, this.unverified);
  }

  /** Clients that receive a time to wait come back then, to the moment, or a little too soon. */
  private comeBack({ key, draws, error, retryAfterS }: SimulatedRequest, clock: Clock): void {
    const random = this.rushing!;
    if (error !== "rate_limited" || retryAfterS === null || !random.chance(0.5)) return;
    const tooSoonMs = random.chance(0.5) ? random.below(1_000) : 0;
    clock.after(retryAfterS * 1_000 - tooSoonMs, () => {
      // With the limits that it has by then.
      if (!this.isEnding) this.startRequest(this.holders.latest(key), random, draws !== null);
    });
  }

  /** Much sooner than anybody would: a crash then finds their ends in the journal still. */
  private async deleteReceipts(): Promise<void> {
    this.books.receipts(this.holders.balances);
    const before = (this.time.now() - this.deleting.below(10_000)) as EpochMs;
    while (this.deleting.chance(0.8) && (await this.database.store.fold(before)) > 0);
  }

  /** What must hold between any two turns. */
  watch(): void {
    const { ledger, books } = this.life!;
    if (this.disk.mood !== "fine" || !this.disk.syncing) this.refusingSinceMs ??= this.time.elapsedMs();
    else if (books.journal.failure === null) this.refusingSinceMs = null;
    for (const counter of ledger.counters.booked()) {
      check(counter.held >= 0 && counter.spent >= 0, `${counter.id} went below zero`);
      if (!counter.id.startsWith("balance:")) continue;
      const balance = counter.id.slice("balance:".length) as BalanceId;
      const credited = ledger.counters.ofBalance(balance)!.credited;
      this.auditor.judgeCredited(balance, credited);
      check(counter.spent + counter.held <= credited, `${balance} is overspent`);
    }
    if (this.changing !== null) this.takes.check(ledger, this.asking, this.time.now(), this.time.elapsedMs());
  }
}

const MAX_SYNC_MS = 20;
/** The wall clock may be set by weeks. */
const MAX_LEAP_MS = 40 * 86_400_000;
/** What a relaxed journal answered is synced by then. */
const RELAXED_LOSS_MS = 1_000 + MAX_SYNC_MS;
/** A word that a client was given is in a checkpoint by then, even one that waited for a sync. */
const CHECKPOINT_LOSS_MS = 2_500;

const bigints = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** A read takes no longer: see `Holders.change`. */
const READING_MS = 20;
