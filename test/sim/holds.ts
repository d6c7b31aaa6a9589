import { catalogOf, type Model, type Route } from "../../src/catalog/catalog.ts";
import { NO_TOKENS } from "../../src/catalog/tokens.ts";
import type { Key } from "../../src/customers/keys/key.ts";
import { AgentRun } from "../../src/customers/keys/runs.ts";
import { admit } from "../../src/generation/admission.ts";
import type { AdmissionRequest } from "../../src/generation/admission-request.ts";
import { aheadOf, ExpectedOutput } from "../../src/generation/expected-output.ts";
import { DeferredCounts, PromptCount, type PromptCountDeps } from "../../src/generation/prompt-count.ts";
import { RunningCount } from "../../src/generation/stream/running-count.ts";
import { RunningStream } from "../../src/generation/stream/running-stream.ts";
import type { FailoverLimits } from "../../src/hosts/failover.ts";
import { costOf, within } from "../../src/ledger/charge.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { Health } from "../../src/routing/health.ts";
import type { Plan } from "../../src/routing/plan.ts";
import type { GenerationRequest, Usage } from "../../src/surfaces/surface.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd } from "../fakes/reservation.ts";
import {
  DEFAULT_CEILING,
  FIRST_TOKEN_MS,
  HoldAuditor,
  LONGEST,
  ONE_STEP,
  PACE,
  PRICE,
  ratesUsed,
  usedBy,
  type Work,
} from "./hold-auditor.ts";
import { HOLD_MUTANTS } from "./mutants/holds.ts";
import type { Random } from "./random.ts";
import { scenario } from "./scenario.ts";
import type { Player, World } from "./world.ts";

const COUNTS = [
  "admitted",
  "refused",
  "complete",
  "stopped",
  // Times that a hold grew, and shrank.
  "grown",
  "shrunk",
  // Ends that took more than was held, and ends for which limits had no room.
  "grownAtEnd",
  "short",
] as const;

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
export const HOLDS = scenario({
  options: { steps: 4_000 },
  seeds: 250,
  mutants: { rules: HOLD_MUTANTS },
  counts: COUNTS,
  steps: ({ steps }) => steps,
  fill: (world) => void world.joins(new Streams(world)),
  kept: "No cap crossed, nothing owed beyond a hold or lost while there was room.",
});

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
const SETTINGS = {
  attempts: { firstTokenMs: FIRST_TOKEN_MS } as FailoverLimits,
  defaultMaxOutputTokens: DEFAULT_CEILING,
  openTierRpm: null,
  sellsCredit: false,
  contact: null,
  dashboardUrl: "http://localhost/dashboard",
};

class Streams implements Player {
  private readonly random: Random;
  private readonly clock;
  private readonly ledger: Ledger;
  private readonly expected = new ExpectedOutput();
  private readonly health: Health;
  private readonly keys;
  private readonly runs;
  private readonly credit: NanoUsd;
  private readonly auditor: HoldAuditor;
  private receipts = 0;
  /** For a while all answers are short, and each comes in one packet. */
  private terse: boolean;

  constructor(private readonly world: World<(typeof COUNTS)[number]>) {
    const { random, time } = world;
    this.random = random;
    // Timers are in time, so nothing has to wait for one.
    this.clock = { ...time.life().clock, after: () => ({ cancel() {} }) };
    this.health = new Health(this.clock);
    this.terse = random.chance(0.3);
    this.credit = (5e9 + random.below(20e9)) as NanoUsd;
    const held = new Map<string, number>();
    const append = (record: { kind: string; receipt?: string; held?: number; amount?: number }) => {
      if (record.kind === "hold") held.set(record.receipt!, record.amount!);
      if (record.kind !== "extend") return 0;
      world.counts[record.held! > held.get(record.receipt!)! ? "grown" : "shrunk"] += 1;
      held.set(record.receipt!, record.held!);
      return 0;
    };
    const sums = { spent: () => ZERO_USD, credited: () => this.credit };
    const holders = { current: (key: Key) => ({ key, balance: { priceList: null }, budgets: [] }) };
    this.ledger = new Ledger(this.clock, { append, withdraw: () => false }, sums, holders as never);
    this.auditor = world.judgedBy(new HoldAuditor(this.credit, () => this.ledger.openHolds));
    this.keys = [1, 2, 3].map((n) =>
      keyOf({
        id: `key_${n}` as KeyId,
        rotationId: `key_${n}` as KeyId,
        balanceId: "bal_1" as BalanceId,
        dailyLimit: (random.chance(0.7) ? 1e9 + random.below(5e9) : null) as NanoUsd | null,
        monthlyLimit: null,
      }),
    );
    const now = this.clock.now();
    this.runs = ["a", "b"].map((name) => {
      const limits = { cap: (1e9 + random.below(8e9)) as NanoUsd, calls: null };
      const times = { startedAt: now, usedAt: now };
      const stored = { name, ...times, startedBy: null, revision: 0, ...limits };
      const run = new AgentRun("bal_1" as BalanceId, stored, async () => {});
      run.has(stored);
      return run;
    });
  }

  async act(): Promise<void> {
    const { random, nowMs } = this;
    const { open } = this.auditor;
    // Holds are looked at in time.
    const dueMs = Math.min(...[...open].map(({ hold }) => hold.dueMs));
    const nextMs = Math.min(nowMs + 10 + random.below(190), Math.max(nowMs + 1, dueMs), LAST_MS);
    this.world.skip(nextMs - nowMs);
    if (random.chance(0.001)) this.terse = !this.terse;
    if (open.size < MAX_OPEN && random.chance(0.05)) await this.startRequest();
    for (const work of open) this.goOn(work);
  }

  end(): void {
    for (const work of this.auditor.open) this.finish(work, true);
  }

  private get nowMs(): number {
    return this.world.time.elapsedMs();
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
    const { auditor, world } = this;
    if (typeof admitted === "string" || !("hold" in admitted)) {
      world.counts.refused += 1;
      auditor.refused(key, run, Math.min(promptBound, Math.ceil(counted * 1.5)), ceiling);
      return;
    }
    world.counts.admitted += 1;
    auditor.admitted(key, run, { ...usage, output: 0 }, ceiling);
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
      atOnce: auditor.neededAtOnce(key, ceiling),
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
    auditor.open.add(work);
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

  private goOn(work: Work): void {
    const { random, nowMs } = this;
    const { hold, judge } = work;
    const passedMs = Math.min(nowMs, work.untilMs) - (this.lastMs.get(work) ?? work.startedMs);
    this.lastMs.set(work, nowMs);
    if (work.doing !== "writing") work.unseen += Math.min(left(work), Math.max(0, (passedMs * PACE) / 1_000));
    this.auditor.covered(work);
    this.auditor.sized(work, nowMs);
    if (nowMs < work.untilMs) {
      if (work.doing !== "writing") {
        const reports = work.reportsUsage && work.doing === "thinking" && random.chance(0.3);
        if (reports) report(work);
        if (reports || hold.dueMs <= nowMs) this.goesOn(work);
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
    if (!this.goesOn(work)) return;
    const isAll = left(work) <= 30 || work.writes.how === "packet";
    if (isAll || random.chance(0.002)) this.finish(work, true);
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

  /** Whether it goes on. */
  private goesOn(work: Work): boolean {
    const goesOn = work.hold.covers(Math.ceil(work.seen * work.overrated), this.nowMs);
    work.wasFull = !this.ledger.coversMore(work.reservation, ONE_STEP);
    if (goesOn) this.auditor.covered(work);
    else {
      this.world.counts.stopped += 1;
      this.auditor.stopped(work);
      this.finish(work, false);
    }
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

  private finish(work: Work, isComplete: boolean): void {
    const { auditor } = this;
    const { counts } = this.world;
    const { reservation } = work;
    const tokens = usedBy(work);
    const rates = ratesUsed(work);
    const cost = costOf(tokens, rates);
    const [held, room] = [reservation.held, auditor.roomFor(reservation)];
    const ending = reservationEnd(cost, {
      within: (most) => costOf(within(tokens, rates, most), rates),
    });
    const { charged, lost } = this.ledger.settle(reservation, ending, () => "{}");
    if (isComplete) counts.complete += 1;
    this.expected.note(reservation.request.key.rotationId, MODEL.id, tokens.output);
    if (isComplete && work.first !== null) this.measure(work, work.first);
    auditor.ended(work, { charged, lost, held, room });
    if (lost > 0) counts.short += 1;
    if (cost > held && lost === 0) counts.grownAtEnd += 1;
  }

  private measure(work: Work, first: { readonly tokens: number; readonly atMs: number }): void {
    const tokens = Math.ceil((work.seen - first.tokens) * work.overrated);
    const ms = this.nowMs - first.atMs;
    const by = work.reservation.request.key.balanceId;
    this.health.streamEnded(ROUTE, { kind: "complete", tokens, ms, by });
    this.auditor.measured(tokens, ms);
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

/** So that all of it is of one day. */
const LAST_MS = 43_000_000;
