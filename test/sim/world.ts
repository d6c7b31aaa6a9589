import type { Catalog, Host, Model, Price } from "../../src/catalog/catalog.ts";
import type { Answer } from "../../src/generation/answer.ts";
import { generator } from "../../src/generation/generate.ts";
import type { House, Settings } from "../../src/generation/house.ts";
import { recoveredReceipt } from "../../src/generation/receipt.ts";
import { Destinations } from "../../src/hosts/destination.ts";
import type { Budget, Key } from "../../src/keys/key.ts";
import type { Holder } from "../../src/keys/keyring.ts";
import { type DebitStore, Debits } from "../../src/ledger/debits.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { CountAllowance } from "../../src/limits/count-allowance.ts";
import { HostSlots } from "../../src/limits/host-slots.ts";
import { Affinity } from "../../src/routing/affinity.ts";
import { Health } from "../../src/routing/health.ts";
import { Books } from "../../src/store/sqlite/books.ts";
import type { ReceiptPage, StoredReceipt } from "../../src/store/sqlite/ledger-store.ts";
import { OpenStreams } from "../../src/stream/open-streams.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
import { type Clock, type EpochMs, epochMs } from "../../src/units/clock.ts";
import type { BalanceId, BudgetId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { chanceOf } from "../../src/units/random.ts";
import { NANO_PER_USD, type NanoPerMillion, type NanoUsd } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";
import { type Asked, Auditor, type BookedReceipt, check, PROMPT_BYTES } from "./auditor.ts";
import { VirtualClock } from "./clock.ts";
import { SimulatedDatabase } from "./database.ts";
import { SimulatedDisk } from "./disk.ts";
import { type Served, SimulatedHosts, WORD } from "./hosts.ts";
import { Operator } from "./operator.ts";
import { Random } from "./random.ts";

/**
 * The production conductor, ledger, router, failover, relay, journal and store, on simulated hosts, clients,
 * disk, clock and chance. One seed is one run; whatever goes wrong in it can be replayed. The process is
 * killed and the power is cut at any moment between two turns of the event loop, and in the middle of a
 * write.
 */
export async function simulate(seed: number, steps: number): Promise<Summary> {
  const world = new World(seed);
  await world.begin();
  for (let step = 0; step < steps; step++) await world.step();
  await world.finish();
  return world.summary();
}

export interface Summary {
  readonly requests: number;
  readonly complete: number;
  readonly refused: number;
  readonly broken: number;
  readonly left: number;
  /** Open when the process died. */
  readonly unknown: number;
  readonly crashes: number;
  readonly simulatedHours: number;
}

/** Just before a month, a week or another day ends, so that short runs cross midnight, and often more. */
const STARTS = [30, 30, 29, 28].map((day) => epochMs(Date.UTC(2026, 10, day, 23, 58)));
/** Small enough that even a short run turns pages. */
const JOURNAL_FILE_BYTES = [2_000, 40_000];
const WRITE_OFF_TOKENS = 50;
const EVERY_RECEIPT = { keyId: null, model: null, state: null };

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
  private readonly operator: Operator;
  /** What was read of receipts before they were deleted. */
  private readonly deleted = new Map<string, BookedReceipt>();
  private readonly served = new Map<string, Served[]>();
  /** Asks that may still be open. */
  private readonly asking = new Set<Asked>();
  private readonly keys: readonly Key[];
  private readonly trouble: number;
  /** Whether answers wait for what is written only, and not for its sync. */
  private readonly relaxed: boolean;
  /** Chance of a crash in each step. */
  private readonly crashing: number;
  private life: Life | null = null;
  private crashes = 0;
  private credits = 0;
  private refusingSinceMs: number | null = null;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.deleting = new Random(seed + 1_000_000_007);
    this.booking = new Random(seed + 2_000_000_011);
    this.taking = new Random(seed + 6_000_000_041);
    this.operator = new Operator(this.taking, this.auditor);
    this.time = new VirtualClock(new Random(seed + 5_000_000_029).pick(STARTS));
    this.relaxed = new Random(seed + 3_000_000_019).chance(0.25);
    this.trouble = this.random.pick([0, 0.1, 0.4, 0.8]);
    this.crashing = this.random.pick([0.005, 0.04]);
    this.keys = makeKeys(this.random, new Random(seed + 4_000_000_007));
  }

  async begin(): Promise<void> {
    for (const balance of new Set(this.keys.map(({ balanceId }) => balanceId))) this.credit(balance);
    await this.start();
  }

  async step(): Promise<void> {
    const { random } = this;
    const dice = random.next();
    if (random.chance(this.crashing)) await this.crash(random.chance(0.5) ? "power" : "process");
    else if (dice < 0.35) this.ask();
    else if (dice < 0.36) this.credit(random.pick(this.keys).balanceId);
    else if (dice < 0.37) this.disk.mood = random.pick(["full", "read-only"] as const);
    else if (dice < 0.4) this.disk.mood = "fine";
    else if (dice < 0.402) this.time.set(-random.below(3_600_000));
    else if (dice < 0.41) await this.pass(random.below(3_600_000));
    else await this.pass(random.below(2_000));
    if (this.taking.chance(0.03)) this.takeBack();
    await this.quiet();
    this.watch();
    if (this.taking.chance(0.005)) await this.stall();
    if (this.booking.chance(0.1)) this.compareMemory();
    if (this.deleting.chance(0.3)) this.deleteReceipts();
    if (this.booking.chance(0.004)) this.time.set(this.booking.below(MOST_LEAP_MS) - MOST_LEAP_MS / 4);
  }

  /** Lets everything end, and has it judged. */
  async finish(): Promise<void> {
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
    const { openHolds } = this.life!.ledger;
    check(openHolds === 0, `${openHolds} holds are open although every client is gone`);
    await this.operator.clear(this.life!.debits, () => this.pass(1_000));
    this.watch();
    await this.crash(this.random.chance(0.5) ? "power" : "process");
    const audit = this.database.store.audit();
    check(audit.drifts.length === 0, `the running sums drifted: ${JSON.stringify(audit.drifts, bigints)}`);
    for (const receipt of this.receipts()) this.deleted.set(receipt.id, receipt);
    for (const balance of this.auditor.credits.keys()) {
      this.auditor.judgeCredited(balance, this.database.store.credited(balance));
    }
    const receipts = [...this.deleted.values()];
    this.auditor.judge(receipts, (name) => this.served.get(name) ?? []);
    const charged = receipts.reduce((sum, receipt) => sum + receipt.charged, 0);
    check(audit.charges === BigInt(charged), `${audit.charges} is booked, of receipts over ${charged}`);
  }

  summary(): Summary {
    const count = (outcome: Asked["outcome"]) =>
      this.auditor.asks.filter((ask) => ask.outcome === outcome).length;
    return {
      requests: this.auditor.asks.length,
      complete: count("complete"),
      refused: count("refused"),
      broken: count("broken"),
      left: count("left"),
      unknown: count("unknown"),
      crashes: this.crashes,
      simulatedHours: this.time.elapsedMs() / 3_600_000,
    };
  }

  private async start(): Promise<void> {
    const { clock, end } = this.time.life();
    const hosts = new SimulatedHosts(this.served, clock, this.random, () => this.trouble);
    let books: Books | null = null;
    let failed: unknown = null;
    const { disk, database } = this;
    disk.syncsLater = this.booking.chance(0.5)
      ? (done) => void clock.after(this.booking.below(MOST_SYNC_MS), done)
      : null;
    const opening = {
      disk,
      store: database.asked(clock, this.booking, () => disk.mood !== "fine"),
      clock,
      relaxed: this.relaxed,
      journalFileBytes: this.random.pick(JOURNAL_FILE_BYTES),
      writeOffTokens: WRITE_OFF_TOKENS,
      defer: (run: () => void) => void clock.after(0, run),
      recoveredBody: recoveredReceipt,
      onFault: (error: unknown) => {
        if (disk.mood === "fine" && !String(error).includes("SQLITE_FULL")) throw error;
      },
    };
    void Books.open(opening, database.store.reached()).then(
      (opened) => {
        books = opened;
      },
      (error) => {
        failed = error;
      },
    );
    while (books === null && failed === null) {
      await this.quiet();
      this.time.step(this.time.elapsedMs() + 1);
    }
    if (failed !== null) throw failed;
    this.life = openHouse({
      clock,
      end,
      hosts,
      books: books!,
      store: this.database.store,
      debits: database.debits(this.taking, () => disk.mood !== "fine"),
      random: this.random,
      keys: this.keys,
    });
  }

  /** Kills the process, or the machine under it, sometimes in the middle of a sync. */
  private async crash(kind: "process" | "power"): Promise<void> {
    if (this.random.chance(0.5)) {
      this.disk.syncing = false;
      await this.pass(this.random.below(50));
    }
    this.life!.end();
    if (this.relaxed && kind === "power") this.auditor.powerCut(this.unsureSinceMs - RELAXED_LOSS_MS);
    for (const ask of this.asking) if (ask.outcome === "open") ask.outcome = "unknown";
    this.asking.clear();
    this.operator.crash();
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
    const { balanceId } = this.taking.pick(this.keys);
    this.operator.act(balanceId, this.time.now(), this.life!.debits);
  }

  private ask(): void {
    const { random, auditor } = this;
    const key = random.pick(this.keys);
    const model = random.pick(MODELS);
    const stream = random.chance(0.7);
    const ask: Asked = {
      name: `r${auditor.asks.length}`,
      key,
      budgets: budgetsOf(key),
      prices: new Map(model.routes.map(({ host, price }) => [host.id, perToken(price!)])),
      receipt: null,
      outcome: "open",
      error: null,
      words: 0,
      heardMs: 0,
      mayBeLost: false,
    };
    auditor.asks.push(ask);
    this.asking.add(ask);
    const body = JSON.stringify({
      model: model.id,
      messages: [{ role: "user", content: "x".repeat(40 + random.below(PROMPT_BYTES - 200)) }],
      user: ask.name,
      ...(stream ? { stream } : {}),
      ...(random.chance(0.8) ? { max_tokens: 400 + random.below(200) } : {}),
    });
    void new Client(ask, random, this.life!.clock).send(body, key, this.life!.generate);
  }

  /** What must hold between any two turns. */
  private watch(): void {
    const { ledger, books } = this.life!;
    if (this.disk.mood !== "fine" || !this.disk.syncing) this.refusingSinceMs ??= this.time.elapsedMs();
    else if (books.journal.failure === null) this.refusingSinceMs = null;
    for (const counter of ledger.booked()) {
      check(counter.held >= 0 && counter.spent >= 0, `${counter.id} went below zero`);
      if (!counter.id.startsWith("balance:")) continue;
      const balance = counter.id.slice("balance:".length) as BalanceId;
      const credited = ledger.creditedInMemory(balance)!;
      this.auditor.judgeCredited(balance, credited);
      check(counter.spent + counter.held <= credited, `${balance} is overspent`);
    }
  }

  /** What the ledger remembers is what the books say, but for ends that are on their way there. */
  private compareMemory(): void {
    const { ledger, books } = this.life!;
    for (const { id, spent, changedBy } of ledger.booked()) {
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
      const page: ReceiptPage = this.database.store.receipts(balanceId, EVERY_RECEIPT, 1_000, before);
      all.push(...page.receipts);
      before = page.nextBefore;
    } while (before !== null);
    return all;
  }

  private receipts(): BookedReceipt[] {
    return [...new Set(this.keys.map(({ balanceId }) => balanceId))].flatMap((balanceId) =>
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

const MOST_SYNC_MS = 20;
/** The wall clock may be set by weeks. */
const MOST_LEAP_MS = 40 * 86_400_000;
/** What a relaxed journal told clients is synced by then. */
const RELAXED_LOSS_MS = 1_000 + MOST_SYNC_MS;

/** One process, from start to kill. */
interface Life {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly books: Books;
  readonly debits: Debits;
  readonly generate: ReturnType<typeof generator>;
  end(): void;
}

function openHouse(parts: {
  clock: Clock;
  end: () => void;
  hosts: SimulatedHosts;
  books: Books;
  store: SimulatedDatabase["store"];
  debits: DebitStore;
  random: Random;
  keys: readonly Key[];
}): Life {
  const { clock, books, store, random, keys } = parts;
  const ledger = new Ledger(clock, books.journal, store);
  books.follow(ledger);
  const health = new Health(clock);
  const house: House = {
    clock,
    random: random.bytes,
    ledger,
    journal: books.journal,
    transport: parts.hosts,
    destinations: new Destinations(SURFACES),
    surfaces: SURFACES,
    pairing,
    health,
    affinity: new Affinity(clock),
    roads: {
      restMs: (route) => health.restMs(route),
      speed: (route) => health.speed(route),
      lastAttempt: (route) => health.lastAttempt(route),
      chance: chanceOf(random.bytes),
      verifiedFree: () => true,
      joins: (client, host) => client === host,
    },
    slots: new HostSlots(clock),
    openStreams: new OpenStreams(),
    observe: ({ route }, _, lesson) => health.observe(route, lesson),
    ended: ({ route }, end) => health.streamEnded(route, end),
    catalog: () => CATALOG,
    settings: () => SETTINGS,
    suggest: () => "",
    identify: (secret) => holderOf(keys.find(({ id }) => id === secret)!),
    allowances: () => [],
    hostCharged() {},
    openTrace: () => null,
    finished() {},
    counting: {
      countText: async (request) => request.promptBound,
      boundFiles: async () => null,
      allowance: new CountAllowance(clock),
    },
    keepRefused() {},
    onFault: rethrow,
  };
  const debits = new Debits(ledger, books.journal, parts.debits);
  return { clock, ledger, books, debits, generate: generator(house), end: parts.end };
}

/** Sends one request and notes what it sees; may leave at any time, or read slowly. */
class Client {
  private readonly abort = new AbortController();
  private text = "";

  constructor(
    private readonly ask: Asked,
    private readonly random: Random,
    private readonly clock: Clock,
  ) {}

  async send(body: string, key: Key, generate: Life["generate"]): Promise<void> {
    const { ask, random, clock, abort } = this;
    if (random.chance(0.15)) clock.after(random.below(8_000), () => this.leave());
    const answer = await generate("chat.completions", {
      secret: key.id,
      headers: new Headers(),
      body: new TextEncoder().encode(body),
      blocks: () => [],
      signal: abort.signal,
    });
    ask.receipt = answer.headers["x-gateway-receipt"] ?? null;
    ask.heardMs = clock.elapsedMs();
    if (answer.kind === "stream") return this.read(answer);
    if (ask.outcome !== "open") return;
    ask.outcome = answer.status === 200 ? "complete" : "refused";
  }

  private async read(answer: Extract<Answer, { kind: "stream" }>): Promise<void> {
    const { ask, random, clock } = this;
    await answer.run({
      write: (bytes) => {
        if (ask.outcome !== "open") return false;
        this.text += new TextDecoder().decode(bytes);
        if (random.chance(0.9)) return true;
        return new Promise((resolve) =>
          clock.after(random.below(2_000), () => resolve(ask.outcome === "open")),
        );
      },
      close: () => this.judge(),
    });
  }

  private judge(): void {
    const { ask, text, clock } = this;
    ask.heardMs = clock.elapsedMs();
    ask.words = text.split(`"content":"${WORD}"`).length - 1;
    if (ask.outcome !== "open") return;
    if (text.endsWith("data: [DONE]\n\n")) ask.outcome = "complete";
    else {
      ask.outcome = "broken";
      ask.error = /"code":"(\w+)"/.exec(text)?.[1] ?? null;
    }
  }

  private leave(): void {
    if (this.ask.outcome !== "open") return;
    this.ask.outcome = "left";
    this.abort.abort();
  }
}

const hostOf = (id: string, onDisconnect: Host["onDisconnect"]): Host => ({
  id,
  baseUrl: `http://${id}`,
  speaks: ["chat.completions"],
  apiKey: null,
  auth: "bearer",
  headers: {},
  onDisconnect,
  quirks: {},
});

/** Whole nano-dollars a token, so that the auditor's arithmetic needs no rounding. */
const priceOf = (input: number, output: number): Price => {
  const perMillion = (nano: number) => (nano * 1_000_000) as NanoPerMillion;
  return {
    input: perMillion(input),
    output: perMillion(output),
    cacheRead: perMillion(input),
    cacheWrite: perMillion(input),
  };
};
const perToken = ({ input, output }: Price) => ({ input: input / 1_000_000, output: output / 1_000_000 });

const HOSTS = [hostOf("a", "cancel"), hostOf("b", "drain"), hostOf("c", "cancel"), hostOf("d", "cancel")];
const MODELS: readonly Model[] = [
  { id: "sim/cheap", prices: [priceOf(10, 20), priceOf(15, 30), priceOf(5, 40), priceOf(9, 9)] },
  { id: "sim/dear", prices: [priceOf(100, 300), priceOf(200, 200)] },
].map(({ id, prices }) => ({
  id,
  name: id,
  contextLength: 8_000,
  maxOutputTokens: 2_000,
  price: prices[0]!,
  routes: prices.map((price, index) => ({ host: HOSTS[index]!, model: "host-model", price, free: false })),
}));

const CATALOG: Catalog = {
  models: new Map(MODELS.map((model) => [model.id, model])),
  auto: new Map(),
  hosts: new Map(HOSTS.map((host) => [host.id, host])),
};

const SETTINGS: Settings = {
  baseUrl: "http://gateway",
  dashboardUrl: "http://gateway/dashboard",
  contact: null,
  attempts: { firstTokenMs: 5_000, maxHosts: 3, hedgeMs: 400, chunkGapMs: 120_000, totalMs: 1_200_000 },
  order: "price",
  chunkGapMs: 10_000,
  totalMs: 120_000,
  writeOffTokens: WRITE_OFF_TOKENS,
  defaultMaxOutputTokens: 300,
  openTierRpm: null,
};

/** Small enough to be reached. */
const BUDGETS: readonly Budget[] = (["day", "week", "month", "total"] as const).map((window, index) => ({
  id: `bud_${index}` as BudgetId,
  balanceId: "bal_0" as BalanceId,
  name: window,
  cap: (60_000 * (index + 1)) as NanoUsd,
  window,
}));

function makeKeys(random: Random, budgeting: Random): readonly Key[] {
  return Array.from({ length: 6 }, (_, index) => {
    const maybe = <T>(value: T): T | null => (random.chance(0.5) ? value : null);
    const id = `key_${index}` as KeyId;
    return keyOf({
      id,
      balanceId: `bal_${index % 2}` as BalanceId,
      rpmLimit: maybe(20),
      tpmLimit: maybe(20_000),
      dailyLimit: maybe((20_000 + random.below(200_000)) as NanoUsd),
      monthlyLimit: maybe((40_000 + random.below(300_000)) as NanoUsd),
      budgets: index % 2 === 0 && random.chance(0.5) ? someBudgets(budgeting) : [],
    });
  });
}

const someBudgets = (random: Random): string[] =>
  BUDGETS.filter(() => random.chance(0.5)).map(({ name }) => name);

const budgetsOf = (key: Key): readonly Budget[] => BUDGETS.filter(({ name }) => key.budgets.includes(name));

const holderOf = (key: Key): Holder => ({
  key,
  balance: { id: key.balanceId, accountId: null, suspended: null, createdAt: 0 as EpochMs },
  budgets: budgetsOf(key),
});

const bigints = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

function rethrow(error: unknown): never {
  throw error;
}
