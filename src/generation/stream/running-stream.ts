import type { Price } from "../../catalog/price.ts";
import type { GenerationRequest, StreamJudge, Usage } from "../../surfaces/surface.ts";
import type { AnswerText } from "../../tokens/answer-text.ts";
import { isTooLittle } from "../billed-tokens.ts";
import { CHECK_EVERY_MS, tokensIn } from "../expected-output.ts";
import type { RunningCount } from "./running-count.ts";

/** A stream that a hold has to cover: what came of it and when, and so what its host may have written by now. */
export class RunningStream {
  /** What the host last said that it used. */
  usage: Usage | null = null;
  /** Tokens that came, and that the host may have thought next to them until the last one came. */
  private seen = 0;
  private unseen = 0;
  /** By how much the estimate of the tokens that came is too low; below 0, too high. */
  private tooLow = 0;
  private checkedMs: number;
  private paused = false;

  constructor(
    readonly request: GenerationRequest,
    readonly judge: RunningJudge,
    /** The price of the route that serves. */
    readonly price: Price,
    /** Tokens a second that the host does not exceed. */
    private readonly pace: number,
    /** When the host may have started, and later when the last token came. */
    private seenMs: number,
    /** Tokens that are held before they are needed. */
    readonly ahead: number,
    private readonly count: Pick<RunningCount, "update" | "reported" | "counting"> | null = null,
    /** Its host may have other models write, too. */
    readonly isShared = false,
  ) {
    this.checkedMs = seenMs;
  }

  /** Has the tokens that came counted, where there is no room for what they are estimated at. */
  countExactly(): void {
    this.count?.update((tooLow) => {
      this.tooLow += tooLow;
      this.seen = Math.max(0, this.seen + tooLow);
    });
  }

  get counting(): Promise<void> | null {
    return this.count?.counting ?? null;
  }

  /** Until the next check nothing is read, so what comes then is what was written meanwhile. */
  pause(): void {
    this.paused = true;
  }

  update(deliveredTokens: number, nowMs: number, longest: number): void {
    this.checkedMs = nowMs;
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
    const reported = usage.output + this.judge.text.estimateSinceReport;
    if (reported < this.seen && !isTooLittle(reported, deliveredTokens)) {
      this.tooLow = reported - deliveredTokens;
      this.seen = reported;
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
    return Math.ceil((Math.max(this.seenMs, this.checkedMs) + CHECK_EVERY_MS / 2) / STRIDE_MS) * STRIDE_MS;
  }

  private silently(nowMs: number): number {
    const ms = nowMs - this.seenMs;
    return ms > QUIET_MS ? tokensIn(ms, this.pace) : 0;
  }
}

type RunningJudge = Pick<StreamJudge, "usage"> & { readonly text: Pick<AnswerText, "estimateSinceReport"> };

/** Between the tokens of a host that writes pass less. */
const QUIET_MS = 250;
const STRIDE_MS = CHECK_EVERY_MS / 2;
