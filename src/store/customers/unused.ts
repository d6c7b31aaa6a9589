import type { BalanceCursor, KeyStore } from "../../customers/keys/key-store.ts";
import type { Keyring } from "../../customers/keys/keyring.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import { DAY_MS } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { Rounds } from "../../units/rounds.ts";

/**
 * Removes the balances and keys that nobody ever used: making them costs nothing, so without this anybody could
 * fill the disk. Goes through all of them once a day, a few at a time. What has money, a receipt, an account or a
 * claim is never removed.
 */
export class UnusedRemoval {
  private readonly rounds: Rounds;
  private from: BalanceCursor = START;
  /** Since it last was at the end. */
  private removed = { balances: 0, keys: 0 };

  constructor(private readonly options: UnusedOptions) {
    this.rounds = new Rounds(options.clock, FIRST_MS, () => this.removeSome());
  }

  stop(): Promise<void> {
    return this.rounds.stop();
  }

  private async removeSome(): Promise<number> {
    const { clock, days, store, keyring, isInUse, onRemoved, onFault } = this.options;
    const after = days();
    if (after === null) return EVERY_MS;
    try {
      const before = (clock.now() - after * DAY_MS) as EpochMs;
      const { balances, keys, next } = await store.removeUnused(before, this.from, {
        isInUse,
        forget: (keys, balances) => keyring.forget(keys, balances),
      });
      this.removed.balances += balances.length;
      this.removed.keys += keys.length;
      this.from = next ?? START;
      if (next !== null) return PAUSE_MS;
    } catch (error) {
      onFault(error);
      return RETRY_MS;
    }
    if (this.removed.keys > 0) onRemoved(this.removed);
    this.removed = { balances: 0, keys: 0 };
    return EVERY_MS;
  }
}

export interface UnusedOptions {
  readonly clock: Clock;
  /** Null: never. Asked again for each round. */
  readonly days: () => number | null;
  readonly store: Pick<KeyStore, "removeUnused">;
  readonly keyring: Pick<Keyring, "forget">;
  /** Requests of the balance may be under way. */
  readonly isInUse: (balance: BalanceId) => boolean;
  readonly onRemoved: (removed: { readonly balances: number; readonly keys: number }) => void;
  readonly onFault: (error: unknown) => void;
}

const START: BalanceCursor = { createdAt: 0 as EpochMs, id: "" };
const FIRST_MS = 300_000;
const EVERY_MS = DAY_MS;
const PAUSE_MS = 50;
/** After the store refused. */
const RETRY_MS = 60_000;
