import type { Catalog, SurfaceName } from "../catalog/catalog.ts";
import type { AttemptLimits, HealthDesk } from "../hosts/attempt.ts";
import type { Destinations } from "../hosts/destination.ts";
import type { Transport } from "../hosts/transport.ts";
import type { Holder } from "../keys/keyring.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Finished, Receipt, Try } from "../ledger/receipt.ts";
import type { Allowance } from "../ledger/reservation.ts";
import type { HostSlots } from "../limits/host-slots.ts";
import type { Affinity } from "../routing/affinity.ts";
import type { Candidate, HostOrder, RouteState } from "../routing/candidate.ts";
import type { Lesson } from "../routing/health.ts";
import type { StreamEnd } from "../routing/speed.ts";
import type { OpenStreams } from "../stream/open-streams.ts";
import type { Pairing, Surface } from "../surfaces/surface.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import type { Deadlines } from "../units/deadlines.ts";
import type { BalanceId, ReceiptId } from "../units/id.ts";
import type { RandomBytes } from "../units/random.ts";
import type { Trace } from "../units/trace-context.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { Call } from "./answer.ts";
import type { ExpectedOutput } from "./expected-output.ts";
import type { CountingDesk } from "./prompt-count.ts";
import type { RecountDesk } from "./recount.ts";

/** Everything a request passes through. `catalog` and `settings` answer anew after a reload. */
export interface House {
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly random: RandomBytes;
  readonly ledger: Ledger;
  readonly journal: Durability;
  readonly transport: Transport;
  readonly destinations: Destinations;
  readonly surfaces: Readonly<Record<SurfaceName, Surface>>;
  pairing(client: SurfaceName, host: SurfaceName): Pairing;
  readonly routeState: RouteState;
  readonly health: HealthDesk;
  readonly affinity: Affinity;
  readonly expected: ExpectedOutput;
  readonly slots: HostSlots;
  observe(candidate: Candidate, outcome: Try["outcome"], lesson: Lesson): void;
  readonly openStreams: OpenStreams;
  /** Told of each relayed stream's end, for health. */
  ended(candidate: Candidate, end: StreamEnd): void;
  catalog(): Catalog;
  settings(): Settings;
  /** The sentence that suggests the closest published id, and where the catalog is. */
  suggest(id: string): string;
  identify(secret: string, at: EpochMs): Holder | null | Promise<Holder | null>;
  allowances(holder: Holder, call: Call): readonly Allowance[];
  /** Seconds to wait where too much was asked without credit; null where it may be looked at. */
  unpaidWaitS(balance: BalanceId, call: Call): number | null;
  /** The host said what an answer cost there, USD; `cost` is what it cost here. */
  hostCharged(candidate: Candidate, saidUsd: number, cost: NanoUsd): void;
  readonly counting: CountingDesk & RecountDesk;
  /** The request's place in a trace; null when nobody traces. */
  openTrace(headers: Headers): Trace | null;
  /** Told of each request's end, once. */
  finished(done: Finished): void;
  /** Keeps the receipt of a request that opened no hold, in memory. */
  keepRefused(receipt: Receipt & { readonly balanceId: BalanceId }): void;
  onFault(error: unknown, receipt: ReceiptId): void;
}

export interface Settings {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
  readonly attempts: AttemptLimits;
  readonly order: HostOrder;
  readonly chunkGapMs: number;
  /** Null: a silent stream stays silent. */
  readonly keepaliveMs: number | null;
  readonly totalMs: number;
  readonly writeOffTokens: number;
  readonly defaultMaxOutputTokens: number;
  readonly openTierRpm: number | null;
}

/** See store/journal. */
export interface Durability {
  durable(sequence: number): true | Promise<boolean>;
  readonly healthy: boolean;
}
