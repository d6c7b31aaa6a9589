import type { UsageSums } from "../../store/usage-sums.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { HttpDeps } from "../deps.ts";
import { STATUS_STRETCH_MS, STATUS_STRETCHES } from "./status-page.ts";

/**
 * Sums of the last day's receipts, for the public status page. Anybody may load that page as often as they
 * like, so the receipts are read at most once a minute, however many ask.
 */
export class DailyFigures {
  private latest: UsageSums | null = null;
  private readAtMs = Number.NEGATIVE_INFINITY;
  private reading: Promise<UsageSums | null> | null = null;

  constructor(private readonly deps: HttpDeps) {}

  /** Null while there are none. */
  async sums(): Promise<UsageSums | null> {
    const { clock } = this.deps.keyDeps;
    if (clock.elapsedMs() - this.readAtMs < FRESH_MS) return this.latest;
    this.reading ??= this.read().finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  private async read(): Promise<UsageSums | null> {
    const { usage, keyDeps } = this.deps;
    const now = keyDeps.clock.now();
    const since = now - (now % STATUS_STRETCH_MS) - (STATUS_STRETCHES - 1) * STATUS_STRETCH_MS;
    const scope = { balanceId: null, keyId: null, since: since as EpochMs, stretchMs: STATUS_STRETCH_MS };
    this.latest = (await usage(scope)) ?? this.latest;
    this.readAtMs = keyDeps.clock.elapsedMs();
    return this.latest;
  }
}

const FRESH_MS = 60_000;
