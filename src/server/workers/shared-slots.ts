import { SlotPool } from "../../hosts/slots/slot-pool.ts";
import type { SlotsMessage, ToWorker } from "./messages.ts";

/** The slots at hosts that workers share: a pool for each limit that any of them has in force. */
export class SharedSlots {
  private readonly pools = new Map<string, SlotPool>();

  constructor(
    private readonly workers: number,
    private readonly send: (worker: number, message: ToWorker) => void,
  ) {}

  handleMessage(
    worker: number,
    { kind, host, most, count }: SlotsMessage<"slots_wanted" | "slots_returned">,
  ): void {
    const key = `${most} ${host}`;
    const pool = this.pools.getOrInsertComputed(key, () => this.open(host, most));
    if (kind === "slots_wanted") pool.requested(worker, count);
    else pool.returned(worker, count);
    if (pool.idle) this.pools.delete(key);
  }

  /** The worker's process has ended. */
  ended(worker: number): void {
    for (const [key, pool] of this.pools) {
      pool.ended(worker);
      if (pool.idle) this.pools.delete(key);
    }
  }

  private open(host: string, most: number): SlotPool {
    return new SlotPool(most, this.workers, {
      give: (worker, count) => this.send(worker, { kind: "slots_granted", host, most, count }),
      recall: (worker, count) => this.send(worker, { kind: "slots_recalled", host, most, count }),
    });
  }
}
