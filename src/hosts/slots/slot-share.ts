/**
 * A worker's part of the slots at one host, which it shares with other workers. `SlotPool` is the other
 * side.
 */
export class SlotShare {
  /** Places that are this worker's now. */
  held = 0;
  private requested = 0;
  private owed = 0;

  constructor(private readonly messages: SlotShareMessages) {}

  /** `count` slots are used or wanted in all. Requests those that are missing. */
  need(count: number): void {
    const lack = count - this.held - this.requested;
    if (lack <= 0) return;
    this.requested += lack;
    this.messages.request(lack);
  }

  given(count: number): void {
    this.held += count;
    // Extra slots come without a request.
    this.requested = Math.max(0, this.requested - count);
  }

  recalled(count: number, used: number): void {
    this.owed += count;
    this.settle(used);
  }

  /** Gives back what is owed, as far as it is not used: others come first at a slot that becomes free. */
  settle(used: number): void {
    const count = Math.min(this.owed, this.held - used);
    if (count <= 0) return;
    this.held -= count;
    this.owed -= count;
    this.messages.giveBack(count);
  }

  /** A reload has changed the limit: every slot under the old one goes back as it becomes free. */
  retire(used: number): void {
    this.recalled(Number.POSITIVE_INFINITY, used);
  }
}

export interface SlotShareMessages {
  request(count: number): void;
  giveBack(count: number): void;
}
