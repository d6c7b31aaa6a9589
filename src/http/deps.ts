import type { AccountDesk } from "../accounts/desk.ts";
import type { Catalog, SurfaceName } from "../catalog/catalog.ts";
import type { ErrorCode } from "../errors/codes.ts";
import type { Refusal } from "../errors/refusal.ts";
import type { Answer, Call } from "../generation/answer.ts";
import type { KeyDesk } from "../keys/desk.ts";
import type { Balance, Budget, Key } from "../keys/key.ts";
import type { Credit, Debit, TooMuch } from "../ledger/credit.ts";
import type { BalanceView } from "../ledger/ledger.ts";
import type { ByteBudget } from "../limits/byte-budget.ts";
import type { HostLoad } from "../limits/host-slots.ts";
import type { UnpaidBytes } from "../limits/unpaid-allowance.ts";
import type { HostReport } from "../routing/health.ts";
import type { RouteReport } from "../routing/route-report.ts";
import type { Roads } from "../routing/stop.ts";
import type { ReceiptFilter, ReceiptPage, StoredReceipt } from "../store/receipts.ts";
import type { Spending, SpendingScope } from "../store/spending.ts";
import type { UsageScope } from "../store/usage.ts";
import type { UsageSums } from "../store/usage-sums.ts";
import type { EpochMs } from "../units/clock.ts";
import type { BalanceId, ReceiptId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { Throttles } from "./address.ts";
import type { Networks } from "./networks.ts";
import type { StatusRoads } from "./pages/status-page.ts";

/** Everything that the HTTP floor needs. Functions reflect the latest reload. */
export interface HttpDeps {
  /** Keys and budgets, with the clock and randomness to make them. */
  readonly desk: KeyDesk;
  /** Accounts, sessions and claims. */
  readonly accounts: AccountDesk;
  readonly throttles: Throttles;
  readonly adminToken: string;
  /** Told of a wrong one, and of the network that sent it. */
  wrongAdminToken(block: string): void;
  /** Told of an address that sent `X-Forwarded-For` and is not among the trusted proxies. */
  untrustedProxy(address: string): void;
  settings(): HttpSettings;
  generate(surface: SurfaceName, call: Call): Promise<Answer>;
  /** Told of a generation request that was refused before its body was read. */
  turnedAway(surface: SurfaceName, code: ErrorCode): void;
  /** The refusal for a key that has reached its rate, null for any other; takes nothing. */
  overRate(key: Key): Refusal | null;
  /** Memory for large bodies with prompts. */
  readonly bodies: ByteBudget;
  /** What is read of large bodies whose senders have no credit. */
  readonly unpaidBytes: Pick<UnpaidBytes, "take">;
  /** Memory for all other large bodies; see control-body. */
  readonly controlBodies: ByteBudget;
  /** Counts the input tokens of a Messages request; refused for a model that the key could not use. */
  countTokens(body: Uint8Array, asker: CountAsker): Promise<number | Refusal>;
  catalog(): Catalog;
  readonly roads: StatusRoads & Pick<Roads, "speed">;
  /** What routing and the hosts' lines show, over all workers. */
  hostsNow(): Promise<HostsNow>;
  /** Reports on every host of the catalog, as this process knows them. */
  hostReports(): readonly HostReport[];
  readonly ledger: LedgerDesk;
  readonly receipts: ReceiptReader;
  readonly nodes: NodeDesk;
  /** Sums over receipts; null when too many requests ask at once. */
  usage(of: UsageScope): Promise<UsageSums | null>;
  /** What everybody used; null when too many requests ask at once. */
  spending(of: SpendingScope): Promise<Spending | null>;
  readonly apps: Apps;
  /** Why no requests should be sent here; null while they should. */
  unready(): string | null;
  /** Told to stop: each connection is closed with its next answer. */
  stopping(): boolean;
  /** Reads the configuration again; a problem is what a bad file is refused with. */
  reload(): Promise<{ readonly problem: string | null; readonly needsRestart: readonly string[] }>;
  /** The configuration in force as JSON, without any secret. */
  configInForce(): object;
  /** Prometheus text, of all workers. */
  metrics(): Promise<string>;
  /** The store's own disk refused: what was asked may well be done later. */
  diskRefused(error: unknown): boolean;
  /** Told of every unhandled failure, without secrets, hashes or bodies. */
  onFault(error: unknown, receipt: ReceiptId): void;
}

/** Who wants to know how many tokens a prompt has, and from which network blocks, the narrowest first. */
export interface CountAsker {
  readonly key: Key;
  readonly blocks: readonly string[];
  readonly signal: AbortSignal;
}

/** What routing knows about routes, and how busy hosts are. */
export interface HostsNow {
  readonly routes: readonly RouteReport[];
  readonly lines: readonly HostLoad[];
}

export interface HttpSettings {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  readonly bodyBytes: number;
  readonly accountlessKeysPerAddressPerHour: number;
  /** How many days receipts are kept; null for ever. */
  readonly receiptDays: number | null;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
  /** Whether what is served may be read without a key. */
  readonly catalogIsPublic: boolean;
  /** Whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: Networks;
}

/** The pages that are applications, and the files that they load. */
export interface Apps {
  /** Names of the files that an application starts with. */
  entry(app: "dashboard" | "admin"): Promise<{ readonly script: string; readonly style: string }>;
  /** Null when there is none of this name. A name is never used for another content. */
  file(name: string): Promise<{ readonly type: string; readonly bytes: Uint8Array<ArrayBuffer> } | null>;
}

/** What people may see of the ledger, and credit. */
export interface LedgerDesk {
  balance(id: BalanceId): Promise<BalanceView>;
  keyUse(key: Key, at: EpochMs): Promise<KeyUse>;
  budgetUse(budget: Budget, at: EpochMs): Promise<{ readonly spent: NanoUsd; readonly held: NanoUsd }>;
  /** Free requests of the present UTC day, by the allowance that has the fewest left. */
  openTier(
    balance: Balance,
    blocks: readonly string[],
    at: EpochMs,
  ): Promise<{ readonly limit: number; readonly used: number }>;
  /**
   * Credits a balance, durably, once for each idempotency key. Returns what was credited under the key, now
   * or before; null when the balance would have been credited with more in all than is counted exactly.
   */
  credit(credit: Credit): Promise<Credit | null>;
  /**
   * Takes credit back, durably, once for each idempotency key. Returns what was done under the key, now or
   * before; or what is available, where that is less, and then nothing was taken.
   */
  debit(debit: Debit): Promise<Credit | TooMuch>;
  /** Newest first; what was taken back has an amount below zero. */
  credits(balance: BalanceId, limit: number): Promise<readonly Credit[]>;
  audit(): Promise<LedgerAudit>;
}

/** Spent in the present day and month, and held by open requests. */
export interface KeyUse {
  readonly day: NanoUsd;
  readonly month: NanoUsd;
  readonly held: NanoUsd;
}

/** The invariant, recomputed from the entries: credits − charges − open holds = available. */
export interface LedgerAudit {
  readonly creditsNano: bigint;
  readonly chargesNano: bigint;
  readonly heldNano: bigint;
  readonly availableNano: bigint;
  readonly writeOffsNano: bigint;
  readonly lossesNano: bigint;
  /** Every running sum, in the store or in memory, that is not what the entries say. */
  readonly drifts: readonly { readonly account: string; readonly driftNano: bigint }[];
}

/** Gateways that share a store; none, where one process has its own. */
export interface NodeDesk {
  list(): Promise<readonly NodeReport[]>;
  /** Frees what a node was granted that has no lease any more. */
  close(name: string): Promise<"closed" | "alive" | "unknown">;
}

export interface NodeReport {
  readonly name: string;
  readonly state: "alive" | "silent" | "left";
  readonly leaseUntil: EpochMs;
  readonly epoch: number;
  /** Of balances: granted, and not shipped as spent. */
  readonly reserved: NanoUsd;
}

export interface ReceiptReader {
  receipt(id: ReceiptId): Promise<StoredReceipt | null>;
  /** Newest first, from below `before`. */
  receipts(
    balance: BalanceId,
    filter: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): Promise<ReceiptPage>;
}
