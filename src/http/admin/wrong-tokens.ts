import type { Clock } from "../../units/clock.ts";

/**
 * Tells the operator of wrong admin tokens: of the first at once, then once a minute how many more there were
 * and where the last came from, so that whoever guesses cannot fill the log.
 */
export class WrongTokens {
  private more: { count: number; network: string } | null = null;
  private waiting = false;

  constructor(
    private readonly clock: Pick<Clock, "after">,
    private readonly report: (network: string, count: number) => void,
  ) {}

  note(network: string): void {
    if (this.waiting) this.more = { count: (this.more?.count ?? 0) + 1, network };
    else this.tell(network, 1);
  }

  private tell(network: string, count: number): void {
    this.report(network, count);
    this.waiting = true;
    this.clock.after(INTERVAL_MS, () => {
      this.waiting = false;
      const { more } = this;
      this.more = null;
      if (more !== null) this.tell(more.network, more.count);
    });
  }
}

const INTERVAL_MS = 60_000;
