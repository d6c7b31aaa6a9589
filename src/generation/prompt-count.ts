import type { CountAllowance, CountTaken } from "../limits/count-allowance.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { BalanceId } from "../units/id.ts";
import type { Hold } from "./hold.ts";

/**
 * The exact size of one request's prompt, for when its bound leaves doubt. Its text is counted at most once, and
 * before it is admitted only while the balance may have prompts counted.
 */
export class PromptCount {
  /** The balance has had too many prompts counted in vain, so the bounds stand. */
  isSpent = false;
  private textTokens: number | null = null;
  private taken: CountTaken | null = null;

  constructor(
    private readonly request: GenerationRequest,
    private readonly balance: BalanceId,
    private readonly desk: CountingDesk,
    /** Counting ends when the client has left. */
    private readonly signal: AbortSignal,
    private readonly withinMs: number,
  ) {}

  /** Tokens of its text in a common vocabulary; null when it cannot be counted now. */
  async text(): Promise<number | null> {
    if (this.textTokens === null && this.take())
      this.textTokens = await this.desk.countText(this.request, this.turn);
    return this.textTokens;
  }

  /** The most tokens that the embedded files can have; null when that cannot be determined. */
  async files(): Promise<number | null> {
    return this.take() ? this.desk.boundFiles(this.request, this.turn) : null;
  }

  /**
   * The most tokens that the prompt can have, once counted; null when counting says no more than the bound
   * does.
   */
  async most(): Promise<number | null> {
    if (this.request.promptUnseen) return null;
    const text = await this.text();
    if (text === null) return null;
    const files = this.request.promptHasFiles ? await this.files() : 0;
    return files === null ? null : this.mostOf(text, files);
  }

  /**
   * The same while the request is under way, for `hold` to shrink to. The prompt is not kept for it: its body is
   * with the counting thread until then.
   */
  countLater(hold: Pick<Hold, "promptHas">): void {
    const { request, desk, textTokens, turn } = this;
    if (textTokens !== null || request.promptUnseen || !desk.later.take(request.body.length)) return;
    const counting = [
      desk.countText(request, turn),
      request.promptHasFiles ? desk.boundFiles(request, turn) : 0,
    ];
    void Promise.all(counting).then(([text = null, files = null]) => {
      desk.later.giveBack(request.body.length);
      if (text !== null && files !== null) hold.promptHas(this.mostOf(text, files));
    });
  }

  private mostOf(text: number, files: number): number {
    const { promptBound, mediaTokens } = this.request;
    return Math.min(promptBound, Math.ceil(text * COUNT_MARGIN) + mediaTokens) + files;
  }

  /** The request was admitted, so nothing was counted in vain. */
  paid(): void {
    this.taken?.giveBack();
    this.taken = null;
  }

  private get turn(): PromptTurn {
    return { key: this.balance, rank: "paid", signal: this.signal, withinMs: this.withinMs };
  }

  /** Taken once for all parts, so that the files are not refused after the text was counted. */
  private take(): boolean {
    this.taken ??= this.desk.allowance.take(this.balance, this.request.body.length);
    this.isSpent = this.taken === null;
    return !this.isSpent;
  }
}

/** Both may take a while, and answer null when there is too much to do. */
export interface CountingDesk {
  countText(request: GenerationRequest, turn: PromptTurn): Promise<number | null>;
  boundFiles(request: GenerationRequest, turn: PromptTurn): Promise<number | null>;
  readonly allowance: CountAllowance;
  readonly later: LaterCounts;
}

/** Where a count stands in line; balances take turns. */
export interface PromptTurn {
  readonly key: BalanceId;
  readonly rank: "paid" | "unpaid";
  readonly signal: AbortSignal;
  readonly withinMs: number;
}

/** Other vocabularies than the one used for counting need up to half as many tokens again. */
const COUNT_MARGIN = 1.5;

/** The prompts that wait to be counted although their requests are under way: so many bytes of them at a time. */
export class LaterCounts {
  private bytes = 0;

  take(bytes: number): boolean {
    if (bytes < LEAST_LATER_BYTES || this.bytes + bytes > MOST_LATER_BYTES) return false;
    this.bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.bytes -= bytes;
  }
}

/** A shorter prompt is held for a cent at most, at any price that is usual. */
const LEAST_LATER_BYTES = 4 * 1024;
/** Half a second of the counting thread. */
const MOST_LATER_BYTES = 4 * 1024 * 1024;
