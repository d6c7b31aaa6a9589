import { SURFACE_NAMES } from "../../src/catalog/catalog.ts";
import type { Key } from "../../src/customers/keys/key.ts";
import type { Keyring } from "../../src/customers/keys/keyring.ts";
import { generator } from "../../src/generation/generate.ts";
import { DeferredCounts } from "../../src/generation/prompt-count.ts";
import type { CounterId } from "../../src/ledger/counter.ts";
import type { Debits } from "../../src/ledger/debits.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { recoveredReceipt } from "../../src/ledger/receipt.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import type { Health } from "../../src/routing/health.ts";
import { type BuiltGateway, buildGateway } from "../../src/server/gateway.ts";
import type { GatewayParts } from "../../src/server/gateway-parts.ts";
import { type LedgerOnDisk, openLedger } from "../../src/store/books/bookkeeping-sqlite.ts";
import type { JournalBooks } from "../../src/store/journal/books.ts";
import { ANY_RECEIPT, type StoredReceipt, type StoredReceiptPage } from "../../src/store/ledger/receipts.ts";
import { type Clock, type EpochMs, epochMs, pause } from "../../src/units/clock.ts";
import type { BalanceId, ReceiptId } from "../../src/units/id.ts";
import { NANO_PER_USD, type NanoUsd } from "../../src/units/usd.ts";
import { booksOf, COUNTS_NOTHING, configOf, partsOf } from "../fakes/gateway-parts.ts";
import { Auditor, type BookedReceipt, isStopped, PROMPT_BYTES, type SimulatedRequest } from "./auditor.ts";
import {
  atOnceOf,
  CATALOG,
  FREE_HOSTS,
  FREE_MODELS,
  makeTier,
  NETWORKS,
  PAID_MODELS,
  SETTINGS,
  SlowlyThinking,
} from "./catalogue.ts";
import { Client, type Generate } from "./client.ts";
import { VirtualClock } from "./clock.ts";
import { SimulatedDatabase } from "./database.ts";
import { SimulatedDisk } from "./disk.ts";
import { accountOf, fromOneBudget, Holders, makeBusyKeys, makeKeys } from "./holders.ts";
import { type Served, SimulatedHosts } from "./hosts.ts";
import { LANGUAGES } from "./languages.ts";
import { DEFAULT_CEILING, drawsOf, judgeLimits, type LimitCounts, type Tier } from "./limits.ts";
import { Operator } from "./operator.ts";
import { Random } from "./random.ts";
import { Takes } from "./takes.ts";
import { check } from "./world.ts";

/**
 * The production conductor, ledger, router, failover, relay, journal and store, on simulated hosts, clients,
 * disk, clock and chance. One seed is one run; whatever goes wrong in it can be replayed. The process is
 * killed and the power is cut at any moment between two turns of the event loop, and in the middle of a
 * write.
 */
export async function simulate(
  seed: number,
  steps: number,
  onStep: (step: number) => void = () => {},
): Promise<Summary> {
  const world = new World(seed);
  await world.begin();
  for (let step = 0; step < steps; step++) {
    await world.step();
    onStep(step);
  }
  await world.finish();
  return world.summary();
}

export interface Summary extends LimitCounts {
  readonly requests: number;
  readonly complete: number;
  readonly refused: number;
  readonly broken: number;
  readonly left: number;
  /** Of those that broke, streams for which nothing more could be held. */
  readonly stopped: number;
  /** Open when the process died. */
  readonly unknown: number;
  readonly crashes: number;
  /** Of limits, keys and balances. */
  readonly changes: number;
  readonly simulatedHours: number;
}

/** Just before a month, a week or another day ends, so that short runs cross midnight, and often more. */
const STARTS = [30, 30, 29, 28].map((day) => epochMs(Date.UTC(2026, 10, day, 23, 58)));
/** Small enough that even a short run turns pages. */
const JOURNAL_FILE_BYTES = [2_000, 40_000];

class World {
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
  /** What was read of receipts before they were deleted. */
  private readonly deleted = new Map<string, BookedReceipt>();
  private readonly served = new Map<string, Served[]>();
  /** Asks that may still be open. */
  private readonly asking = new Set<SimulatedRequest>();
  private readonly holders: Holders;
  private readonly trouble: number;
  /** Whether answers wait for what is written only, and not for its sync. */
  private readonly relaxed: boolean;
  /** Chance of a crash in each step. */
  private readonly crashing: number;
  private life: Life | null = null;
  private crashes = 0;
  private changes = 0;
  private credits = 0;
  private refusingSinceMs: number | null = null;
  private isEnding = false;
  private limitCounts: LimitCounts | null = null;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.deleting = new Random(seed + 1_000_000_007);
    this.booking = new Random(seed + 2_000_000_011);
    this.taking = new Random(seed + 6_000_000_041);
    this.speaking = new Random(seed + 10_000_000_019);
    this.operator = new Operator(this.taking, this.auditor);
    this.time = new VirtualClock(new Random(seed + 5_000_000_029).pick(STARTS));
    this.relaxed = new Random(seed + 3_000_000_019).chance(0.25);
    this.trouble = this.random.pick([0, 0.1, 0.4, 0.8]);
    this.crashing = this.random.pick([0.005, 0.04]);
    const rushing = new Random(seed + 7_000_000_003);
    this.rushing = rushing.chance(0.5) ? rushing : null;
    this.tier = makeTier(rushing);
    const changing = new Random(seed + 8_000_000_009);
    this.changing = this.rushing === null && changing.chance(0.75) ? changing : null;
    const make = this.rushing === null ? makeKeys : makeBusyKeys;
    const keys = make(this.random, new Random(seed + 4_000_000_007));
    this.holders = new Holders(this.changing === null ? keys : fromOneBudget(keys, this.changing));
    this.takes = new Takes(this.holders);
  }

  async begin(): Promise<void> {
    for (const balance of this.holders.balances) this.credit(balance);
    await this.start();
  }

  async step(): Promise<void> {
    const { random, holders } = this;
    const dice = random.next();
    if (random.chance(this.crashing)) await this.crash(random.chance(0.5) ? "power" : "process");
    else if (dice < 0.35) this.startRequest(random.pick(holders.keys), random);
    else if (dice < 0.36) this.credit(random.pick(holders.keys).balanceId);
    else if (dice < 0.37) this.disk.mood = random.pick(["full", "read-only"] as const);
    else if (dice < 0.4) this.disk.mood = "fine";
    else if (dice < 0.402) this.time.set(-random.below(3_600_000));
    else if (dice < 0.41) await this.pass(random.below(3_600_000));
    else await this.pass(random.below(2_000));
    if (this.taking.chance(0.03)) this.takeBack();
    if (this.rushing !== null) await this.rush(this.rushing);
    await this.quiet();
    this.watch();
    this.compareHolds();
    if (this.changing?.chance(0.2)) this.changeLimits(this.changing);
    if (this.taking.chance(0.005)) await this.stall();
    if (this.booking.chance(0.1)) this.compareMemory();
    if (this.deleting.chance(0.3)) this.deleteReceipts();
    if (this.booking.chance(0.004)) this.time.set(this.booking.below(MAX_LEAP_MS) - MAX_LEAP_MS / 4);
  }

  /** Lets everything end, and has it judged. */
  async finish(): Promise<void> {
    this.isEnding = true;
    this.disk.mood = "fine";
    for (
      let round = 0;
      round < 20_000 && this.auditor.asks.some(({ outcome }) => outcome === "open");
      round++
    ) {
      await this.pass(1_000);
    }
    // Streams that were relayed to clients who left end within the gap and total deadlines, too.
    await this.pass(SETTINGS.totalMs);
    await this.operator.clear(this.life!.debits, () => this.pass(1_000));
    const left = this.life!.inUse();
    check(left.length === 0, `every client is gone, and these were not given back: ${left.join("; ")}`);
    this.watch();
    await this.crash(this.random.chance(0.5) ? "power" : "process");
    const audit = this.database.store.audit();
    check(audit.drifts.length === 0, `the running sums drifted: ${JSON.stringify(audit.drifts, bigints)}`);
    for (const receipt of this.receipts()) this.deleted.set(receipt.id, receipt);
    for (const balance of this.auditor.credits.keys()) {
      this.auditor.judgeCredited(balance, this.database.store.credited(balance));
    }
    const receipts = [...this.deleted.values()];
    const hostsOf = (name: string) => this.served.get(name) ?? [];
    this.auditor.judge(receipts, hostsOf, this.changing === null);
    if (this.changing !== null)
      this.takes.judge(this.auditor.asks, receipts, (id) => this.database.store.spent(id));
    this.limitCounts = judgeLimits(this.auditor.asks, hostsOf, this.auditor.deaths);
    const charged = receipts.reduce((sum, receipt) => sum + receipt.charged, 0);
    check(audit.charges === BigInt(charged), `${audit.charges} is booked, of receipts over ${charged}`);
  }

  summary(): Summary {
    const count = (outcome: SimulatedRequest["outcome"]) =>
      this.auditor.asks.filter((request) => request.outcome === outcome).length;
    return {
      requests: this.auditor.asks.length,
      complete: count("complete"),
      refused: count("refused"),
      broken: count("broken"),
      left: count("left"),
      stopped: this.auditor.asks.filter((request) => isStopped(request) && request.words > 0).length,
      unknown: count("unknown"),
      crashes: this.crashes,
      changes: this.changes,
      simulatedHours: this.time.elapsedMs() / 3_600_000,
      ...this.limitCounts!,
    };
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
    void openLedger(opening, { reached: sums.reached(), sums, debits, holders }).then(
      (opened) => {
        open = opened;
      },
      (error) => {
        failed = error;
      },
    );
    while (open === null && failed === null) {
      await this.quiet();
      this.time.step(this.time.elapsedMs() + 1);
    }
    if (failed !== null) throw failed;
    const { random, tier, unverified } = this;
    this.life = openLife({ clock, end, hosts, open: open!, random, holders: this.holders, tier, unverified });
  }

  private judgeLost(): void {
    this.auditor.judgeLost(this.crashes, this.life!.ledger.lost, (name) => this.served.get(name) ?? []);
  }

  /** Kills the process, or the machine under it, sometimes in the middle of a sync. */
  private async crash(kind: "process" | "power"): Promise<void> {
    if (this.random.chance(0.5)) {
      this.disk.syncing = false;
      await this.pass(this.random.below(50));
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
    this.crashes += 1;
    await this.start();
  }

  /** Requests end, and the disk does not say so until it is too late: what they leave must not be taken. */
  private async stall(): Promise<void> {
    this.disk.syncing = false;
    await this.pass(this.taking.below(2_000));
    for (const balance of this.auditor.credits.keys()) {
      this.operator.take(balance, "all", this.time.now(), this.life!.debits);
    }
    await this.quiet();
    await this.crash(this.taking.chance(0.5) ? "power" : "process");
  }

  /** Lets time pass, timer by timer. */
  private async pass(ms: number): Promise<void> {
    const until = this.time.elapsedMs() + ms;
    while (this.time.step(until)) {
      await this.quiet();
      this.watch();
    }
  }

  /** Syncs that are due are done until now, or until the disk began to refuse them. */
  private get unsureSinceMs(): number {
    return Math.min(this.time.elapsedMs(), this.refusingSinceMs ?? Number.POSITIVE_INFINITY);
  }

  private credit(balance: BalanceId): void {
    const amount = this.random.below(2_000_000) as NanoUsd;
    const at = this.time.now();
    this.database.store.credit({
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
      life: this.crashes,
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
    this.changes += 1;
    this.watch();
    if (random.chance(0.2)) this.holders.replaceEnded(this.time.now());
  }

  /** Now and then somebody wants several things in the same moment, or a key is rotated or changed, or time passes. */
  private async rush(random: Random): Promise<void> {
    await this.quiet();
    const dice = random.next();
    if (dice < 0.12) {
      const key = random.chance(0.5) ? this.holders.pick(random) : null;
      for (let asks = 1 + random.below(4); asks > 0; asks--)
        this.startRequest(key ?? this.holders.pick(random), random, random.chance(0.7));
    } else if (dice < 0.14) await this.holders.rotate(random, this.time);
    else if (dice < 0.15) await this.holders.revise(random, this.time);
    else if (dice < 0.17) this.verify(random.pick(FREE_HOSTS), true);
    else if (dice < 0.18) this.verify(random.pick(FREE_HOSTS), false);
    else if (dice < 0.21) await this.pass(random.below(70_000));
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

  /** What must hold between any two turns. */
  private watch(): void {
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

  /** What counters hold is what open requests hold of them, however those grew and shrank. */
  private compareHolds(): void {
    const { ledger } = this.life!;
    const held = heldBy(ledger.openRecords());
    for (const counter of ledger.counters.booked()) {
      const open = held.get(counter.id) ?? 0;
      // Only balances hold something else: what is being taken back.
      const isRight = counter.id.startsWith("balance:") ? counter.held >= open : counter.held === open;
      check(isRight, `${counter.id} holds ${counter.held}, of requests that hold ${open}`);
    }
  }

  /** What the ledger remembers is what the books say, but for ends that are on their way there. */
  private compareMemory(): void {
    const { ledger, books } = this.life!;
    for (const { id, spent, changedBy } of ledger.counters.booked()) {
      if (changedBy > books.appliedThrough) continue;
      const booked = this.database.store.spent(id);
      check(booked === spent, `${id} has spent ${booked} by the books, and ${spent} in memory`);
    }
  }

  /** Much sooner than anybody would: a crash then finds their ends in the journal still. */
  private deleteReceipts(): void {
    for (const receipt of this.receipts()) this.deleted.set(receipt.id, receipt);
    const before = (this.time.now() - this.deleting.below(10_000)) as EpochMs;
    while (this.deleting.chance(0.8) && this.database.store.fold(before) > 0);
  }

  private storedReceipts(balanceId: BalanceId): StoredReceipt[] {
    const all: StoredReceipt[] = [];
    let before: ReceiptId | null = null;
    do {
      const page: StoredReceiptPage = this.database.store.receipts(balanceId, ANY_RECEIPT, 1_000, before);
      all.push(...page.receipts);
      before = page.nextBefore;
    } while (before !== null);
    return all;
  }

  private receipts(): BookedReceipt[] {
    return [...this.holders.balances].flatMap((balanceId) =>
      this.storedReceipts(balanceId).map((stored) => {
        const body = JSON.parse(stored.body) as {
          state: string;
          host: string | null;
          cost_usd: number;
          held_usd: number;
        };
        const charged = Math.round(body.cost_usd * NANO_PER_USD);
        const held = Math.round(body.held_usd * NANO_PER_USD);
        return {
          id: stored.id,
          at: stored.at,
          balanceId,
          keyId: stored.keyId,
          state: body.state,
          host: body.host,
          charged,
          held,
        };
      }),
    );
  }

  /** Every promise that can go on has gone on. */
  private quiet(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

const MAX_SYNC_MS = 20;
/** The wall clock may be set by weeks. */
const MAX_LEAP_MS = 40 * 86_400_000;
/** What a relaxed journal answered is synced by then. */
const RELAXED_LOSS_MS = 1_000 + MAX_SYNC_MS;
/** A word that a client was given is in a checkpoint by then, even one that waited for a sync. */
const CHECKPOINT_LOSS_MS = 2_500;

/** One process, from start to kill. */
interface Life {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly books: JournalBooks;
  readonly debits: Debits;
  readonly health: Health;
  readonly generate: Generate;
  readonly inUse: BuiltGateway["inUse"];
  end(): void;
}

/** Production's own wiring, on what is simulated. */
function openLife(parts: {
  clock: Clock;
  end: () => void;
  hosts: SimulatedHosts;
  open: LedgerOnDisk;
  random: Random;
  holders: Holders;
  tier: Tier;
  unverified: ReadonlySet<string>;
}): Life {
  const { clock, open, random, holders, tier, unverified, end } = parts;
  const { perDay: requestsPerDay, accountlessPerDay: accountlessRequestsPerDay, rpm } = tier;
  const keyring: Pick<Keyring, "identify" | "blockOf"> = {
    identify: (secret, at) => holders.identify(secret, at),
    blockOf: (key) => (holders.current(key as Key, clock) === null ? "ended" : null),
  };
  const { ledger, books, debits } = open;
  const { generation, inUse } = buildGateway(
    partsOf({
      config: configOf(
        CATALOG,
        { ...SETTINGS, openTierRpm: rpm },
        { openTier: { requestsPerDay, accountlessRequestsPerDay, rpm } },
      ),
      clock,
      random: random.bytes,
      transport: parts.hosts,
      books: booksOf({ ledger, journal: books.journal, keyring: keyring as Keyring }),
      counting: COUNTING,
      log: faultsThrown,
    }),
  );
  const { health, counting } = generation;
  verifyFree(health, unverified);
  const generate = generator({
    ...generation,
    expected: new SlowlyThinking(),
    counting: { ...counting, later: new DeferredCounts(0) },
  });
  return { clock, ledger, books, debits, health, generate, end, inUse };
}

/** Counts at once, and of a prompt more than any host reports. */
const COUNTING: GatewayParts["counting"] = {
  ...COUNTS_NOTHING,
  prompt: async (what, { length }) => ({ tokens: what === "text" ? length / 2 : null, ms: 1 }),
  count: async (texts) => Math.ceil(texts.join("").length / 4),
  billedPrompt: async ({ length }) => Math.ceil(length / 4),
};

const faultsThrown: GatewayParts["log"] = (event, fields) => {
  if (event === "fault") throw new Error(String(fields?.error));
};

function verifyFree(health: Health, unverified: ReadonlySet<string>): void {
  for (const { routes } of CATALOG.models.values())
    for (const route of routes) if (route.free) health.verify(route, !unverified.has(route.host.id));
}

/** What open requests hold of each counter; of an allowance, each holds one. */
function heldBy(records: readonly LedgerRecord[]): ReadonlyMap<CounterId, number> {
  const held = new Map<CounterId, number>();
  for (const record of records) {
    if (record.kind !== "hold") continue;
    for (const id of record.counters) held.set(id, (held.get(id) ?? 0) + record.amount);
    for (const [id, from, to] of record.parts ?? []) {
      const part = Math.max(0, Math.min(record.amount, to ?? record.amount) - from);
      held.set(id, (held.get(id) ?? 0) + part);
    }
    for (const id of record.allowances) held.set(id, (held.get(id) ?? 0) + 1);
  }
  return held;
}

const bigints = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** A read takes no longer: see `Holders.change`. */
const READING_MS = 20;
