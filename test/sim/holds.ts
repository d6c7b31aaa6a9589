import { catalogOf, type Model, type Route } from "../../src/catalog/catalog.ts";
import type { Price, Rates } from "../../src/catalog/price.ts";
import type { Key } from "../../src/customers/keys/key.ts";
import { AgentRun } from "../../src/customers/keys/runs.ts";
import { admit } from "../../src/generation/admission.ts";
import type { AdmissionRequest } from "../../src/generation/admission-request.ts";
import { aheadOf, CHECK_EVERY_MS, ExpectedOutput } from "../../src/generation/expected-output.ts";
import { type Hold, RunningStream } from "../../src/generation/hold.ts";
import { DeferredCounts, PromptCount, type PromptCountDeps } from "../../src/generation/prompt-count.ts";
import { RunningCount } from "../../src/generation/running-count.ts";
import type { FailoverLimits } from "../../src/hosts/failover.ts";
import { costOf, NO_TOKENS, type Tokens, within } from "../../src/ledger/charge.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import type { Reservation } from "../../src/ledger/reservation.ts";
import { Health } from "../../src/routing/health.ts";
import type { Plan } from "../../src/routing/plan.ts";
import type { GenerationRequest, Usage } from "../../src/surfaces/surface.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";
import { check } from "./auditor.ts";
import { Random } from "./random.ts";

/**
 * Streams of hosts that write, and think unseen, up to the pace that holds reckon with, on keys and in runs whose
 * caps they fill. The auditor knows what each host has really done at each moment. While a limit has room, the hold covers
 * that at every moment, and nothing is lost; of a stream that could not go on, no more is lost than a host does
 * between two looks; no cap is crossed, and nobody is admitted whose worst case does not fit next to what is spent.
 *
 * Hosts also answer in one packet, in bursts after a silence, faster than they think, and for a while only in short
 * answers. None of that may size the holds of others: a hold never exceeds the worst case of the longest answer or
 * what was written, nor what its own stream accounts for, and no request is refused that fits.
 *
 * Some hosts do up to twenty times what can be seen of them, and say so at the end: then, too, nothing is lost for
 * which limits have room, and never more than seven times what was held.
 */
export async function simulateHolds(seed: number, steps: number): Promise<HoldCounts> {
  const world = new HoldWorld(seed);
  for (let step = 0; step < steps; step++) await world.step();
  world.finish();
  return world.counts;
}

export interface HoldCounts {
  admitted: number;
  refused: number;
  complete: number;
  stopped: number;
  /** Times that a hold grew, and shrank. */
  grown: number;
  shrunk: number;
  /** Ends that took more than was held, and ends for which limits had no room. */
  grownAtEnd: number;
  short: number;
}

/** A prompt that is longer than the step makes its whole request more expensive. */
const STEP_TOKENS = 30_000;
const BASE = { input: 3e9, output: 15e9, cacheRead: 0.3e9, cacheWrite: 3.75e9 } as Rates;
const RAISED = { input: 6e9, output: 22.5e9, cacheRead: 0.6e9, cacheWrite: 7.5e9 } as Rates;
const PRICE: Price = { ...BASE, above: [{ ...RAISED, prompt: STEP_TOKENS }] };
const ratesOf = (prompt: number): Rates => (prompt > STEP_TOKENS ? RAISED : BASE);
/** What hosts put around a prompt may take it over the step. */
const FRAMING = 1_024;
const FIRST_TOKEN_MS = 30_000;
const PACE = 250;
const LONGEST = 128_000;
/** Holds reckon with no host that works faster unseen. */
const MAX_PACE = 2_000;
const STEP = 4_096;
const LONG_MS = 2_000;
const MODEL: Model = {
  id: "sim/thinker",
  name: "Thinker",
  aliases: [],
  contextLength: 200_000,
  maxOutputTokens: LONGEST,
  price: PRICE,
  routes: [],
};
const CATALOG = catalogOf({ hosts: new Map(), models: new Map([[MODEL.id, MODEL]]), auto: new Map() });
const ROUTE = { host: { id: "h", onDisconnect: "cancel", quirks: {} }, model: "m" } as unknown as Route;
const PLAN: Plan = {
  tier: "paid",
  candidates: [{ model: MODEL, route: ROUTE, price: PRICE, hostSurface: "messages" }],
  home: null,
  auto: null,
  movesOn: "never",
};
const MAX_OPEN = 12;
/** Where the client names no ceiling. */
const DEFAULT_CEILING = 16_384;
const SETTINGS = {
  attempts: { firstTokenMs: FIRST_TOKEN_MS } as FailoverLimits,
  defaultMaxOutputTokens: DEFAULT_CEILING,
  openTierRpm: null,
  sellsCredit: false,
  contact: null,
  dashboardUrl: "http://localhost/dashboard",
};

/** One host at work. */
interface Work {
  readonly hold: Hold;
  readonly reservation: Reservation;
  readonly request: GenerationRequest;
  /** Longest answer of the model, in the host's tokens. */
  readonly longest: number;
  readonly usage: Usage & { readonly output: number };
  /** Tokens that it counts for each that can be seen, or thought at the pace that holds reckon with. */
  readonly hides: number;
  /** The estimate of its words is as many times too high; a count, which it gets a step later, says so. */
  readonly overrated: number;
  /** Says what it has used so far, with its words and while it thinks; or now and then, with some words. */
  readonly reportsUsage: boolean;
  readonly reportsRarely: boolean;
  /** Words that it had written when it last said so. */
  reported: number;
  readonly writes: Writing;
  /** Words of the first piece, and when it came. */
  first: { readonly tokens: number; readonly atMs: number } | null;
  /** The most that this stream accounts for, of its answer, at once and as it goes on. */
  readonly atOnce: number;
  readonly judge: { usage: Usage | null; readonly text: { readonly estimateSinceReport: number } };
  readonly startedMs: number;
  /** No limit had room for a step when the hold was looked at. */
  wasFull: boolean;
  doing: "first" | "writing" | "thinking";
  untilMs: number;
  seen: number;
  unseen: number;
}

/** How a host writes: in small pieces, in a burst now and then, or all in one packet; `packet` and `burst` have so many tokens. */
interface Writing {
  readonly how: "pieces" | "fast" | "bursts" | "packet";
  readonly burst: number;
}

class HoldWorld {
  readonly counts: HoldCounts = {
    admitted: 0,
    refused: 0,
    complete: 0,
    stopped: 0,
    grown: 0,
    shrunk: 0,
    grownAtEnd: 0,
    short: 0,
  };
  private readonly random: Random;
  private nowMs = 0;
  private readonly clock = {
    now: () => (EPOCH + this.nowMs) as EpochMs,
    elapsedMs: () => this.nowMs,
    after: () => ({ cancel() {} }),
  };
  private readonly ledger: Ledger;
  private readonly expected = new ExpectedOutput();
  private readonly health: Health;
  /** What the auditor remembers of each key's answers. */
  private readonly answers = new Map<KeyId, number[]>();
  private readonly keys;
  private readonly runs;
  private readonly spentOf = new Map<AgentRun, number>();
  private readonly credit: NanoUsd;
  private readonly open = new Set<Work>();
  private readonly spent = new Map<KeyId, number>();
  private receipts = 0;
  /** Tokens a second, twice those of the fastest host that wrote for seconds. */
  private fastest = PACE;
  /** For a while all answers are short, and each comes in one packet. */
  private terse: boolean;

  constructor(seed: number) {
    const random = new Random(seed);
    this.random = random;
    this.health = new Health(this.clock);
    this.terse = random.chance(0.3);
    this.credit = (5e9 + random.below(20e9)) as NanoUsd;
    const held = new Map<string, number>();
    const append = (record: { kind: string; receipt?: string; held?: number; amount?: number }) => {
      if (record.kind === "hold") held.set(record.receipt!, record.amount!);
      if (record.kind !== "extend") return 0;
      this.counts[record.held! > held.get(record.receipt!)! ? "grown" : "shrunk"] += 1;
      held.set(record.receipt!, record.held!);
      return 0;
    };
    const sums = { spent: () => ZERO_USD, credited: () => this.credit };
    const holders = { current: (key: Key) => ({ key, balance: { priceList: null }, budgets: [] }) };
    this.ledger = new Ledger(this.clock, { append, withdraw: () => false }, sums, holders as never);
    this.keys = [1, 2, 3].map((n) =>
      keyOf({
        id: `key_${n}` as KeyId,
        rotationId: `key_${n}` as KeyId,
        balanceId: "bal_1" as BalanceId,
        dailyLimit: (random.chance(0.7) ? 1e9 + random.below(5e9) : null) as NanoUsd | null,
        monthlyLimit: null,
      }),
    );
    this.runs = ["a", "b"].map((name) => {
      const limits = { cap: (1e9 + random.below(8e9)) as NanoUsd, calls: null };
      const times = { startedAt: EPOCH as EpochMs, usedAt: EPOCH as EpochMs };
      const stored = { name, ...times, startedBy: null, revision: 0, ...limits };
      const run = new AgentRun("bal_1" as BalanceId, stored, async () => {});
      run.has(stored);
      return run;
    });
  }

  async step(): Promise<void> {
    const { random, open } = this;
    // Timers are in time.
    const dueMs = Math.min(...[...open].map(({ hold }) => hold.dueMs));
    this.nowMs = Math.min(this.nowMs + 10 + random.below(190), Math.max(this.nowMs + 1, dueMs), LAST_MS);
    if (random.chance(0.001)) this.terse = !this.terse;
    if (open.size < MAX_OPEN && random.chance(0.05)) await this.startRequest();
    for (const work of open) this.goOn(work);
  }

  finish(): void {
    for (const work of this.open) this.end(work, true);
    check(this.ledger.openHolds === 0, "holds are open although nothing is");
  }

  private async startRequest(): Promise<void> {
    const { random } = this;
    const key = random.pick(this.keys);
    const ceiling = random.chance(0.2) ? null : random.pick([2_000, 16_000, 64_000, LONGEST]);
    const promptBound = 1_000 + random.below(100_000);
    // A part of the input may come from the host's cache.
    const input = Math.ceil(promptBound / (1.3 + 4 * random.next()));
    const cacheRead = random.chance(0.5) ? random.below(input) : 0;
    const usage = { ...NO_TOKENS, input: input - cacheRead, cacheRead };
    const request = requestOf(promptBound, ceiling);
    const run = random.chance(0.4) ? random.pick(this.runs) : null;
    // The host's vocabulary needs up to half as many tokens again as the one that is used for counting.
    const counted = Math.min(promptBound, Math.ceil(input / (0.7 + 0.8 * random.next())));
    const admitted = await this.admit(key, run, request, counted);
    const atOnce = this.neededAtOnce(key, ceiling);
    if (typeof admitted === "string" || !("hold" in admitted)) {
      this.counts.refused += 1;
      const prompt = Math.min(promptBound, Math.ceil(counted * 1.5));
      const amount = costAtWorst(prompt, atOnce);
      const worst = costAtWorst(prompt, ceiling ?? DEFAULT_CEILING);
      check(
        amount > this.roomNextTo(key, run) || worst > this.leftOf(key, run),
        `refused although ${amount} of ${worst} fits: ${this.roomNextTo(key, run)} of ${this.leftOf(key, run)} is left`,
      );
      return;
    }
    this.counts.admitted += 1;
    const worst = costOf({ ...usage, output: ceiling ?? DEFAULT_CEILING }, ratesOf(input));
    const [spent, spentByAll] = [this.spent.get(key.id) ?? 0, this.spentByAll];
    check(
      key.dailyLimit === null || spent + worst <= key.dailyLimit,
      `${worst} does not fit next to ${spent}`,
    );
    check(spentByAll + worst <= this.credit, `${worst} is not covered next to ${spentByAll}`);
    if (run !== null)
      check(
        (this.spentOf.get(run) ?? 0) + worst <= run.limits!.cap!,
        `${worst} does not fit into the run ${run.name}`,
      );
    const { hold } = admitted;
    const startedMs = this.nowMs;
    const hides = random.chance(0.15) ? random.pick([1.5, 4, 20]) : 1;
    const work: Work = {
      hold,
      reservation: hold.reservation,
      request,
      longest: ceiling ?? LONGEST,
      usage,
      hides,
      overrated: random.chance(0.5) ? 1 : 1 + random.next() / 2,
      reportsUsage: hides === 1 && random.chance(0.2),
      reportsRarely: hides === 1 && random.chance(0.3),
      reported: 0,
      writes: this.terse
        ? { how: "packet", burst: 5 + random.below(60) }
        : {
            how: random.pick(["pieces", "pieces", "fast", "bursts", "packet"] as const),
            burst: random.pick([30, 3_000, 40_000]),
          },
      first: null,
      atOnce,
      judge: {
        usage: null,
        text: {
          get estimateSinceReport() {
            return (work.seen - work.reported) * work.overrated;
          },
        },
      },
      startedMs,
      wasFull: false,
      doing: "first",
      untilMs: startedMs + random.below(random.chance(0.2) ? FIRST_TOKEN_MS : 2_000),
      seen: 0,
      unseen: 0,
    };
    this.open.add(work);
  }

  private admit(
    key: Key,
    run: AgentRun | null,
    request: GenerationRequest,
    counted: number,
  ): ReturnType<typeof admit> {
    const { ledger, clock, expected, health } = this;
    const counting: PromptCountDeps = {
      count: async () => ({ tokens: counted, ms: 1 }),
      readUnpaid: async () => null,
      credit: () => this.credit,
      allowance: { take: () => ({ giveBack() {}, took() {} }) } as never,
      later: new DeferredCounts(),
    };
    const client = { blocks: () => ["192.0.2.0/24"], signal: new AbortController().signal };
    const admission: AdmissionRequest = {
      receipt: `rcpt_${this.receipts++}` as ReceiptId,
      key,
      budgets: [],
      priceList: null,
      tags: null,
      run,
      request,
      prompt: new PromptCount(request, key.balanceId, counting, client as never, FIRST_TOKEN_MS),
      plan: PLAN,
      allowances: [],
      settings: SETTINGS,
    };
    return admit(admission, { ledger, clock, expected, health, catalog: () => CATALOG });
  }

  /** As the decision has it, from the auditor's own memory. */
  private neededAtOnce(key: Key, named: number | null): number {
    const ceiling = named ?? DEFAULT_CEILING;
    const least = Math.max((FIRST_TOKEN_MS / 1_000) * PACE + 512, (named ?? LONGEST) / 8);
    const lately = (this.answers.get(key.id) ?? []).slice(-16).sort((a, b) => a - b);
    const learnt = lately.length < 4 ? 0 : 1.5 * lately[Math.floor(lately.length * 0.875)]!;
    return Math.min(ceiling, Math.ceil(Math.max(least, learnt)));
  }

  private goOn(work: Work): void {
    const { random, nowMs } = this;
    const { hold, judge } = work;
    const passedMs = Math.min(nowMs, work.untilMs) - (this.lastMs.get(work) ?? work.startedMs);
    this.lastMs.set(work, nowMs);
    if (work.doing !== "writing") work.unseen += Math.min(left(work), Math.max(0, (passedMs * PACE) / 1_000));
    this.judge(work);
    this.judgeSize(work);
    if (nowMs < work.untilMs) {
      if (work.doing !== "writing") {
        const reports = work.reportsUsage && work.doing === "thinking" && random.chance(0.3);
        if (reports) report(work);
        if (reports || hold.dueMs <= nowMs) this.check(work);
        return;
      }
    } else if (work.doing === "first") {
      const pace = this.expected.paceOf(ROUTE, this.health);
      const ahead = aheadOf(pace, this.expected.growth);
      const count = new RunningCount(textOf(work), { answer: async ([tokens]) => Number(tokens) });
      hold.begin(new RunningStream(work.request, judge, PRICE, pace, work.startedMs, ahead, count));
      judge.usage = this.firstReport(work);
      this.turn(work, "writing");
    } else this.turn(work, work.doing === "writing" ? "thinking" : "writing");
    if (work.doing === "writing") this.write(work);
    if (work.reportsUsage || (work.reportsRarely && random.chance(0.02))) report(work);
    if (!this.check(work)) return;
    const isAll = left(work) <= 30 || work.writes.how === "packet";
    if (isAll || random.chance(0.002)) this.end(work, true);
  }

  private write(work: Work): void {
    const { random, nowMs } = this;
    const { how, burst } = work.writes;
    const isBurst = how === "packet" || (how === "bursts" && work.first !== null && random.chance(0.05));
    const most = isBurst ? burst : 1 + random.below(how === "fast" ? 80 : 30);
    const isVerbose = how === "bursts" && work.request.maxOutputTokens === null;
    work.seen += isVerbose ? most : Math.min(most, Math.floor(left(work)));
    work.first ??= { tokens: work.seen, atMs: nowMs };
  }

  /** A hold is never above the worst case of the longest answer, or what was written, nor above what its stream explains. */
  private judgeSize({ reservation, request, seen, overrated, longest, startedMs, atOnce }: Work): void {
    const written = Math.ceil(seen * overrated);
    const silentlyS = (this.nowMs - startedMs + CHECK_EVERY_MS) / 1_000;
    const explained = Math.max(atOnce, written + silentlyS * Math.min(this.fastest, MAX_PACE) + 512 + STEP);
    const most = costAtWorst(request.promptBound, Math.ceil(Math.min(explained, Math.max(longest, written))));
    check(reservation.held <= most, `${reservation.held} is held, of ${most} at most`);
  }

  /** Whether it goes on. */
  private check(work: Work): boolean {
    const goesOn = work.hold.covers(Math.ceil(work.seen * work.overrated), this.nowMs);
    work.wasFull = !this.ledger.coversMore(work.reservation, ONE_STEP);
    if (goesOn) this.judge(work);
    else this.stop(work);
    return goesOn;
  }

  private readonly lastMs = new WeakMap<Work, number>();

  private turn(work: Work, doing: Work["doing"]): void {
    work.doing = doing;
    // Who thinks is silent for longer than between two words.
    const [least, mean] = doing === "writing" ? [0, 10_000] : [250, 4_000];
    work.untilMs = this.nowMs + least + this.random.exponential(mean);
  }

  /** The truth, nothing, or a zero. */
  private firstReport({ usage }: Work): Usage | null {
    const { random } = this;
    if (random.chance(0.3)) return null;
    return random.chance(0.3) ? { ...NO_TOKENS } : { ...usage, output: 0 };
  }

  private owed(work: Work): NanoUsd {
    return costOf(usedBy(work), ratesUsed(work));
  }

  /** The hold covers what the host has done; where limits were full at the last look, it may be short by one. */
  private judge(work: Work): void {
    const { reservation, hides } = work;
    const short = this.owed(work) - reservation.held;
    if (short <= 0 || hides > 1) return;
    check(
      work.wasFull,
      `${reservation.request.receipt} is owed ${short} beyond its hold, although there is room`,
    );
    check(short <= mostUncovered(work), `${reservation.request.receipt} is owed ${short} beyond its hold`);
  }

  private stop(work: Work): void {
    this.counts.stopped += 1;
    const room = this.roomFor(work.reservation);
    check(room < ONE_STEP, `${work.reservation.request.receipt} was stopped, with room for ${room}`);
    this.end(work, false);
  }

  private end(work: Work, isComplete: boolean): void {
    const { reservation, hides } = work;
    const { key, run } = reservation.request;
    const tokens = usedBy(work);
    const rates = ratesUsed(work);
    const cost = costOf(tokens, rates);
    const [before, room] = [reservation.held, this.roomFor(reservation)];
    const ending = {
      state: "settled",
      cost,
      within: (most: NanoUsd) => costOf(within(tokens, rates, most), rates),
      writeOff: false,
      rateTokens: 0,
      allowanceUsed: false,
    } as const;
    const { charged, lost } = this.ledger.settle(reservation, ending, () => "{}");
    this.open.delete(work);
    if (isComplete) this.counts.complete += 1;
    this.expected.note(key.rotationId, MODEL.id, tokens.output);
    this.answers.set(key.id, [...(this.answers.get(key.id) ?? []), tokens.output].slice(-16));
    if (isComplete && work.first !== null) this.measure(work, work.first);
    check(charged + lost === cost, `${charged} and ${lost} are not ${cost}`);
    check(lost === 0 || cost - before > room, `${lost} was lost, although limits had room for ${room}`);
    check(lost <= MAX_LOST * before, `${lost} was lost of a hold of ${before}`);
    check(hides > 1 || lost <= mostUncovered(work), `${lost} was lost of ${reservation.request.receipt}`);
    if (lost > 0) this.counts.short += 1;
    if (cost > before && lost === 0) this.counts.grownAtEnd += 1;
    const spent = (this.spent.get(key.id) ?? 0) + charged;
    this.spent.set(key.id, spent);
    check(
      key.dailyLimit === null || spent <= key.dailyLimit,
      `${key.id} spent ${spent} of ${key.dailyLimit}`,
    );
    check(this.spentByAll <= this.credit, `${this.spentByAll} is spent of ${this.credit}`);
    if (!run) return;
    const spentOf = (this.spentOf.get(run) ?? 0) + charged;
    this.spentOf.set(run, spentOf);
    check(spentOf <= run.limits!.cap!, `the run ${run.name} spent ${spentOf} of ${run.limits!.cap}`);
  }

  private measure(work: Work, first: { readonly tokens: number; readonly atMs: number }): void {
    const tokens = Math.ceil((work.seen - first.tokens) * work.overrated);
    const ms = this.nowMs - first.atMs;
    const by = work.reservation.request.key.balanceId;
    this.health.streamEnded(ROUTE, { kind: "complete", tokens, ms, by });
    if (ms >= LONG_MS) this.fastest = Math.max(this.fastest, (2_000 * tokens) / ms);
  }

  /** What the limits of its key and its run have left next to what is spent and held. */
  private roomFor({ request: { key, run } }: Reservation): number {
    return this.roomNextTo(key, run ?? null);
  }

  private leftOf(key: Key, run: AgentRun | null): number {
    const ofKey = (key.dailyLimit ?? Infinity) - (this.spent.get(key.id) ?? 0);
    const ofRun = run ? run.limits!.cap! - (this.spentOf.get(run) ?? 0) : Infinity;
    return Math.min(this.credit - this.spentByAll, ofKey, ofRun);
  }

  private roomNextTo(key: Key, run: AgentRun | null): number {
    let [heldByAll, held, heldOfRun] = [0, 0, 0];
    for (const { reservation } of this.open) {
      const { request } = reservation;
      heldByAll += reservation.held;
      if (request.key.id === key.id) held += reservation.held;
      if (run !== null && request.run === run) heldOfRun += reservation.held;
    }
    const ofKey = (key.dailyLimit ?? Infinity) - (this.spent.get(key.id) ?? 0) - held;
    const ofRun = run ? run.limits!.cap! - (this.spentOf.get(run) ?? 0) - heldOfRun : Infinity;
    return Math.min(this.credit - this.spentByAll - heldByAll, ofKey, ofRun);
  }

  private get spentByAll(): number {
    let sum = 0;
    for (const spent of this.spent.values()) sum += spent;
    return sum;
  }
}

/** Tokens that it can still show, or think at the pace that holds reckon with. */
const left = ({ longest, hides, seen, unseen }: Work): number => Math.max(0, longest / hides - seen - unseen);

/** Its words, as they are estimated, and as they are counted. */
const textOf = (work: Work): ConstructorParameters<typeof RunningCount>[0] => ({
  get moment() {
    return { length: work.seen, unkept: 0, estimate: work.seen * work.overrated };
  },
  get reportMoment() {
    return { length: work.reported, unkept: 0, estimate: work.reported * work.overrated };
  },
  since: ({ length }) => ({ texts: [`${work.seen - length}`], unkept: 0 }),
});

function report(work: Work): void {
  work.judge.usage = usedBy(work);
  work.reported = work.seen;
}

/** An answer longer than its model's longest is billed for its visible text, without reasoning. */
const usedBy = ({ usage, hides, seen, unseen, longest }: Work): Tokens => ({
  ...usage,
  output: Math.min(Math.floor((seen + unseen) * hides), Math.max(longest, seen)),
});

const ratesUsed = ({ usage }: Work): Rates => ratesOf(usage.input + usage.cacheRead);

const requestOf = (promptBound: number, ceiling: number | null): GenerationRequest =>
  ({
    surface: "messages",
    requestedModel: MODEL.id,
    body: { length: promptBound } as Uint8Array,
    json: {},
    stream: true,
    choices: 1,
    maxOutputTokens: ceiling,
    promptBound,
    promptEstimate: Math.ceil(promptBound / 4),
    mediaTokens: 0,
    promptHasFiles: false,
    promptUnseen: false,
    promptWithoutAudio: null,
    promptRetentions: {},
    answersInAudio: false,
  }) satisfies Partial<GenerationRequest> as GenerationRequest;

const EPOCH = Date.UTC(2026, 10, 22);
/** So that all of it is of one day. */
const LAST_MS = 86_000_000;
/** At the most expensive that a prompt can be. */
const costAtWorst = (cacheWrite: number, output: number): number =>
  costOf({ ...NO_TOKENS, cacheWrite, output }, ratesOf(cacheWrite + FRAMING));
const tokensNano = (tokens: number): NanoUsd => costOf({ ...NO_TOKENS, output: tokens }, RAISED);
/** A limit that has room for no step is full. */
const ONE_STEP = tokensNano(64);
/** An eighth of what an answer can come to is always held. */
const MAX_LOST = 7;
/** A full limit has no room for a burst that nobody could prefetch. */
const mostUncovered = ({ writes: { how, burst } }: Work): number =>
  ONE_CHECK + (how === "packet" || how === "bursts" ? tokensNano(burst) : 0);
/** What a host does between two looks, and the words of one piece. */
const ONE_CHECK = tokensNano((PACE * (CHECK_EVERY_MS + 250)) / 1_000 + 80);
