import type { BalanceId, KeyId } from "../units/id.ts";

/**
 * How many connections may be kept open. The server keeps the message that is being received, up to the largest, in
 * memory that nobody else sees, so connections are what is bounded: those of senders who could not pay for such a
 * message are few, for a balance, for a network and in all.
 */
export class ConnectionSlots {
  private readonly taken = new Map<string, number>();

  /** What is given back when the connection is closed; or which of the limits is reached. */
  take(owner: SocketOwner): (() => void) | FullSlots {
    const wanted = slotsOf(owner);
    for (const [name, most, of] of wanted) if ((this.taken.get(name) ?? 0) >= most) return { most, of };
    for (const [name] of wanted) this.taken.set(name, (this.taken.get(name) ?? 0) + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      for (const [name] of wanted) this.giveBack(name);
    };
  }

  private giveBack(name: string): void {
    const left = this.taken.get(name)! - 1;
    if (left === 0) this.taken.delete(name);
    else this.taken.set(name, left);
  }
}

export interface SocketOwner {
  readonly key: KeyId;
  readonly balance: BalanceId;
  /** As wide as one may be had for nothing (see wide-network). */
  readonly network: string;
  /** Could pay for the largest message. */
  readonly pays: boolean;
}

export interface FullSlots {
  readonly most: number;
  readonly of: "key" | "balance" | "network" | "gateway";
}

type CountedSlot = readonly [name: string, most: number, of: FullSlots["of"]];

function slotsOf({ key, balance, network, pays }: SocketOwner): readonly CountedSlot[] {
  const { aKey, aBalance, aNetwork, inAll } = pays ? CONNECTIONS : UNPAID_CONNECTIONS;
  const kind = pays ? "paid" : "unpaid";
  return [
    [`${kind} ${key}`, aKey, "key"],
    [`${kind} ${balance}`, aBalance, "balance"],
    [`${kind} ${network}`, aNetwork, "network"],
    [kind, inAll, "gateway"],
  ];
}

/** Of a process. An agent needs one; a fleet may share a key, and an office a network. */
const CONNECTIONS = { aKey: 256, aBalance: 1_024, aNetwork: 2_048, inAll: 4_096 };
/** With the largest message in the making on each, 160 MB. */
const UNPAID_CONNECTIONS = { aKey: 2, aBalance: 2, aNetwork: 4, inAll: 16 };
