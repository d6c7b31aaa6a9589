import { boundedCache } from "../../units/bounded-cache.ts";
import type { Clock } from "../../units/clock.ts";
import { HOUR_MS } from "../../units/clock.ts";

/**
 * Reports wrong admin tokens to the operator: the first at once, then once a minute how many more there were and where
 * the last came from, so that a guesser cannot fill the log. Beyond a few from a network, their answers wait.
 */
export class WrongTokens {
  private more: { count: number; network: string } | null = null;
  private isQuiet = false;
  private readonly guessers = boundedCache<string, Guesser>(MAX_NETWORKS);
  private delayed = 0;

  constructor(
    private readonly clock: Pick<Clock, "after" | "elapsedMs">,
    private readonly report: (network: string, count: number) => void,
  ) {}

  /** Resolves when the wrong token may be answered; null: at once. */
  note(network: string): Promise<void> | null {
    if (this.isQuiet) this.more = { count: (this.more?.count ?? 0) + 1, network };
    else this.notify(network, 1);
    return this.delay(network);
  }

  /** Where too many wait already, the next is answered at once: it costs its sender a connection, and us no memory. */
  private delay(network: string): Promise<void> | null {
    const guesser = this.guesser(network);
    guesser.wrong += 1;
    if (guesser.wrong <= SLIPS || guesser.delayed >= MAX_DELAYED_OF_ONE || this.delayed >= MAX_DELAYED)
      return null;
    guesser.delayed += 1;
    this.delayed += 1;
    return new Promise((resolve) => {
      this.clock.after(DELAY_MS, () => {
        guesser.delayed -= 1;
        this.delayed -= 1;
        resolve();
      });
    });
  }

  private guesser(network: string): Guesser {
    const nowMs = this.clock.elapsedMs();
    const known = this.guessers.get(network);
    if (known !== undefined && nowMs - known.sinceMs < HOUR_MS) return known;
    const guesser = { sinceMs: nowMs, wrong: 0, delayed: 0 };
    this.guessers.set(network, guesser);
    return guesser;
  }

  private notify(network: string, count: number): void {
    this.report(network, count);
    this.isQuiet = true;
    this.clock.after(INTERVAL_MS, () => {
      this.isQuiet = false;
      const { more } = this;
      this.more = null;
      if (more !== null) this.notify(more.network, more.count);
    });
  }
}

interface Guesser {
  /** On the clock's `elapsedMs`. */
  readonly sinceMs: number;
  wrong: number;
  delayed: number;
}

const INTERVAL_MS = 60_000;
/** Wrong tokens of a network within an hour: people mistype, and paste the wrong secret. */
const SLIPS = 10;
const DELAY_MS = 1_000;
const MAX_DELAYED_OF_ONE = 16;
const MAX_DELAYED = 1_000;
const MAX_NETWORKS = 10_000;
