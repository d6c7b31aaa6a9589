import type { CountAllowance, CountTaken } from "../limits/count-allowance.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { BalanceId } from "../units/id.ts";

/**
 * The exact size of one request's prompt, for when its bound leaves doubt. Each part is counted at most once,
 * and only while the balance may have prompts counted.
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
}

/** Where a count stands in line; balances take turns. */
export interface PromptTurn {
  readonly key: BalanceId;
  readonly rank: "paid" | "unpaid";
  readonly signal: AbortSignal;
  readonly withinMs: number;
}
