import type { Price } from "../catalog/catalog.ts";
import { costOf, NO_PROMPT, type PromptCharge, withAudioAnswer, worstCase } from "../ledger/charge.ts";
import type { GrantAnswer } from "../ledger/grants.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Reservation } from "../ledger/reservation.ts";
import type { Shortfall } from "../ledger/shortfall.ts";
import type { GenerationRequest, StreamJudge, Usage } from "../surfaces/surface.ts";
import type { AnswerText } from "../tokens/answer-text.ts";
import type { NanoUsd } from "../units/usd.ts";
import { isTooLittle } from "./billed-tokens.ts";
import { type HoldGrowth, LOOK_EVERY_MS, tokensIn } from "./expected-output.ts";
import { completed } from "./metering.ts";
import type { RunningCount } from "./running-count.ts";

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
  private promptCost: NanoUsd;
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
    this.price = reservation.want.price;
    this.promptCost = worstCase(prompt, 0, this.price);
    this.most = isCeilingNamed ? longest : Number.POSITIVE_INFINITY;
    this.grows = reservation.want.amount > 0 && output < this.most;
  }

  get coversLongest(): boolean {
    return this.output >= this.longest || this.price.output === 0;
  }

  /** Takes all that the answer can have, if there is room for `plenty` times what is missing. */
  coverLongest(plenty: number): boolean {
    const { ledger, reservation, longest, output, price } = this;
    const beyond = worstCase(NO_PROMPT, longest - output, price);
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

  /** The prompt has at most so many tokens. */
  promptHas(tokens: number): void {
    this.fitPrompt(worstCase({ ...this.prompt, bound: Math.min(tokens, this.prompt.bound) }, 0, this.price));
  }

  /** The answer has started, and nobody else will be asked: from here on it is held at the price of who serves. */
  begin(stream: RunningStream): this {
    this.stream = stream;
    const { request, price } = stream;
    this.price = request.answersInAudio ? withAudioAnswer(price) : price;
    this.promptHas(this.prompt.bound);
    return this;
  }

  /** Whether what the host may have written by now is held; else the stream has to stop. */
  covers(deliveredTokens: number, nowMs: number): boolean {
    const { reservation, stream } = this;
    if (stream === null || reservation.want.amount === 0) return true;
    stream.look(deliveredTokens, nowMs, this.longest);
    const { usage } = stream.judge;
    if (usage !== stream.usage) this.told(usage, stream);
    return !this.grows || this.growTo(stream.written(nowMs, this.longest), stream.ahead);
  }

  /**
   * Of what was short, others may have some left, and what came may count less than it is estimated at: when that is
   * known. Null if it is known.
   */
  more(): Promise<void> | null {
    const { stream, reservation, price } = this;
    if (stream === null || this.rounds === 0) return null;
    stream.pause();
    const counting = stream.counting;
    if (counting !== null) return counting;
    const missing = Math.max(this.growth.leastStepTokens, this.written - this.output);
    const asked = this.ledger.replenishHold(reservation, worstCase(NO_PROMPT, missing, price));
    return asked === null ? null : this.heard(asked);
  }

  /** Holds all that an ended answer costs; where that is more than there is here, others are asked first. */
  cover(cost: NanoUsd): Promise<void> | null {
    const { ledger, reservation } = this;
    const beyond = reservation.beyond(cost);
    if (beyond <= 0 || ledger.extend(reservation, beyond) || this.rounds === 0) return null;
    const asked = ledger.replenishHold(reservation, beyond);
    return asked === null ? null : this.heard(asked).then(() => this.cover(cost) ?? undefined);
  }

  private async heard(asked: Promise<GrantAnswer>): Promise<void> {
    this.rounds = (await asked) === "room" ? this.rounds - 1 : 0;
  }

  /** When to look again although nothing came. */
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
      if (this.ledger.extend(this.reservation, worstCase(NO_PROMPT, step, this.price))) {
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
          worstCase(NO_PROMPT, step, this.price),
        );
        return written < this.output;
      }
    }
    return true;
  }

  private told(usage: Usage | null, stream: RunningStream): void {
    stream.usage = usage;
    if (usage === null) return;
    const { request } = stream;
    const tokens = usage.input + usage.cacheRead + usage.cacheWrite;
    // Some hosts begin with a zero and tell the truth at the end.
    const isPlausible =
      tokens >= request.promptEstimate / MIN_SHARE && tokens <= this.prompt.bound && !request.promptUnseen;
    if (!isPlausible) return;
    this.fitPrompt(
      costOf({ ...completed(usage, request), output: 0, audioOutput: 0, reasoning: 0 }, this.price),
    );
  }

  private fitPrompt(cost: NanoUsd): void {
    const { ledger, reservation, price, output } = this;
    if (!reservation.isOpen || reservation.want.amount === 0) return;
    this.promptCost = Math.min(this.promptCost, cost) as NanoUsd;
    const held = (this.promptCost + worstCase(NO_PROMPT, output, price)) as NanoUsd;
    // Each change is a line in the journal.
    if (reservation.held - held >= reservation.held / MIN_GAIN) ledger.shrink(reservation, held);
  }
}

/** A stream that is held for: what came of it, and when. */
export class RunningStream {
  /** What the host last said that it used. */
  usage: Usage | null = null;
  /** Tokens that came, and that the host may have thought next to them until the last one came. */
  private seen = 0;
  private unseen = 0;
  /** By how much the estimate of the tokens that came is too low; below 0, too high. */
  private tooLow = 0;
  private lookedMs: number;
  private paused = false;

  constructor(
    readonly request: GenerationRequest,
    readonly judge: RunningJudge,
    /** Of the route that serves. */
    readonly price: Price,
    /** Tokens a second that the host does not exceed. */
    private readonly pace: number,
    /** When the host may have started, and later when the last token came. */
    private seenMs: number,
    /** Tokens that are held before they are needed. */
    readonly ahead: number,
    private readonly count: Pick<RunningCount, "look" | "reported" | "telling"> | null = null,
  ) {
    this.lookedMs = seenMs;
  }

  /** Has the tokens that came counted, where there is no room for what they are estimated at. */
  countExactly(): void {
    this.count?.look((tooLow) => {
      this.tooLow += tooLow;
      this.seen = Math.max(0, this.seen + tooLow);
    });
  }

  get counting(): Promise<void> | null {
    return this.count?.telling ?? null;
  }

  /** Until the next look nothing is read, so what comes then is what was written meanwhile. */
  pause(): void {
    this.paused = true;
  }

  look(deliveredTokens: number, nowMs: number, longest: number): void {
    this.lookedMs = nowMs;
    if (this.paused) this.seenMs = nowMs;
    this.paused = false;
    const { usage } = this.judge;
    const came = deliveredTokens + this.tooLow;
    if (came > this.seen) {
      this.unseen += this.silently(nowMs);
      this.seen = came;
      this.seenMs = nowMs;
    }
    if (usage === this.usage || usage === null || usage.output === 0) return;
    // It says so itself. Its own tokens are billed, unless they are too few to be true, and what comes after them.
    this.count?.reported();
    const told = usage.output + this.judge.text.estimateSinceReport;
    if (told < this.seen && !isTooLittle(told, deliveredTokens)) {
      this.tooLow = told - deliveredTokens;
      this.seen = told;
    }
    this.unseen = Math.max(0, Math.min(usage.output, longest) - this.seen);
    this.seenMs = nowMs;
  }

  /** Tokens that the host may have written by now. */
  written(nowMs: number, longest: number): number {
    const { seen } = this;
    return Math.max(seen, Math.min(longest, seen + this.unseen + this.silently(nowMs)));
  }

  /** In even steps: thousands of streams must not wake the timer one by one. */
  get dueMs(): number {
    return Math.ceil((Math.max(this.seenMs, this.lookedMs) + LOOK_EVERY_MS / 2) / STRIDE_MS) * STRIDE_MS;
  }

  private silently(nowMs: number): number {
    const ms = nowMs - this.seenMs;
    return ms > QUIET_MS ? tokensIn(ms, this.pace) : 0;
  }
}

type RunningJudge = Pick<StreamJudge, "usage"> & { readonly text: Pick<AnswerText, "estimateSinceReport"> };

/** Between the tokens of a host that writes pass less. */
const QUIET_MS = 250;
const STRIDE_MS = LOOK_EVERY_MS / 2;
const LARGE_SHARE = 16;
const MAX_ROUNDS = 32;
/** What is less than this part of a hold is not worth giving back. */
const MIN_GAIN = 16;
/** A prompt's estimate, of four bytes to a token, may be as many times too large. */
const MIN_SHARE = 4;
