import { priceSnapshot } from "../catalog/price-snapshot.ts";
import type { HostCosts } from "../hosts/host-costs.ts";
import type { HostReport } from "../routing/health.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import type { Clock } from "../units/clock.ts";
import type { Log } from "../units/log.ts";
import { Rounds } from "../units/rounds.ts";
import type { ActiveConfig } from "./active-config.ts";
import { HostWatch } from "./host-watch.ts";

/** Notices what is no balance's and is an event for the operator: prices that changed, what is sold below its cost, and hosts that fail. */
export class ServiceEvents {
  private readonly rounds: Rounds;
  private readonly hosts: HostWatch;
  private notedCatalog: object | null = null;
  private marginsAtMs = 0;
  private failure: string | null = null;

  constructor(private readonly deps: ServiceEventsDeps) {
    const { books, clock, hosts } = deps;
    this.hosts = new HostWatch({ states: books.hostStates, clock, hosts });
    this.rounds = new Rounds(deps.clock, ROUND_MS, async () => {
      await this.prepare();
      return ROUND_MS;
    });
  }

  stop(): Promise<void> {
    return this.rounds.stop();
  }

  /** Resolves once what is new is recorded, or could not be for now; never rejects. */
  async prepare(): Promise<void> {
    const failure = await this.note().then(
      () => null,
      (error: unknown) => String(error),
    );
    // A store that is away fails each round alike.
    if (failure !== null && failure !== this.failure) this.deps.log("events not noted", { error: failure });
    this.failure = failure;
  }

  private async note(): Promise<void> {
    await this.notePrices();
    await this.noteMargins();
    await this.hosts.note();
  }

  private async notePrices(): Promise<void> {
    const { books, clock } = this.deps;
    const { config, modelVersion } = this.deps.config;
    const { catalog } = config;
    if (catalog === this.notedCatalog) return;
    await books.pricesInForce.note({ ...priceSnapshot(catalog), modelVersion }, clock.now());
    this.notedCatalog = catalog;
  }

  /** What a store that is away does not take is given up: only this event is counted by it. */
  private async noteMargins(): Promise<void> {
    const { books, clock, hostCosts } = this.deps;
    if (clock.elapsedMs() < this.marginsAtMs) return;
    this.marginsAtMs = clock.elapsedMs() + MARGINS_MS;
    const sums = hostCosts.takeMargins();
    if (sums.length > 0) await books.margins.add(sums, clock.now());
  }
}

interface ServiceEventsDeps {
  readonly books: Pick<Bookkeeping, "pricesInForce" | "margins" | "hostStates">;
  readonly hosts: () => readonly HostReport[];
  readonly hostCosts: Pick<HostCosts, "takeMargins">;
  readonly config: Pick<ActiveConfig, "config" | "modelVersion">;
  readonly clock: Clock;
  readonly log: Log;
}

const ROUND_MS = 1_000;
const MARGINS_MS = 5_000;
