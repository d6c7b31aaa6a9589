import type { BalanceId } from "../../units/id.ts";

/**
 * How many WebSockets may be open. Bun keeps a message that is being received in memory of its own, so each connection counts
 * as one largest message, and memory bounds their number. A balance may have a quarter of them, a network half; senders who
 * could not pay for a large message have few.
 */
export class ConnectionSlots {
  private readonly taken = new Map<string, number>();

  /** The most in all. */
  constructor(private readonly most: () => number) {}

  /** Limits that are in use. */
  get inUse(): number {
    return this.taken.size;
  }

  /** A slot to release when the connection closes; or the limit that is reached. */
  take(owner: SocketOwner): (() => void) | FullSlots {
    const limits = slotsOf(owner, this.most());
    for (const [name, most, of] of limits) if ((this.taken.get(name) ?? 0) >= most) return { most, of };
    for (const [name] of limits) this.taken.set(name, (this.taken.get(name) ?? 0) + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      for (const [name] of limits) this.giveBack(name);
    };
  }

  private giveBack(name: string): void {
    const left = this.taken.get(name)! - 1;
    if (left === 0) this.taken.delete(name);
    else this.taken.set(name, left);
  }
}

export interface SocketOwner {
  readonly balance: BalanceId;
  /** As wide as one may be had for nothing (see `wideNetwork`). */
  readonly network: string;
  /** Could pay for the largest body. */
  readonly pays: boolean;
}

export interface FullSlots {
  readonly most: number;
  readonly of: "balance" | "network" | "gateway";
}

type CountedSlot = readonly [name: string, most: number, of: FullSlots["of"]];

function slotsOf({ balance, network, pays }: SocketOwner, most: number): readonly CountedSlot[] {
  const { aBalance, aNetwork, inAll } = pays ? paidSlots(most) : unpaidSlots(most);
  const kind = pays ? "paid" : "unpaid";
  return [
    [`${kind} ${balance}`, aBalance, "balance"],
    [`${kind} ${network}`, aNetwork, "network"],
    [kind, inAll, "gateway"],
  ];
}

/** An agent needs one; a fleet may share a balance, and an office a network. */
const paidSlots = (most: number) => ({
  aBalance: Math.ceil(most / 4),
  aNetwork: Math.ceil(most / 2),
  inAll: most - unpaidSlots(most).inAll,
});

const unpaidSlots = (most: number) => ({
  aBalance: 2,
  aNetwork: 4,
  inAll: Math.min(16, Math.floor(most / 8)),
});
