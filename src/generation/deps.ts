import type { CatalogWithLists, HostOrder } from "../catalog/catalog.ts";
import type { Balance } from "../customers/keys/key.ts";
import type { Keyring } from "../customers/keys/keyring.ts";
import type { Runs } from "../customers/keys/runs.ts";
import type { FailoverDeps, FailoverLimits } from "../hosts/failover.ts";
import type { HostCosts } from "../hosts/host-costs.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { UnpaidRequests } from "../ledger/limits/unpaid-allowance.ts";
import type { FinishedRequest } from "../ledger/receipt.ts";
import type { Allowance } from "../ledger/reservation.ts";
import type { SpendableCredit } from "../ledger/spendable-credit.ts";
import type { InlinePayments } from "../payments/rails/x402/inline.ts";
import type { Affinity } from "../routing/affinity.ts";
import type { ReceiptId } from "../units/id.ts";
import type { Trace } from "../units/trace-context.ts";
import type { DeliveredCounts } from "./delivered-counts.ts";
import type { ExpectedOutput } from "./expected-output.ts";
import type { PromptCountDeps } from "./prompt-count.ts";
import type { PromptSizes } from "./prompt-sizes.ts";
import type { KeptPrompts, RecountDeps } from "./recount.ts";
import type { Receipts } from "./refused-receipts.ts";
import type { UserPseudonym } from "./request-tags.ts";
import type { OpenStreams } from "./stream/open-streams.ts";

/** Everything a request passes through. `catalog` and `settings` follow reloads. */
export interface GenerationDeps extends FailoverDeps {
  /** Numbers from 0, below 1. */
  chance(): number;
  readonly ledger: Ledger;
  readonly journal: JournalDurability;
  readonly affinity: Affinity;
  readonly expected: ExpectedOutput;
  readonly openStreams: OpenStreams;
  readonly delivered: DeliveredCounts;
  catalog(): CatalogWithLists;
  settings(): GenerationSettings;
  /** The sentence that suggests the closest published id, and where the catalog is. */
  suggest(id: string): string;
  readonly keyring: Keyring;
  readonly runs: Runs;
  readonly spendable: SpendableCredit;
  readonly unpaidRequests: UnpaidRequests;
  /** Where receipts of requests without a hold are kept. */
  readonly receipts: Receipts;
  /** Null where nobody can pay. */
  readonly payments: InlinePayments | null;
  allowances(balance: Balance, blocks: readonly string[]): readonly Allowance[];
  readonly userPseudonym: UserPseudonym;
  readonly hostCosts: Pick<HostCosts, "answered" | "settled">;
  readonly prompts: KeptPrompts;
  readonly promptSizes: PromptSizes;
  readonly counting: PromptCountDeps & RecountDeps;
  readonly reporting: RequestReports;
  onFault(error: unknown, receipt: ReceiptId): void;
}

/** What the operator learns of requests. */
interface RequestReports {
  /** The request's position in a trace; null if there are no traces. */
  openTrace(headers: Headers): Trace | null;
  /** Called once for each request, at its end. */
  finished(done: FinishedRequest): void;
}

export interface GenerationSettings {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
  /** Owners can pay for credit themselves. */
  readonly sellsCredit: boolean;
  readonly attempts: FailoverLimits;
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
interface JournalDurability {
  durable(sequence: number): true | Promise<boolean>;
  readonly healthy: boolean;
}
