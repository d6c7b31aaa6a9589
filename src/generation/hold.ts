import type { Price, Rates } from "../catalog/price.ts";
import { promptOf } from "../catalog/tokens.ts";
import {
  costOf,
  NO_PROMPT,
  type PromptCharge,
  ratesFor,
  withAudioAnswer,
  worstCase,
} from "../ledger/charge.ts";
import type { GrantAnswer } from "../ledger/grants.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Reservation } from "../ledger/reservation.ts";
import type { Shortfall } from "../ledger/shortfall.ts";
import type { Usage } from "../surfaces/surface.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { completed, reachedRates } from "./billed-tokens.ts";
import type { HoldGrowth } from "./expected-output.ts";
import type { RunningStream } from "./stream/running-stream.ts";

/**
 * The money that one request holds, as long as it is open: its prompt, and `output` tokens of its answer. It gives
 * back what turns out not to be needed, when the prompt was counted, when it is known who serves and what they say
 * that the prompt has. And as the answer approaches what is held for it, it takes more, in steps, from what the
 * limits have left at that moment.
 *
 * It always covers what the host may have written by now: the tokens that came, and for each stretch in which none
 * came what a host can think meanwhile, unseen.
 */
export class Hold {
  private price: Price;
  /** The rates of the step that the prompt can reach, as far as is known. */
  private rates: Rates;
  private promptCost: NanoUsd;
  /** Tokens that the prompt has at most. */
  private bound: number;
  private isPromptReported = false;
  /** Several models may have a part in the answer: what one of them reports says nothing of the others. */
  private isShared = false;
  /** What is missing since the host reported a prompt of a higher step. */
  private behind = ZERO_USD;
  private step: number;
  /** A hold never exceeds the ceiling that the client named; without one, what was written counts on. */
  private readonly most: number;
  private readonly grows: boolean;
  private stream: RunningStream | null = null;
  /** Tokens that the host may have written when it could not grow. */
  private written = 0;
  /** Why it could not grow the last time; null while it could. */
  shortfall: Shortfall | null = null;
  /** Others may take what was there, so often before it grows again. */
  private rounds = MAX_ROUNDS;

  constructor(
    private readonly ledger: Ledger,
    readonly reservation: Reservation,
    private readonly prompt: PromptCharge,
    /** Tokens of the answer, of all choices together, that are held. */
    private output: number,
    /** Tokens that it can have: the ceiling that the client named, or else the model's longest answer. */
    private readonly longest: number,
    isCeilingNamed: boolean,
    private readonly growth: HoldGrowth,
  ) {
    this.step = growth.stepTokens;
    this.price = reservation.request.price;
    this.bound = prompt.bound;
    this.rates = reachedRates(this.price, prompt.bound);
    this.promptCost = worstCase(prompt, 0, this.rates);
    this.most = isCeilingNamed ? longest : Number.POSITIVE_INFINITY;
    this.grows = reservation.request.amount > 0 && output < this.most;
  }

  get coversLongest(): boolean {
    return this.output >= this.longest || this.rates.output === 0;
  }

  /** Takes all that the answer can have, if there is room for `plenty` times what is missing. */
  coverLongest(plenty: number): boolean {
    const { ledger, reservation, longest, output, rates } = this;
    const beyond = worstCase(NO_PROMPT, longest - output, rates);
    if (!ledger.coversMore(reservation, (beyond * plenty) as NanoUsd)) return false;
    if (!ledger.extend(reservation, beyond)) return false;
    this.output = longest;
    return true;
  }

  /** The prompt takes a notable part of what some limit has left. */
  get isPromptLarge(): boolean {
    const most = (this.promptCost * LARGE_SHARE) as NanoUsd;
    return most > 0 && !this.ledger.coversMore(this.reservation, most);
  }

  promptHas(tokens: number): void {
    // What the host itself reports is exact.
    if (this.isPromptReported) return;
    const bound = Math.min(tokens, this.bound);
    this.bound = bound;
    const rates = reachedRates(this.price, bound);
    this.fitPrompt(worstCase({ ...this.prompt, bound }, 0, rates), rates);
  }

  /** The answer has started, and no other host will be tried: from here on it is held at the price of who serves. */
  begin(stream: RunningStream): this {
    this.stream = stream;
    const { request, price } = stream;
    this.isShared = stream.isShared;
    if (this.isShared) return this;
    this.price = request.answersInAudio ? withAudioAnswer(price) : price;
    this.promptHas(this.prompt.bound);
    return this;
  }

  /** Whether what the host may have written by now is held; else the stream has to stop. */
  covers(deliveredTokens: number, nowMs: number): boolean {
    const { reservation, stream } = this;
    if (stream === null || reservation.request.amount === 0) return true;
    stream.update(deliveredTokens, nowMs, this.longest);
    const { usage } = stream.judge;
    if (usage !== stream.usage) this.onUsage(usage, stream);
    if (this.behind > 0 && !this.catchUp()) return false;
    return !this.grows || this.growTo(stream.written(nowMs, this.longest), stream.ahead);
  }

  /**
   * Resolves when a grant of other nodes, or an exact count of what came, may have made room. Null when neither
   * is under way.
   */
  more(): Promise<void> | null {
    const { stream, reservation, rates } = this;
    if (stream === null || this.rounds === 0) return null;
    stream.pause();
    const counting = stream.counting;
    if (counting !== null) return counting;
    const missing = Math.max(this.growth.leastStepTokens, this.written - this.output);
    const beyond = this.behind > 0 ? this.behind : worstCase(NO_PROMPT, missing, rates);
    const pending = this.ledger.replenishHold(reservation, beyond);
    return pending === null ? null : this.awaitGrants(pending);
  }

  /** Holds all that an ended answer costs; where there is too little here, requests room from others first. */
  cover(cost: NanoUsd): Promise<void> | null {
    const { ledger, reservation } = this;
    const beyond = reservation.beyond(cost);
    if (beyond <= 0 || ledger.extend(reservation, beyond) || this.rounds === 0) return null;
    const pending = ledger.replenishHold(reservation, beyond);
    return pending === null ? null : this.awaitGrants(pending).then(() => this.cover(cost) ?? undefined);
  }

  private async awaitGrants(pending: Promise<GrantAnswer>): Promise<void> {
    this.rounds = (await pending) === "room" ? this.rounds - 1 : 0;
  }

  /** When to check again although nothing came. */
  get dueMs(): number {
    return this.stream === null || this.output >= this.longest || !this.grows ? Infinity : this.stream.dueMs;
  }

  private growTo(written: number, ahead: number): boolean {
    const { stepTokens, leastStepTokens } = this.growth;
    // The worst case of the longest answer, unless the host wrote more than its model is known to write.
    const bound = Math.min(this.most, Math.max(this.longest, written));
    const target = Math.min(bound, written + ahead);
    while (this.output < target) {
      const step = Math.min(this.step, bound - this.output);
      if (this.ledger.extend(this.reservation, worstCase(NO_PROMPT, step, this.rates))) {
        this.output += step;
        this.step = Math.min(stepTokens, this.step * 2);
        this.rounds = MAX_ROUNDS;
      } else if (this.step > leastStepTokens) this.step /= 2;
      // An answer should not stop while there is credit for more of it.
      else {
        this.stream?.countExactly();
        this.written = written;
        this.shortfall = this.ledger.growthShortfall(
          this.reservation,
          worstCase(NO_PROMPT, step, this.rates),
        );
        return written < this.output;
      }
    }
    return true;
  }

  private onUsage(usage: Usage | null, stream: RunningStream): void {
    stream.usage = usage;
    if (usage === null) return;
    const { request } = stream;
    const tokens = promptOf(usage);
    // Some hosts begin with a zero and tell the truth at the end.
    const isPlausible =
      tokens >= request.promptEstimate / MIN_SHARE && tokens <= this.prompt.bound && !request.promptUnseen;
    if (!isPlausible || this.isShared) return;
    this.isPromptReported = true;
    const rates = ratesFor(this.price, usage);
    const read = { ...completed(usage, request), output: 0, audioOutput: 0, reasoning: 0 };
    this.fitPrompt(costOf(read, rates), rates);
  }

  private fitPrompt(cost: NanoUsd, rates: Rates): void {
    const { ledger, reservation, output } = this;
    if (!reservation.isOpen || reservation.request.amount === 0) return;
    const isHigherStep = (rates.prompt ?? 0) > (this.rates.prompt ?? 0);
    this.promptCost = cost;
    this.rates = rates;
    const held = (cost + worstCase(NO_PROMPT, output, rates)) as NanoUsd;
    const beyond = (held - reservation.held) as NanoUsd;
    this.behind = isHigherStep && beyond > 0 ? beyond : ZERO_USD;
    // Each change is a line in the journal.
    if (-beyond >= reservation.held / MIN_GAIN) ledger.shrink(reservation, held);
  }

  /** Takes what a higher step adds to what is held of prompt and answer. */
  private catchUp(): boolean {
    const { ledger, reservation, behind } = this;
    if (ledger.extend(reservation, behind)) {
      this.behind = ZERO_USD;
      return true;
    }
    this.shortfall = ledger.growthShortfall(reservation, behind);
    return false;
  }
}

const LARGE_SHARE = 16;
const MAX_ROUNDS = 32;
/** What is less than this part of a hold is not worth giving back. */
const MIN_GAIN = 16;
/** A prompt's estimate, of four bytes to a token, may be as many times too large. */
const MIN_SHARE = 4;
