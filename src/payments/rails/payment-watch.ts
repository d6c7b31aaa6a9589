import { type Clock, epochMs } from "../../units/clock.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import type { Payment, RailName } from "../payment.ts";
import type { PaymentStore } from "../payment-store.ts";
import type { PaymentPace } from "./payment-pace.ts";

/** A way to pay, as far as the watch needs it. */
export interface WatchedRail {
  readonly name: RailName;
  /** Before each round. */
  prepare?(): Promise<void>;
  /** Finds out what has become of the payment, and writes it down together with when to look again. */
  poll(payment: Payment): Promise<unknown>;
}

/**
 * Takes every payment that is not final and on which nobody works: at the start, and again and again. So whatever a
 * process was doing when it ended is done by the next one, or by another gateway.
 */
export class PaymentWatch {
  private readonly rounds: Rounds;

  constructor(
    private readonly store: PaymentStore,
    private readonly rails: readonly WatchedRail[],
    private readonly pace: PaymentPace,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.rounds = new Rounds(clock, 0, async () => {
      await this.round().catch((error) => log("payments", { error: String(error) }));
      return pace.watchMs;
    });
  }

  stop(): Promise<void> {
    return this.rounds.stop();
  }

  private async round(): Promise<void> {
    await Promise.all(this.rails.map((rail) => rail.prepare?.()));
    for (let slice = 0; slice < MAX_SLICES && !this.rounds.stopped; slice++) {
      const now = this.clock.now();
      const due = await this.store.claim(now, epochMs(now + this.pace.leaseMs), SLICE);
      await Promise.all(due.map((payment) => this.poll(payment)));
      if (due.length < SLICE) return;
    }
  }

  private async poll(payment: Payment): Promise<void> {
    try {
      await this.rails.find(({ name }) => name === payment.rail)?.poll(payment);
    } catch (error) {
      this.log("payment", { id: payment.id, error: String(error) });
      // Where the store is what failed, the lease ends it.
      await this.retrySoon(payment).catch(() => {});
    }
  }

  /** Gives up the lease, unless the rail wrote when to look next before it failed. */
  private retrySoon({ id, nextPollAt }: Payment): Promise<unknown> {
    const soon = epochMs(this.clock.now() + this.pace.watchMs);
    return this.store.change(id, (present) =>
      present.nextPollAt === nextPollAt ? { nextPollAt: soon } : null,
    );
  }
}

/** At once, of the node that is asked. */
const SLICE = 16;
const MAX_SLICES = 1_000;
