import { type Catalog, type Route, routeName } from "../../catalog/catalog.ts";
import type { Allowance } from "../../ledger/reservation.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, Timer } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { Health } from "../health.ts";

/**
 * What a free request draws on: the allowance of the account, which all its keys share. Keys without an
 * account cost nothing to make, so their requests draw on the balance's allowance and on that of the network
 * they come from. The /48 of an IPv6 address holds 65,536 blocks and is often one subscriber's; sometimes it
 * is an office's, so it has more.
 */
export function allowancesOf(
  { id, accountId }: { readonly id: BalanceId; readonly accountId: AccountId | null },
  blocks: readonly string[],
  { requestsPerDay, accountlessRequestsPerDay: limit }: OpenTierConfig,
  pseudonym: (block: string) => string,
): Allowance[] {
  if (accountId !== null) return [{ owner: accountId, limit: requestsPerDay }];
  const shared = blocks.map((block, width) => ({
    owner: `block_${pseudonym(block)}`,
    limit: width === 0 ? limit : limit * WIDE_BLOCK_SHARES,
  }));
  return [{ owner: id, limit }, ...shared];
}

const WIDE_BLOCK_SHARES = 16;

/**
 * Neither addresses nor end users are stored: the books know them by pseudonyms that only the holder of the secret can
 * compute.
 */
export const pseudonyms =
  (secret: string) =>
  (name: string): string =>
    new Bun.CryptoHasher("sha256", secret).update(name).digest("hex").slice(0, PSEUDONYM_DIGITS);

const PSEUDONYM_DIGITS = 24;

/**
 * Keeps knowing which free routes are really free. Each is probed at start, after a reload and on a schedule;
 * what it serves at no charge meanwhile is as good as a probe. The first doubt (a reported charge, a refused
 * account) takes it out until a probe has succeeded again; those come ever more slowly, because hosts count
 * them against their own free quota. Any other failure may be the request's own, so that the route is only
 * probed.
 */
export class FreeRoutes {
  private readonly watched = new Map<string, Watched>();
  private readonly waiting: (() => void)[] = [];
  private probing = 0;
  private timer: Timer | null = null;
  private stopped = false;

  constructor(
    private readonly health: Pick<Health, "verify">,
    private readonly probe: (route: Route) => Promise<boolean>,
    private readonly clock: Clock,
    private readonly catalog: () => Catalog,
  ) {}

  /**
   * Probes every free route of the catalog now, and forgets those that are gone. Resolves when all were
   * probed.
   */
  verify(): Promise<void> {
    const routes = new Map(freeRoutesOf(this.catalog()).map((route) => [routeName(route), route]));
    for (const [name, { route }] of this.watched) {
      const now = routes.get(name);
      // The name now stands for something else: what was learnt concerns the old host.
      if (now === undefined || !sameHost(now, route)) this.forget(name);
    }
    for (const [name, route] of routes) {
      const known = this.watched.get(name);
      if (known === undefined) this.watched.set(name, newlyWatched(route));
      else Object.assign(known, { route, dueMs: Number.NEGATIVE_INFINITY });
    }
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.next();
    });
  }

  /** A request failed there, which that request may have caused: a probe finds out, at most one within `RETRY_MS`. */
  failed(route: Route): void {
    const watched = this.watched.get(routeName(route));
    if (watched === undefined || watched.probing || watched.failures > 0) return;
    watched.dueMs = Math.max(this.clock.elapsedMs(), watched.probedMs + RETRY_MS);
    this.next();
  }

  /** Its host reported a charge or refused the account: it is not verified any more. */
  doubt(route: Route): void {
    const watched = this.watched.get(routeName(route));
    if (watched === undefined) return;
    this.fail(watched);
    this.next();
  }

  /** A verified route answered at no charge. */
  served(route: Route): void {
    const watched = this.watched.get(routeName(route));
    if (watched !== undefined && watched.failures === 0 && !watched.probing)
      watched.dueMs = this.clock.elapsedMs() + VERIFIED_FOR_MS;
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }

  /** Starts the probes that are due, one a host at a time, and sets the timer for the next. */
  private next(): void {
    this.timer?.cancel();
    if (this.stopped) return;
    const nowMs = this.clock.elapsedMs();
    const busy = new Set([...this.watched.values()].filter((one) => one.probing).map(hostOf));
    let soonestMs = Number.POSITIVE_INFINITY;
    for (const watched of this.watched.values()) {
      if (watched.probing) continue;
      if (watched.dueMs > nowMs) soonestMs = Math.min(soonestMs, watched.dueMs);
      else if (this.probing < MAX_PROBES && !busy.has(hostOf(watched))) {
        busy.add(hostOf(watched));
        void this.verifyOne(watched);
      }
    }
    if (soonestMs < Number.POSITIVE_INFINITY)
      this.timer = this.clock.after(soonestMs - nowMs, () => this.next());
    if (this.probing === 0) for (const resolve of this.waiting.splice(0)) resolve();
  }

  private async verifyOne(watched: Watched): Promise<void> {
    this.probing += 1;
    watched.probing = true;
    watched.probedMs = this.clock.elapsedMs();
    const { doubts, route } = watched;
    const answered = await this.probe(route).catch(() => false);
    this.probing -= 1;
    watched.probing = false;
    assert(this.probing >= 0, "more probes ended than began");
    // Doubt arose during the probe: its answer may be older than the doubt.
    if (answered && watched.doubts === doubts) this.pass(watched);
    else if (watched.doubts === doubts) this.fail(watched);
    this.next();
  }

  private pass(watched: Watched): void {
    if (this.watched.get(routeName(watched.route)) !== watched) return;
    watched.failures = 0;
    watched.dueMs = this.clock.elapsedMs() + VERIFIED_FOR_MS;
    this.health.verify(watched.route, true);
  }

  private fail(watched: Watched): void {
    if (this.watched.get(routeName(watched.route)) !== watched) return;
    watched.doubts += 1;
    watched.failures += 1;
    const waitMs = Math.min(VERIFIED_FOR_MS, RETRY_MS * 2 ** Math.min(watched.failures - 1, 10));
    watched.dueMs = this.clock.elapsedMs() + waitMs;
    this.health.verify(watched.route, false);
  }

  private forget(name: string): void {
    this.health.verify(this.watched.get(name)!.route, false);
    this.watched.delete(name);
  }
}

interface Watched {
  route: Route;
  /** Monotonic time of the next probe. */
  dueMs: number;
  /** The last one. */
  probedMs: number;
  /** In a row. */
  failures: number;
  doubts: number;
  probing: boolean;
}

const VERIFIED_FOR_MS = 30 * 60_000;
const RETRY_MS = 15_000;
const MAX_PROBES = 8;

const newlyWatched = (route: Route): Watched => ({
  route,
  dueMs: Number.NEGATIVE_INFINITY,
  probedMs: Number.NEGATIVE_INFINITY,
  failures: 0,
  doubts: 0,
  probing: false,
});

const freeRoutesOf = ({ models }: Catalog): Route[] =>
  [...models.values()].flatMap(({ routes }) => routes.filter(({ free }) => free));

const hostOf = ({ route }: Watched): string => route.host.id;

const sameHost = ({ host: a }: Route, { host: b }: Route): boolean =>
  a.baseUrl === b.baseUrl && a.apiKey === b.apiKey && a.auth === b.auth && namesOf(a) === namesOf(b);

const namesOf = ({ keys = [] }: Route["host"]): string => keys.map(({ name }) => name).join("\n");

export interface OpenTierConfig {
  readonly requestsPerDay: number;
  readonly accountlessRequestsPerDay: number;
  /** Per key; null: only the key's own limit applies. */
  readonly rpm: number | null;
}
