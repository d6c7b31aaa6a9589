import { wideNetwork } from "../ledger/limits/address.ts";
import type { CountAllowance, CountTaken } from "../ledger/limits/count-allowance.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { BalanceId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { GenerationCall } from "./answer.ts";
import type { Counting, CountTurn } from "./counting/counting.ts";
import type { Count } from "./counting/work.ts";
import type { Hold } from "./hold.ts";

/**
 * The exact size of one request's prompt, for when its bound leaves doubt. Its text is counted at most once, no
 * longer than the client waits, and before it is admitted only while the balance may have prompts counted.
 */
export class PromptCount {
  /** The balance has had too many prompts counted in vain, so the bounds stand. */
  isSpent = false;
  /** Null where it could not be counted: a request that is checked again has waited for that already. */
  private textTokens: number | null | undefined = undefined;
  private counting: Promise<number | null> | null = null;
  private taken: CountTaken | null = null;
  private isAdmitted = false;
  /** The count of its text may refuse it although it was admitted. */
  private mayRefuse = false;
  private hasCredit = false;

  constructor(
    private readonly request: GenerationRequest,
    private readonly balance: BalanceId,
    private readonly deps: PromptCountDeps,
    private readonly call: Pick<GenerationCall, "blocks" | "signal">,
    private readonly withinMs: number,
  ) {}

  /** Tokens of its text in a common vocabulary; null when it cannot be counted now. */
  async text(): Promise<number | null> {
    if (this.textTokens !== undefined) return this.textTokens;
    this.counting ??= this.counted("text");
    this.textTokens = await this.counting;
    return this.textTokens;
  }

  /** The request goes on while its text is counted for `refusal`, which may refuse it after all. */
  async meanwhile<R>(refusal: Promise<R | null>): Promise<R | null> {
    this.mayRefuse = true;
    const refused = await refusal;
    this.mayRefuse = refused !== null;
    if (this.isAdmitted) this.paid();
    return refused;
  }

  /**
   * The most tokens that the embedded files can have; null when that cannot be determined. A small file may
   * take seconds to read, so nobody's files are read without credit.
   */
  async files(): Promise<number | null> {
    return (await this.take()) && this.hasCredit ? this.counted("files") : null;
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
   * The same while the request is under way, for `hold` to shrink to, if its prompt stands in others' way. Nothing
   * is kept of the prompt for it but what waits for the counting thread.
   */
  countLater(hold: Pick<Hold, "isPromptLarge" | "promptHas">): void {
    const { request, deps, textTokens } = this;
    const { length } = request.body;
    if (
      typeof textTokens === "number" ||
      this.mayRefuse ||
      request.promptUnseen ||
      !deps.later.mayTake(length)
    )
      return;
    if (!hold.isPromptLarge) return;
    deps.later.take(length);
    // What cannot be counted stays held by its bound.
    this.shrink(hold)
      .catch(() => {})
      .finally(() => deps.later.giveBack(length));
  }

  private async shrink(hold: Pick<Hold, "promptHas">): Promise<void> {
    const { request, deps } = this;
    const turn = this.turn("paid");
    const [text, files] = await Promise.all([
      deps.count("text", request, turn),
      request.promptHasFiles ? deps.count("files", request, turn) : { tokens: 0 },
    ]);
    const [textHas, filesHave] = [text?.tokens ?? null, files?.tokens ?? null];
    if (textHas !== null && filesHave !== null) hold.promptHas(this.mostOf(textHas, filesHave));
  }

  private mostOf(text: number, files: number): number {
    const { promptBound, mediaTokens } = this.request;
    return Math.min(promptBound, Math.ceil(text * COUNT_MARGIN) + mediaTokens) + files;
  }

  /** The request was admitted, so nothing was counted in vain. */
  paid(): void {
    this.isAdmitted = true;
    if (this.mayRefuse) return;
    this.taken?.giveBack();
    this.taken = null;
  }

  private async counted(what: "text" | "files"): Promise<number | null> {
    if (!(await this.take())) return null;
    const count = await this.deps.count(what, this.request, this.turn(this.hasCredit ? "paid" : "unpaid"));
    if (count !== null) this.taken?.took(count.ms);
    return count?.tokens ?? null;
  }

  /** Balances take turns, and networks do where there is no credit. */
  private turn(rank: "paid" | "unpaid"): CountTurn {
    const { balance, call, withinMs } = this;
    return {
      key: rank === "paid" ? balance : wideNetwork(call.blocks()),
      rank,
      signal: call.signal,
      withinMs,
    };
  }

  /** Taken once for all parts, so that the files are not refused after the text was counted. */
  private async take(): Promise<boolean> {
    if (this.taken !== null) return true;
    const { deps, balance, call, request } = this;
    this.hasCredit = (await deps.credit(balance)) > 0;
    const payer = { balance, network: wideNetwork(call.blocks()), hasCredit: this.hasCredit };
    this.taken = deps.allowance.take(payer, request.body.length);
    this.isSpent = this.taken === null;
    return !this.isSpent;
  }
}

export interface PromptCountDeps {
  /** Null when there is too much to do; tokens are null where a file can be of any size. */
  count(what: "text" | "files", request: GenerationRequest, turn: CountTurn): Promise<Count | null>;
  /** What the balance could pay. */
  credit(balance: BalanceId): NanoUsd | Promise<NanoUsd>;
  /** Reads a request in a thread, whose body is handed over and comes back; null when there is too much to do. */
  readUnpaid: Counting["request"];
  readonly allowance: CountAllowance;
  readonly later: DeferredCounts;
}

/** Other vocabularies than the one used for counting need up to half as many tokens again. */
const COUNT_MARGIN = 1.5;

/** The prompts that wait to be counted although their requests are under way: so many bytes of them at a time. */
export class DeferredCounts {
  bytes = 0;

  constructor(private readonly leastBytes = MIN_LATER_BYTES) {}

  mayTake(bytes: number): boolean {
    return bytes >= this.leastBytes && this.bytes + bytes <= MAX_LATER_BYTES;
  }

  take(bytes: number): void {
    this.bytes += bytes;
  }

  giveBack(bytes: number): void {
    this.bytes -= bytes;
  }
}

/** A shorter prompt is held for a cent at most, at any price that is usual. */
const MIN_LATER_BYTES = 4 * 1024;
/** Up to two seconds of the counting thread. */
const MAX_LATER_BYTES = 4 * 1024 * 1024;
