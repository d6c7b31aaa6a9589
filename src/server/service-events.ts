import { priceSnapshot } from "../catalog/price-snapshot.ts";
import type { HostCosts } from "../hosts/host-costs.ts";
import type { HostReport } from "../routing/health.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import type { HostState, SqlHostStates } from "../store/books/host-states.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import { type Log, reportingOnce } from "../units/log.ts";
import { Rounds } from "../units/rounds.ts";
import type { ActiveConfig } from "./active-config.ts";

/** Notices what is no balance's and is an event for the operator: prices that changed, what is sold below its cost, and hosts that fail. */
export class ServiceEvents {
  private readonly rounds: Rounds;
  private readonly hosts: HostWatch;
  private notedCatalog: object | null = null;
  private marginsAtMs = 0;
  /** Resolves once what is new is recorded, or could not be for now. */
  readonly prepare = reportingOnce(
    () => this.note(),
    (error) => this.deps.log("events not noted", { error }),
  );

  constructor(private readonly deps: ServiceEventsDeps) {
    const { books, clock, hosts } = deps;
    this.hosts = new HostWatch({ states: books.hostStates, clock, hosts });
    this.rounds = new Rounds(clock, ROUND_MS, this.prepare);
  }

  stop(): Promise<void> {
    return this.rounds.stop();
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

/**
 * Reports to the other processes of the store which hosts fail here, and which serve again. A host is down once one process has seen
 * nothing but failures for `STEADY_MS`; and up once some process was served by it, that long after the last failure that any
 * of them has seen. A host that flaps stays up for `MIN_UP_MS` as far as events go.
 */
export class HostWatch {
  private readonly seen = new Map<string, SeenHost>();
  private nextAtMs = 0;

  constructor(private readonly deps: HostWatchDeps) {}

  async note(): Promise<void> {
    const { clock, states, hosts } = this.deps;
    if (clock.elapsedMs() < this.nextAtMs) return;
    this.nextAtMs = clock.elapsedMs() + EVERY_MS;
    const now = clock.now();
    const reports = hosts();
    const known = await states.list();
    for (const report of reports) await this.compare(report, known.get(report.id), now);
    const ids = new Set(reports.map(({ id }) => id));
    for (const id of this.seen.keys()) if (!ids.has(id)) this.seen.delete(id);
  }

  private async compare(report: HostReport, known: HostState | undefined, now: EpochMs): Promise<void> {
    const { states } = this.deps;
    const { id, failingSince } = report;
    const { servedAt, failedAt } = this.seeing(report, now);
    const isOut = report.state === "open" || report.state === "half_open";
    if (isOut && failingSince !== null && now - failingSince >= STEADY_MS && now - failedAt < FRESH_MS) {
      if (known?.isDown === true) {
        if (now - known.failedAt >= EVERY_MS) await states.stillDown(id, now);
      } else if (known === undefined || now - known.changedAt >= MIN_UP_MS)
        await states.down(id, known, failingSince, now);
    } else if (known?.isDown === true && !isOut && servedAt - known.failedAt >= STEADY_MS)
      await states.up(known, now);
  }

  /** When the host last served, or failed, as far as its counts tell. */
  private seeing({ id, served, failed }: HostReport, now: EpochMs): SeenHost {
    const before = this.seen.get(id) ?? { served: 0, failed: 0, servedAt: NEVER, failedAt: NEVER };
    const seen = {
      served,
      failed,
      servedAt: served > before.served ? now : before.servedAt,
      failedAt: failed > before.failed ? now : before.failedAt,
    };
    this.seen.set(id, seen);
    return seen;
  }
}

interface HostWatchDeps {
  readonly states: Pick<SqlHostStates, "list" | "down" | "up" | "stillDown">;
  readonly hosts: () => readonly HostReport[];
  readonly clock: Pick<Clock, "now" | "elapsedMs">;
}

interface SeenHost {
  readonly served: number;
  readonly failed: number;
  readonly servedAt: number;
  readonly failedAt: number;
}

const NEVER = Number.NEGATIVE_INFINITY;
const EVERY_MS = 5_000;
const STEADY_MS = 30_000;
/** A circuit rests for half of this at most before it is tried again; without requests nobody knows how the host is. */
const FRESH_MS = 60_000;
/** At most twelve events of each kind an hour. */
const MIN_UP_MS = 300_000;
