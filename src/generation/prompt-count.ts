import type { CountAllowance, CountTaken } from "../limits/count-allowance.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { BalanceId } from "../units/id.ts";

/**
 * The exact size of one request's prompt, for where its bound leaves a doubt. Each part is counted once at most, and only
 * while its balance may have prompts counted.
 */
export class PromptCount {
  /** The balance has had too many prompts counted for nothing: the bounds stand. */
  isSpent = false;
  private textTokens: number | null = null;
  private taken: CountTaken | null = null;

  constructor(
    private readonly request: GenerationRequest,
    private readonly balance: BalanceId,
    private readonly desk: CountingDesk,
  ) {}

  /** Tokens of its text by a common vocabulary; null when nobody counts it now. */
  async text(): Promise<number | null> {
    if (this.textTokens === null && this.take()) this.textTokens = await this.desk.countText(this.request);
    return this.textTokens;
  }

  /** The most that the embedded files come to; null when that cannot be told. */
  async files(): Promise<number | null> {
    return this.take() ? this.desk.boundFiles(this.request) : null;
  }

  /** The request was admitted: what was counted, was not for nothing. */
  paid(): void {
    this.taken?.giveBack();
    this.taken = null;
  }

  /** Once for all parts: whoever has the text counted is not refused the files. */
  private take(): boolean {
    this.taken ??= this.desk.allowance.take(this.balance, this.request.body.length);
    this.isSpent = this.taken === null;
    return !this.isSpent;
  }
}

/** Both may take a while, and answer null when there is too much to do. */
export interface CountingDesk {
  countText(request: GenerationRequest): Promise<number | null>;
  boundFiles(request: GenerationRequest): Promise<number | null>;
  readonly allowance: CountAllowance;
}
