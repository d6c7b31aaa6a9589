import { assert } from "../units/assert.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { CounterId } from "./counter.ts";

/**
 * Who may spend how much of what. A ledger never spends from the store directly: it is granted an amount of a counter's
 * limit and spends the grant in memory. `spent + grants outstanding ≤ limit` holds for every counter at every moment, so
 * however many ledgers there are, and whichever of them is cut off, paused or slow, no limit is crossed. Nothing here
 * depends on a clock: what a lost ledger was granted stays granted until its journal has been read (`close`).
 *
 * Amounts are cumulative within a ledger's epoch (one life of its process), so a message that arrives twice, late or not
 * at all does no harm: it says where things stand, not what to add.
 */
export interface Authority {
  /** Where the counter stands for this ledger, and what it would like; answers with what it may use in all. */
  settle(statement: Statement): Grant | Promise<Grant>;
  /** The ledger's epoch is over, and its journal says what it spent; the rest of its grants is free again. */
  close(ledger: string, epoch: number, spent: ReadonlyMap<CounterId, NanoUsd>): void | Promise<void>;
}

export interface Statement {
  readonly ledger: string;
  readonly epoch: number;
  /** Rises with each statement of an epoch; an older one that arrives after a newer one is ignored. */
  readonly number: number;
  readonly counter: CounterId;
  /** Spent and held under this epoch's grants: the least that must stay granted. */
  readonly used: NanoUsd;
  /** What the ledger would like to be granted in all; less than before gives back. */
  readonly wanted: NanoUsd;
  readonly limit: NanoUsd;
}

export interface Grant {
  readonly counter: CounterId;
  readonly number: number;
  readonly granted: NanoUsd;
}

/** The rules, over a map; a store with conditional updates implements the same ones. */
export class MemoryAuthority implements Authority {
  private readonly counters = new Map<CounterId, Map<string, Standing>>();

  settle({ ledger, epoch, number, counter, used, wanted, limit }: Statement): Grant {
    const standings = this.standings(counter);
    const name = epochName(ledger, epoch);
    const known = standings.get(name) ?? { granted: ZERO_USD, number: 0, closed: false };
    if (known.closed || number <= known.number) return { counter, number, granted: known.granted };
    assert(used <= known.granted, `${name} used ${used} of ${counter}, granted ${known.granted}`);
    const free = limit - (this.granted(counter) - known.granted);
    // Less than before is always granted as it is wanted: the ledger has lowered its own bound before it said so. More is
    // granted as far as it is free, and a limit that was lowered meanwhile takes nothing back by force.
    const granted = (
      wanted <= known.granted ? Math.max(wanted, used) : Math.max(known.granted, Math.min(wanted, free))
    ) as NanoUsd;
    standings.set(name, { granted, number, closed: false });
    return { counter, number, granted };
  }

  close(ledger: string, epoch: number, spent: ReadonlyMap<CounterId, NanoUsd>): void {
    const name = epochName(ledger, epoch);
    for (const [counter, standings] of this.counters) {
      const standing = standings.get(name);
      if (standing === undefined || standing.closed) continue;
      standings.set(name, { ...standing, granted: spent.get(counter) ?? ZERO_USD, closed: true });
    }
  }

  /** Spent by closed epochs and granted to open ones: never above the limit. */
  granted(counter: CounterId): number {
    let sum = 0;
    for (const { granted } of this.standings(counter).values()) sum += granted;
    return sum;
  }

  private standings(counter: CounterId): Map<string, Standing> {
    const known = this.counters.get(counter);
    if (known !== undefined) return known;
    const created = new Map<string, Standing>();
    this.counters.set(counter, created);
    return created;
  }
}

interface Standing {
  readonly granted: NanoUsd;
  readonly number: number;
  readonly closed: boolean;
}

const epochName = (ledger: string, epoch: number): string => `${ledger}#${epoch}`;
