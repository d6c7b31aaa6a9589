/** A worker's part of the places at one host, which it shares with other workers: `PlaceBook` has the other side. */
export class PlaceShare {
  /** Of the host's places, those that are this worker's now. */
  held = 0;
  private asked = 0;
  private owed = 0;

  constructor(private readonly tell: ShareTeller) {}

  /** So many places are used or wanted. Asks for those that it does not have. */
  need(count: number): void {
    const lack = count - this.held - this.asked;
    if (lack <= 0) return;
    this.asked += lack;
    this.tell.ask(lack);
  }

  given(count: number): void {
    this.held += count;
    // What came to spare was not asked for.
    this.asked = Math.max(0, this.asked - count);
  }

  recalled(count: number, used: number): void {
    this.owed += count;
    this.settle(used);
  }

  /** Others come first at a place that is not used any more. */
  settle(used: number): void {
    const count = Math.min(this.owed, this.held - used);
    if (count <= 0) return;
    this.held -= count;
    this.owed -= count;
    this.tell.giveBack(count);
  }

  /** A reload has changed the limit: what is held under the old one goes back as it becomes free. */
  retire(used: number): void {
    this.recalled(Number.POSITIVE_INFINITY, used);
  }
}

export interface ShareTeller {
  ask(count: number): void;
  giveBack(count: number): void;
}
