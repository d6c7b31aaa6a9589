import type { Clock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { RandomBytes } from "../../units/random.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { KeyLimits } from "./key.ts";
import type { KeyStore } from "./key-store.ts";
import type { Keyring } from "./keyring.ts";

/** What the operations on keys and budgets work with. `settings` follows reloads. */
export interface KeyDeps {
  readonly store: KeyStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly random: RandomBytes;
  settings(): KeySettings;
  readonly spendable: CreditReader;
}

interface CreditReader {
  /** What a balance could pay now, or a part of it that is at least `enough` nano-dollars. */
  of(balance: BalanceId, enough?: number): NanoUsd | Promise<NanoUsd>;
}

export interface KeySettings {
  /** Limits that a new key gets where its creator named none. */
  readonly defaults: Readonly<Record<"accountless" | "account", NewKeyLimits>>;
  /** How long a rotated key goes on working. */
  readonly graceMs: number;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
}

type NewKeyLimits = Pick<KeyLimits, "rpmLimit" | "tpmLimit" | "dailyLimit" | "monthlyLimit">;
