import type { EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { Email } from "./email.ts";

/**
 * Owners are told once when the credit of a balance falls below what the operator named, and again only after
 * there was more in between. What is remembered for that, of each balance that belongs to an account.
 */
export interface LowCreditMark {
  /**
   * `due`: the owner is to be told, and whoever wrote this does so before `until`; then anybody may. `low`:
   * the owner was told, or there never was more.
   */
  readonly state: "enough" | "due" | "low";
  /** 0 unless due. */
  readonly until: EpochMs;
  /** In all, when the mark was made. */
  readonly credited: NanoUsd;
}

export interface WatchedBalance {
  readonly id: BalanceId;
  readonly accountId: AccountId;
  /** Null for an account that is a wallet. */
  readonly email: Email | null;
  readonly credited: NanoUsd;
  /** Of it, what was not charged; open requests may hold some of that. */
  readonly left: NanoUsd;
  /** Null when the balance was never looked at. */
  readonly mark: LowCreditMark | null;
}

export interface LowCreditStore {
  /**
   * Some balances that belong to accounts, and are not suspended, from behind `after` in the store's own
   * order; none at the end.
   */
  watched(after: WatchedBalance | null): Promise<readonly WatchedBalance[]>;
  /**
   * Marks balances, durably, unless somebody else has marked them since they were read. Returns those that
   * it marked.
   */
  mark<C extends MarkChange>(changes: readonly C[]): Promise<readonly C[]>;
}

export interface MarkChange {
  readonly balance: WatchedBalance;
  readonly mark: LowCreditMark;
}

/** The mark that a look at a balance leads to; null when it stays as it is. */
export function nextMark(
  { credited, left, mark }: WatchedBalance,
  below: NanoUsd,
  now: EpochMs,
): LowCreditMark | null {
  const is = (state: LowCreditMark["state"], until = 0) => ({ state, until: until as EpochMs, credited });
  const due = () => is("due", now + TELLING_MS);
  // Who has little from the start lost nothing, and whoever turns this on does not write to all of them.
  if (mark === null) return is(left < below ? "low" : "enough");
  if (left >= below) return mark.state === "enough" && mark.credited === credited ? null : is("enough");
  if (mark.state === "enough") return due();
  if (mark.state === "due") return mark.until > now ? null : due();
  // Credit that came and went between two looks.
  if (credited - mark.credited >= below) return due();
  return mark.credited === credited ? null : is("low");
}

/** Longer than a mail takes, with every attempt. */
const TELLING_MS = 600_000;
