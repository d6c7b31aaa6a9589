import type { Clock } from "../../../units/clock.ts";
import type { Log } from "../../../units/log.ts";
import type { GasAccountId, GasLineStore, GasNonce } from "../../gas-line.ts";
import type { PaymentPace } from "../payment-pace.ts";
import type { GasCall, GasNode } from "./gas-node.ts";
import { type CurrentPrice, isUnderpriced, mayBeRaised, raised } from "./gas-price.ts";

/**
 * Keeps an account's nonces moving. What a node has dropped from its pool, or a reorganisation has undone, is broadcast
 * again; what waits for long pays more, at the same nonce; and where a transfer would fail by now, a transaction that does nothing
 * takes its nonce, so that those behind it go on.
 */
export class GasLine {
  /** When each waiting nonce was last broadcast by this process; bounded by the line. */
  private readonly broadcastAt = new Map<number, number>();
  /** Since when a nonce without a row keeps later ones waiting; null where none does. */
  private gapSince: number | null = null;
  /** When the log last said that nothing moves. */
  private loggedAt = 0;

  constructor(
    private readonly account: GasAccountId,
    private readonly node: GasNode,
    private readonly deps: GasDeps,
  ) {}

  /** Resolves with how many nonces wait for a block. */
  async tend(): Promise<number> {
    const { store } = this.deps;
    const line = await store.line(this.account);
    if (line.length === 0) return 0;
    const [mined, final] = await Promise.all([this.node.mined(), this.node.final()]);
    if (line[0]!.nonce < final) await store.forget(this.account, final);
    const waiting = line.filter(({ nonce }) => nonce >= mined);
    for (const nonce of this.broadcastAt.keys()) if (nonce < mined) this.broadcastAt.delete(nonce);
    if (waiting.length === 0) return 0;
    const price = await this.node.price();
    await this.fillGap(waiting, mined, price);
    for (let from = 0; from < waiting.length; from += AT_ONCE)
      await Promise.all(waiting.slice(from, from + AT_ONCE).map((row) => this.advance(row, mined, price)));
    this.logIfStalled(waiting);
    return waiting.length;
  }

  /** A node that is behind shows gaps that are none, so a gap has to stay for some time. */
  private async fillGap(waiting: readonly GasNonce[], mined: number, price: CurrentPrice): Promise<void> {
    const now = this.deps.clock.now();
    if (waiting.at(-1)!.nonce === mined + waiting.length - 1) {
      this.gapSince = null;
      return;
    }
    this.gapSince ??= now;
    if (now - this.gapSince < this.stuckMs) return;
    const nonce = waiting.findIndex((row, index) => row.nonce !== mined + index) + mined;
    const signed = [await this.node.sign(null, nonce, price)];
    const row = { nonce, payment: null, signed, createdAt: now, signedAt: now };
    const { kind } = await this.deps.store.take(this.account, row, mined);
    if (kind === "taken") await this.node.broadcast(signed[0]!);
  }

  private async advance(row: GasNonce, mined: number, price: CurrentPrice): Promise<void> {
    const now = this.deps.clock.now();
    const { nonce } = row;
    if (now - (this.broadcastAt.get(nonce) ?? 0) < this.deps.pace.resendMs) return;
    this.broadcastAt.set(nonce, now);
    const { call, price: paid } = this.node.read(row.signed.at(-1)!);
    const isOver = call !== null && (await this.isOver(call, nonce, price));
    const isSlow = nonce === mined && now - row.signedAt >= this.stuckMs && mayBeRaised(paid, price);
    const latest =
      isOver || isSlow || isUnderpriced(paid, price)
        ? await this.replace(row, isOver ? null : call, price)
        : row;
    await this.node.broadcast(latest.signed.at(-1)!);
  }

  /** Whether the transfer would only cost gas now, and is in no block yet. */
  private async isOver(call: GasCall, nonce: number, price: CurrentPrice): Promise<boolean> {
    return (await this.node.fails(call, price)) && (await this.node.mined()) <= nonce;
  }

  private async replace(row: GasNonce, call: GasCall | null, now: CurrentPrice): Promise<GasNonce> {
    const { store, clock, log } = this.deps;
    const { nonce } = row;
    const price = raised(this.node.read(row.signed.at(-1)!).price, now);
    const next: GasNonce = {
      ...row,
      payment: call === null ? null : row.payment,
      signed: [...row.signed, await this.node.sign(call, nonce, price)].slice(-MAX_SIGNED),
      signedAt: clock.now(),
    };
    // Another process was faster: what it has signed is its to broadcast.
    if (!(await store.replace(this.account, row, next))) return row;
    const { payment } = row;
    log("gas transaction replaced", {
      ...{ account: this.account.address, nonce, payment },
      by: call === null ? "one that only fills the nonce" : "one that pays more",
      max_wei: String(price.max),
    });
    return next;
  }

  private logIfStalled([first, ...others]: readonly GasNonce[]): void {
    const now = this.deps.clock.now();
    const waitedS = Math.round((now - first!.createdAt) / 1_000);
    if (waitedS < STALLED_S || now - this.loggedAt < STALLED_S * 1_000) return;
    this.loggedAt = now;
    this.deps.log("gas account waits", {
      ...{ account: this.account.address, nonce: first!.nonce, waited_s: waitedS },
      behind_it: others.length,
    });
  }

  private get stuckMs(): number {
    return RESENDS_UNTIL_STUCK * this.deps.pace.resendMs;
  }
}

export interface GasDeps {
  readonly store: GasLineStore;
  readonly clock: Pick<Clock, "now">;
  readonly pace: Pick<PaymentPace, "resendMs">;
  readonly log: Log;
}

const AT_ONCE = 16;
/** The latest are kept: no node has the earlier ones any more. */
const MAX_SIGNED = 16;
const RESENDS_UNTIL_STUCK = 3;
const STALLED_S = 60;
