import type { LRUCache } from "lru-cache";
import { boundedCache } from "../../units/bounded-cache.ts";
import type { Clock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { wideNetwork } from "./address.ts";
import { RateWindow, TakenAmount } from "./rate-window.ts";

/**
 * What requests without credit may use of something within a minute. Balances cost nothing to make, so each has
 * its part, all of a network share one, and all together have no more than what leaves paying requests alone.
 */
export class UnpaidAllowance {
  private readonly balances = boundedCache<BalanceId, RateWindow>(MAX_REMEMBERED);
  private readonly networks = boundedCache<string, RateWindow>(MAX_REMEMBERED);
  private readonly all = new RateWindow();

  constructor(
    private readonly limits: UnpaidLimits,
    private readonly clock: Pick<Clock, "elapsedMs">,
  ) {}

  /** Where so much is to be taken from; or, when it is used up, the seconds until there is room. */
  room({ balance, network }: Unpaid, amount: number): readonly RateWindow[] | number {
    const nowMs = this.clock.elapsedMs();
    const { aBalance, aNetwork, inAll } = this.limits;
    const windows = [windowOf(this.balances, balance), windowOf(this.networks, network), this.all];
    const limits = [aBalance, aNetwork, inAll];
    let waitS = 0;
    for (const [n, window] of windows.entries()) {
      if (window.taken(nowMs) + amount <= limits[n]!) continue;
      waitS = Math.max(waitS, window.secondsUntilFits(amount, limits[n]!, nowMs) ?? MINUTE_S);
    }
    return waitS === 0 ? windows : waitS;
  }
}

/**
 * Bytes of large bodies that are read for nothing: reading and parsing ten megabytes keeps everybody
 * else waiting for 20 to 80 ms.
 */
export class UnpaidBytes {
  private readonly allowance: UnpaidAllowance;

  constructor(private readonly clock: Pick<Clock, "elapsedMs">) {
    this.allowance = new UnpaidAllowance(UNPAID_BYTES, clock);
  }

  /** The seconds until so many may be read; null when they may be now. Takes nothing. */
  waitS(sender: Unpaid, bytes: number): number | null {
    const windows = this.allowance.room(sender, Math.min(bytes, UNPAID_BYTES.aBalance));
    return typeof windows === "number" ? windows : null;
  }

  /** What may be read; otherwise the seconds until so many may be. */
  take(sender: Unpaid, bytes: number): TakenAmount | number {
    const windows = this.allowance.room(sender, Math.min(bytes, UNPAID_BYTES.aBalance));
    return typeof windows === "number" ? windows : new TakenAmount(windows, bytes, this.clock);
  }
}

/**
 * Requests of balances without credit: reading, planning and refusing one takes some 0.2 ms, and parsing its body
 * as much again for every 8 KiB, where it consists of nothing but values.
 */
export class UnpaidRequests {
  private readonly allowance: UnpaidAllowance;

  constructor(
    private readonly clock: Pick<Clock, "elapsedMs">,
    private readonly credit: { known(balance: BalanceId): NanoUsd | null },
  ) {
    this.allowance = new UnpaidAllowance(UNPAID_REQUESTS, clock);
  }

  /** Seconds to wait where a balance is known to have no credit and sent too much; null: go on. */
  waitS(balance: BalanceId, blocks: () => readonly string[], request: UnpaidRequest): number | null {
    if (this.credit.known(balance) !== 0) return null;
    return this.take({ balance, network: wideNetwork(blocks()) }, request);
  }

  /** Null when it may be read; otherwise the seconds until another may be. */
  take(sender: Unpaid, { bytes, writes }: UnpaidRequest): number | null {
    const checks = (writes ? CHECKS_A_WRITE : 1) + Math.min(Math.floor(bytes / BYTES_A_CHECK), MAX_CHECKS);
    const room = this.allowance.room(sender, checks);
    if (typeof room === "number") return room;
    for (const window of room) window.take(checks, this.clock.elapsedMs());
    return null;
  }
}

export interface UnpaidRequest {
  /** Length of its body. */
  readonly bytes: number;
  /** It is to change something, which has to be synced to the disk that streams wait for, too. */
  readonly writes: boolean;
}

const CHECKS_A_WRITE = 5;
const BYTES_A_CHECK = 8_192;
/** Larger ones are read in a thread. */
const MAX_CHECKS = 8;
/** A key may send 60 a minute, and a network can come to have thousands of keys. */
const UNPAID_REQUESTS = { aBalance: 600, aNetwork: 3_000, inAll: 60_000 };

const MIB = 1024 * 1024;
/** One of the largest bodies a minute from a balance, two from a network, and nine in all. */
export const UNPAID_BYTES = { aBalance: 12 * MIB, aNetwork: 24 * MIB, inAll: 96 * MIB };

export interface UnpaidLimits {
  readonly aBalance: number;
  readonly aNetwork: number;
  readonly inAll: number;
}

/** Who has no credit, and in which network, as wide as one may be had for nothing (see `wideNetwork`). */
export interface Unpaid {
  readonly balance: BalanceId;
  readonly network: string;
}

export function windowOf<Id extends string>(windows: LRUCache<Id, RateWindow>, id: Id): RateWindow {
  let window = windows.get(id);
  if (window === undefined) windows.set(id, (window = new RateWindow()));
  return window;
}

/** Beyond this many balances or networks, the idlest are forgotten first. */
export const MAX_REMEMBERED = 10_000;
const MINUTE_S = 60;
