import type { Feature } from "../api/about.ts";
import type { ConfigAnswer } from "../api/admin.ts";
import type { ModelListAnswer, RestoredAnswer } from "../api/model-lists.ts";
import type { CatalogWithLists, SurfaceName } from "../catalog/catalog.ts";
import type { AccountDeps } from "../customers/accounts/deps.ts";
import type { EventReader } from "../customers/events/event-reader.ts";
import type { OperatorsWebhooks } from "../customers/events/operators-webhooks.ts";
import type { OwnWebhooks } from "../customers/events/own-webhooks.ts";
import type { KeyDeps } from "../customers/keys/deps.ts";
import type { Key } from "../customers/keys/key.ts";
import type { Mailer } from "../customers/mail/mailer.ts";
import type { GenerationAnswer, GenerationCall } from "../generation/answer.ts";
import type { CountRequester } from "../generation/count-tokens.ts";
import type { Counting } from "../generation/counting/counting.ts";
import type { ReceiptSigner } from "../generation/signing/receipt-signer.ts";
import type { LiveRoutes } from "../hosts/route-report.ts";
import type { Throttles } from "../ledger/limits/address.ts";
import type { UnpaidBytes, UnpaidRequests } from "../ledger/limits/unpaid-allowance.ts";
import type { PaymentMethods } from "../payments/rails/payment-methods.ts";
import type { Health } from "../routing/health.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import type { LedgerOperations } from "../store/ledger/ledger-operations.ts";
import type { ReceiptReader } from "../store/ledger/receipts.ts";
import type { ByteBudget } from "../units/byte-budget.ts";
import type { Clock } from "../units/clock.ts";
import type { ErrorCode } from "../units/errors/codes.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import type { ReceiptId } from "../units/id.ts";
import type { Networks } from "../units/networks.ts";
import type { OperatorRole } from "../units/operator-roles.ts";
import type { RandomBytes } from "../units/random.ts";
import type { SecretHash } from "../units/secret-hash.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { WrongTokens } from "./admin/wrong-tokens.ts";
import type { UntrustedProxies } from "./untrusted-proxies.ts";
import type { OpenSockets } from "./websocket/open-sockets.ts";

/** The rooms that endpoints use; each endpoint takes what it needs of them. */
export interface HttpDeps {
  readonly config: ServedConfig;
  readonly lifecycle: {
    /** Why no requests should be sent here; null while they should. */
    unready(): string | null;
    /** Each connection is closed with its next answer. */
    readonly isStopping: boolean;
  };
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Keys and budgets. */
  readonly keyDeps: KeyDeps;
  /** Accounts, sessions and claims. */
  readonly accounts: AccountDeps & { readonly mailer: Pick<Mailer, "heldBack"> };
  /** From the store: runs, sums over receipts, nodes. */
  readonly books: Pick<
    Bookkeeping,
    "runs" | "usage" | "keyActivity" | "spending" | "nodes" | "changes" | "operators" | "diskRefused"
  > & { readonly events: EventReader; readonly exports: Pick<Bookkeeping["exports"], "status"> };
  readonly ledger: LedgerOperations;
  readonly receipts: ReceiptReader;
  readonly receiptSigner: ReceiptSigner;
  /** Null where none are configured. */
  readonly payments: PaymentMethods | null;
  /** Where owners have events sent. */
  readonly webhooks: OwnWebhooks;
  readonly operatorsWebhooks: Pick<OperatorsWebhooks, "list" | "test">;
  readonly generation: Generation;
  /** WebSockets, and the conversations that they continue. */
  readonly sockets: OpenSockets;
  /** Memory for large bodies. */
  readonly bodies: {
    /** For those with prompts. */
    readonly prompts: ByteBudget;
    /** For all others; see control-body. */
    readonly control: ByteBudget;
    /** What is read of those whose senders have no credit. */
    readonly unpaid: UnpaidBytes;
  };
  readonly unpaidRequests: UnpaidRequests;
  readonly throttles: Throttles;
  /** Records addresses that sent `X-Forwarded-For` and are not among the trusted proxies. */
  readonly untrustedProxies: UntrustedProxies;
  readonly admin: {
    readonly token: string;
    /** Records a wrong admin token; its answer waits for the promise. */
    readonly wrongTokens: Pick<WrongTokens, "note">;
  };
  readonly health: Health;
  /** This process together with the other workers of the machine. */
  readonly processes: {
    /** What routing and the hosts' lines show. */
    hosts(): Promise<LiveRoutes>;
    /** Prometheus text. */
    metrics(): Promise<string>;
  };
  /** The pages that are applications, and the files that they load. */
  readonly apps: {
    /** Names of the files that an application starts with. */
    entry(app: "dashboard" | "admin"): Promise<{ readonly script: string; readonly style: string }>;
    /** Null when there is none of this name. A name is never used for another content. */
    file(name: string): Promise<{ readonly type: string; readonly bytes: Uint8Array<ArrayBuffer> } | null>;
  };
  /** Called with every unhandled failure, without secrets, hashes or bodies. */
  onFault(error: unknown, receipt: ReceiptId): void;
}

/** The configuration in force; its members follow reloads. */
interface ServedConfig {
  readonly settings: HttpSettings;
  readonly catalog: CatalogWithLists;
  /** The version of the store's tables. */
  readonly schema: number;
  readonly modelLists: ModelLists;
  /** As JSON, without any secret. */
  view(): ConfigAnswer;
  /** Reads the file again; a problem is what a bad file is refused with. */
  reload(): Promise<{ readonly problem: string | null; readonly needsRestart: readonly string[] }>;
  /** By node: in which settings it differs from this one. */
  nodeDifferences(): Promise<ReadonlyMap<string, readonly string[]>>;
}

interface Generation {
  generate(surface: SurfaceName, call: GenerationCall): Promise<GenerationAnswer>;
  /** The same, where a request that names an `Idempotency-Key` may have been sent before. */
  generateOnce(surface: SurfaceName, call: GenerationCall): Promise<GenerationAnswer | Refusal>;
  /** Called with a generation request that was refused before its body was read. */
  turnedAway(surface: SurfaceName, code: ErrorCode): void;
  /** The refusal for a key that has reached its rate, null for any other; takes nothing. */
  overRate(key: Key): Refusal | null;
  /** Counts the input tokens of a Messages request; refused for a model that the key could not use. */
  countTokens(body: Uint8Array, asker: CountRequester): Promise<number | Refusal>;
  readonly compaction: Counting["compaction"];
}

export interface HttpSettings {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  readonly bodyBytes: number;
  readonly accountlessKeysPerAddressPerHour: number;
  /** Mails that strangers may have sent, all together. */
  readonly mailsPerHour: number;
  /** How many days receipts are kept; null for ever. */
  readonly receiptDays: number | null;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
  /** Below so much credit owners are notified, unless they say otherwise; null for no notice. */
  readonly lowCredit: NanoUsd | null;
  /** Whether what is served may be read without a key. */
  readonly catalogIsPublic: boolean;
  /** Whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: Networks;
  /** Operators of the configuration. */
  readonly operators: readonly ConfiguredOperator[];
  /** What is served besides. */
  readonly features: ReadonlySet<Feature>;
}

interface ConfiguredOperator {
  readonly name: string;
  readonly role: OperatorRole;
  readonly tokenHash: SecretHash;
}

/** Models and prices that come from lists while the gateway runs. */
export interface ModelLists {
  apply(list: ModelList): Promise<ModelListAnswer | Refusal>;
  undo(): Promise<RestoredAnswer | Refusal>;
}

export interface ModelList {
  /** Where it comes from, for the record. */
  readonly source: string;
  readonly rows: readonly unknown[];
  /** Models that are applied although they seem wrong. */
  readonly accept: readonly string[];
  /** False: the difference is only shown. */
  readonly apply: boolean;
}
