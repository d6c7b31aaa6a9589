import type { Price } from "../../src/catalog/catalog.ts";
import { aheadOf, ExpectedOutput, LOOK_EVERY_MS } from "../../src/generation/expected-output.ts";
import { Hold, RunningStream } from "../../src/generation/hold.ts";
import { costOf, NO_TOKENS, worstCase } from "../../src/ledger/charge.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { Reservation, type Want } from "../../src/ledger/reservation.ts";
import type { Candidate } from "../../src/routing/candidate.ts";
import type { GenerationRequest, Usage } from "../../src/surfaces/surface.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";
import { check } from "./auditor.ts";
import { Random } from "./random.ts";

/**
 * Streams of hosts that write, and think unseen, up to the pace that holds reckon with, on keys whose caps they
 * fill. The auditor knows what each host has really done at each moment. While a limit has room, the hold covers
 * that at every moment, and nothing is lost; of a stream that could not go on, no more is lost than a host does
 * between two looks; no cap is crossed, and nobody is admitted whose worst case does not fit beside what is spent.
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
}

const PRICE = { input: 3e9, output: 15e9, cacheRead: 0.3e9, cacheWrite: 3.75e9 } as Price;
const FIRST_TOKEN_MS = 30_000;
const PACE = 250;
const MODEL = "sim/thinker";
const STOPS = [{ model: { id: MODEL }, route: {} }] as unknown as readonly Candidate[];
const ROUTE_STATE = { speed: () => null };
const MOST_OPEN = 12;

/** One host at work. */
interface Work {
  readonly hold: Hold;
  readonly reservation: Reservation;
  readonly ceiling: number;
  readonly usage: Usage & { readonly output: number };
  readonly promptBound: number;
  /** Sends what it has used so far with its words. */
  readonly tells: boolean;
  readonly judge: { usage: Usage | null };
  readonly startedMs: number;
  /** No limit had room for a step when the hold was looked at. */
  wasFull: boolean;
  doing: "first" | "writing" | "thinking";
  untilMs: number;
  seen: number;
  unseen: number;
}

class HoldWorld {
  readonly counts: HoldCounts = { admitted: 0, refused: 0, complete: 0, stopped: 0, grown: 0, shrunk: 0 };
  private readonly random: Random;
  private nowMs = 0;
  private readonly clock = {
    now: () => (EPOCH + this.nowMs) as EpochMs,
    elapsedMs: () => this.nowMs,
    after: () => ({ cancel() {} }),
  };
  private readonly ledger: Ledger;
  private readonly expected = new ExpectedOutput();
  private readonly keys;
  private readonly credit: NanoUsd;
  private readonly open = new Set<Work>();
  private readonly spent = new Map<KeyId, number>();
  private receipts = 0;
  private lost = 0;

  constructor(seed: number) {
    const random = new Random(seed);
    this.random = random;
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
    const holders = { current: (key: Want["key"]) => ({ key, budgets: [] }) };
    this.ledger = new Ledger(this.clock, { append, withdraw: () => false }, sums, holders as never);
    this.keys = [1, 2, 3].map((n) =>
      keyOf({
        id: `key_${n}` as KeyId,
        lineage: `key_${n}` as KeyId,
        balanceId: "bal_1" as BalanceId,
        dailyLimit: (random.chance(0.7) ? 1e9 + random.below(5e9) : null) as NanoUsd | null,
        monthlyLimit: null,
      }),
    );
  }

  async step(): Promise<void> {
    const { random, open } = this;
    // Timers are in time.
    const dueMs = Math.min(...[...open].map(({ hold }) => hold.dueMs));
    this.nowMs = Math.min(this.nowMs + 10 + random.below(190), Math.max(this.nowMs + 1, dueMs), DAY_MS);
    if (open.size < MOST_OPEN && random.chance(0.05)) await this.ask();
    for (const work of open) this.goOn(work);
  }

  finish(): void {
    for (const work of this.open) this.end(work, true);
    check(this.ledger.openHolds === 0, "holds are open although nothing is");
  }

  private async ask(): Promise<void> {
    const { random, ledger, expected, clock } = this;
    const key = random.pick(this.keys);
    const ceiling = random.pick([2_000, 16_000, 64_000]);
    const promptBound = 1_000 + random.below(100_000);
    const { lineage } = key;
    const firstTokenMs = FIRST_TOKEN_MS;
    const heldOutput = expected.atOnce(ceiling, ceiling, {
      lineage,
      candidates: STOPS,
      firstTokenMs,
      routeState: ROUTE_STATE,
    });
    const prompt = { bound: promptBound, cachedFor1h: false, hasAudio: false };
    const worst = worstCase(prompt, ceiling, PRICE);
    const want: Want = {
      receipt: `rcpt_${this.receipts++}` as ReceiptId,
      at: clock.now(),
      key,
      budgets: [],
      allowances: [],
      rpmLimit: null,
      freeRpmLimit: null,
      tpmLimit: null,
      amount: worstCase(prompt, heldOutput, PRICE),
      worst,
      rateTokens: 0,
      most: { amount: worst, tokens: promptBound + ceiling },
      promptTokens: 0,
      price: PRICE,
      about: { surface: "messages", model: MODEL, stream: true },
    };
    const reservation = ledger.admit(await ledger.lane(key, [], [], want.at), want);
    if (!(reservation instanceof Reservation)) {
      this.counts.refused += 1;
      return;
    }
    this.counts.admitted += 1;
    const [spent, spentByAll] = [this.spent.get(key.id) ?? 0, this.spentByAll];
    check(
      key.dailyLimit === null || spent + worst <= key.dailyLimit,
      `${worst} does not fit beside ${spent}`,
    );
    check(spentByAll + worst <= this.credit, `${worst} is not covered beside ${spentByAll}`);
    // Of what it reads, a part may come from its cache.
    const input = Math.ceil(promptBound / (1.3 + 4 * random.next()));
    const cacheRead = random.chance(0.5) ? random.below(input) : 0;
    const usage = { ...NO_TOKENS, input: input - cacheRead, cacheRead };
    const hold = new Hold(ledger, reservation, prompt, heldOutput, ceiling, true, expected.growth);
    const startedMs = this.nowMs;
    this.open.add({
      hold,
      reservation,
      ceiling,
      usage,
      promptBound,
      tells: random.chance(0.2),
      judge: { usage: null },
      startedMs,
      wasFull: false,
      doing: "first",
      untilMs: startedMs + random.below(random.chance(0.2) ? FIRST_TOKEN_MS : 2_000),
      seen: 0,
      unseen: 0,
    });
    // Counted soon after it was admitted.
    if (random.chance(0.5)) hold.promptHas(input + random.below(Math.max(1, promptBound - input)));
  }

  private goOn(work: Work): void {
    const { random, nowMs } = this;
    const { hold, judge } = work;
    const passedMs = Math.min(nowMs, work.untilMs) - (this.lastMs.get(work) ?? work.startedMs);
    this.lastMs.set(work, nowMs);
    if (work.doing !== "writing") work.unseen += Math.min(left(work), Math.max(0, (passedMs * PACE) / 1_000));
    this.judge(work);
    if (nowMs < work.untilMs) {
      if (work.doing !== "writing") {
        if (hold.dueMs <= nowMs) this.look(work);
        return;
      }
    } else if (work.doing === "first") {
      const price = PRICE;
      const request = { promptEstimate: work.promptBound / 4, promptUnseen: false, promptBesideAudio: null };
      const ahead = aheadOf(PACE, this.expected.growth);
      hold.begin(new RunningStream(request as GenerationRequest, judge, price, PACE, work.startedMs, ahead));
      judge.usage = this.firstTold(work);
      this.turn(work, "writing");
    } else this.turn(work, work.doing === "writing" ? "thinking" : "writing");
    if (work.doing === "writing") work.seen += Math.min(1 + random.below(30), Math.floor(left(work)));
    if (work.tells) judge.usage = { ...work.usage, output: Math.floor(work.seen + work.unseen) };
    if (!this.look(work)) return;
    if (left(work) <= 30 || random.chance(0.002)) this.end(work, true);
  }

  /** Whether it goes on. */
  private look(work: Work): boolean {
    const goesOn = work.hold.covers(Math.ceil(work.seen), this.nowMs);
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
  private firstTold({ usage }: Work): Usage | null {
    const { random } = this;
    if (random.chance(0.3)) return null;
    return random.chance(0.3) ? { ...NO_TOKENS } : { ...usage, output: 0 };
  }

  private owed({ usage, seen, unseen }: Work): NanoUsd {
    return costOf({ ...usage, output: Math.floor(seen + unseen) }, PRICE);
  }

  /** The hold covers what the host has done; where limits were full at the last look, it may be short by one. */
  private judge(work: Work): void {
    const { reservation } = work;
    const short = this.owed(work) - reservation.held;
    if (short <= 0) return;
    check(
      work.wasFull,
      `${reservation.want.receipt} is owed ${short} beyond its hold, although there is room`,
    );
    check(short <= ONE_LOOK, `${reservation.want.receipt} is owed ${short} beyond its hold`);
  }

  private stop(work: Work): void {
    this.counts.stopped += 1;
    this.end(work, false);
  }

  private end(work: Work, isComplete: boolean): void {
    const { reservation } = work;
    const { key } = reservation.want;
    const output = Math.floor(work.seen + work.unseen);
    const cost = this.owed(work);
    const ending = { state: "settled", cost, writeOff: false, rateTokens: 0, allowanceUsed: false } as const;
    const { charged, lost } = this.ledger.settle(reservation, ending, () => "{}");
    this.open.delete(work);
    if (isComplete) this.counts.complete += 1;
    this.expected.note(key.lineage, MODEL, output);
    this.lost += lost;
    check(lost <= ONE_LOOK, `${lost} was lost of ${reservation.want.receipt}`);
    const spent = (this.spent.get(key.id) ?? 0) + charged;
    this.spent.set(key.id, spent);
    check(
      key.dailyLimit === null || spent <= key.dailyLimit,
      `${key.id} spent ${spent} of ${key.dailyLimit}`,
    );
    check(this.spentByAll <= this.credit, `${this.spentByAll} is spent of ${this.credit}`);
  }

  private get spentByAll(): number {
    let sum = 0;
    for (const spent of this.spent.values()) sum += spent;
    return sum;
  }
}

/** Of its ceiling. */
const left = ({ ceiling, seen, unseen }: Work): number => ceiling - seen - unseen;

const EPOCH = Date.UTC(2026, 10, 22);
/** So that all of it is of one day. */
const DAY_MS = 86_000_000;
const tokensNano = (tokens: number): NanoUsd => costOf({ ...NO_TOKENS, output: tokens }, PRICE);
/** A limit that has room for no step is full. */
const ONE_STEP = tokensNano(64);
/** What a host does between two looks, and the words of one piece. */
const ONE_LOOK = tokensNano((PACE * (LOOK_EVERY_MS + 250)) / 1_000 + 64);
