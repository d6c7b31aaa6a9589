import type { NanoUsd } from "../../units/usd.ts";

/** Somebody with credit at another gateway, and their keys there. */
export interface MovedCustomer {
  /** Its id at the source, which never changes: `user:3`. */
  readonly source: string;
  readonly name: string;
  readonly credit: NanoUsd;
  /** They could not use it there. */
  readonly isSuspended: boolean;
  readonly keys: readonly MovedKey[];
}

export interface MovedKey {
  /** Its id at the source, which never changes: `token:7`. */
  readonly source: string;
  readonly name: string;
  readonly dailyLimitUsd: number | null;
  readonly monthlyLimitUsd: number | null;
  readonly allowedModels: readonly string[] | null;
  readonly expiresAt: string | null;
  readonly priceList: string | null;
  readonly budget: MovedBudget | null;
}

/** A cap of one key that is counted otherwise than by day or month. */
interface MovedBudget {
  readonly capUsd: number;
  readonly window: "week" | "total";
}
