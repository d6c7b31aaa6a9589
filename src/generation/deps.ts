import type { Catalog, HostOrder } from "../catalog/catalog.ts";
import type { Key } from "../customers/keys/key.ts";
import type { Holder, KeyBlock } from "../customers/keys/keyring.ts";
import type { RunSpec } from "../customers/keys/run.ts";
import type { AgentRun } from "../customers/keys/runs.ts";
import type { AttemptDeps, AttemptLimits } from "../hosts/attempt.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { FinishedRequest, Receipt } from "../ledger/receipt.ts";
import type { Allowance } from "../ledger/reservation.ts";
import type { InlinePayments } from "../payments/rails/x402/inline.ts";
import type { Affinity } from "../routing/affinity.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { EpochMs } from "../units/clock.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import type { BalanceId, ReceiptId } from "../units/id.ts";
import type { Trace } from "../units/trace-context.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { GenerationCall } from "./answer.ts";
import type { DeliveredCounts } from "./delivered-counts.ts";
import type { ExpectedOutput } from "./expected-output.ts";
import type { PromptCountDeps } from "./prompt-count.ts";
import type { RecountDeps } from "./recount.ts";
import type { OpenStreams } from "./stream/open-streams.ts";

/** Everything a request passes through. `catalog` and `settings` answer anew after a reload. */
export interface GenerationDeps extends AttemptDeps {
  /** Numbers from 0, below 1. */
  chance(): number;
  readonly ledger: Ledger;
  readonly journal: JournalDurability;
  readonly affinity: Affinity;
  readonly expected: ExpectedOutput;
  readonly openStreams: OpenStreams;
  readonly delivered: DeliveredCounts;
  catalog(): Catalog;
  settings(): GenerationSettings;
  /** The sentence that suggests the closest published id, and where the catalog is. */
  suggest(id: string): string;
  identify(secret: string, at: EpochMs): Holder | null | Promise<Holder | null>;
  /** Why a key may not spend any more; null where it may, or where that is not known yet. */
  blockOf(key: Pick<Key, "hash">, at: EpochMs): KeyBlock | null;
  /** Null where nobody can pay. */
  readonly payments: InlinePayments | null;
  allowances(holder: Holder, call: GenerationCall): readonly Allowance[];
  /** At once where the run is remembered. */
  joinRun(
    key: Pick<Key, "balanceId" | "rotationId">,
    spec: RunSpec,
    call: GenerationCall,
  ): AgentRun | Promise<AgentRun | Refusal>;
  /** Seconds to wait where too much was asked without credit; null where it may be looked at. */
  unpaidWaitS(balance: BalanceId, call: GenerationCall): number | null;
  /** The host said what an answer cost there, USD; `cost` is what it cost here. */
  hostCharged(candidate: Candidate, saidUsd: number, cost: NanoUsd): void;
  readonly counting: PromptCountDeps & RecountDeps;
  /** The request's place in a trace; null when nobody traces. */
  openTrace(headers: Headers): Trace | null;
  /** Told of each request's end, once. */
  finished(done: FinishedRequest): void;
  /** Keeps the receipt of a request that opened no hold, in memory. */
  keepRefused(receipt: Receipt & { readonly balanceId: BalanceId }): void;
  onFault(error: unknown, receipt: ReceiptId): void;
}

export interface GenerationSettings {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
  /** Owners can pay for credit themselves. */
  readonly sellsCredit: boolean;
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
export interface JournalDurability {
  durable(sequence: number): true | Promise<boolean>;
  readonly healthy: boolean;
}
