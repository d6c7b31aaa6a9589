/** A worker's slots at one host whose limit workers share; `SlotPool` is the other side. */
export class SlotShare {
  /** Slots that this worker has now. */
  held = 0;
  private requested = 0;
  private owed = 0;

  constructor(private readonly messages: SlotShareMessages) {}

  /** `count` slots are used or needed in all. Requests the missing ones. */
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

  /** Returns what is owed, as far as it is unused: a freed slot goes to other workers first. */
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
