import type { Budget, Key } from "../../src/customers/keys/key.ts";
import { type Holder, isLive } from "../../src/customers/keys/keyring.ts";
import type { KeyHolders } from "../../src/ledger/ledger.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { SuspensionReason } from "../../src/units/errors/suspension.ts";
import type { KeyId } from "../../src/units/id.ts";
import { balanceOf } from "./balance.ts";

/** Keys as a test last put them; those that it never did are being read for ever. */
export class KnownHolders implements KeyHolders {
  private readonly known = new Map<KeyId, Holder>();

  put(key: Key, budgets: readonly Budget[] = [], suspended: SuspensionReason | null = null): void {
    this.known.set(key.id, { key, balance: balanceOf({ id: key.balanceId, suspended }), budgets });
  }

  forget({ id }: Pick<Key, "id">): void {
    this.known.delete(id);
  }

  async reread(): Promise<void> {}

  current({ id }: Pick<Key, "id">, at: EpochMs): Holder | null | undefined {
    const holder = this.known.get(id);
    if (holder === undefined) return undefined;
    return isLive(holder.key, at) && holder.balance.suspended === null ? holder : null;
  }
}
