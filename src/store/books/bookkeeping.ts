import type { AccountStore } from "../../customers/accounts/account-store.ts";
import type { KeyStore } from "../../customers/keys/key-store.ts";
import type { Keyring } from "../../customers/keys/keyring.ts";
import type { Runs } from "../../customers/keys/runs.ts";
import type { BalanceTotals } from "../../ledger/balance-view.ts";
import type { CounterId } from "../../ledger/counter.ts";
import type { CreditBooks } from "../../ledger/credit.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { recoveredReceipt } from "../../ledger/receipt.ts";
import type { RemoteRoute } from "../../routing/affinity.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { Figure } from "../../units/figure.ts";
import type { BalanceId } from "../../units/id.ts";
import type { Log } from "../../units/log.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { SqlChangeLog } from "../customers/change-log.ts";
import { SqlEventReader } from "../customers/events.ts";
import { SqlMailHours } from "../customers/mail-hours.ts";
import { SqlOperatorStore } from "../customers/operator-store.ts";
import { SqlOwnWebhookStore, SqlWebhookStore } from "../customers/webhook-store.ts";
import type { DataFolder } from "../data-folder.ts";
import type { Database } from "../database/database.ts";
import { SqlExportStore } from "../export/export-store.ts";
import type { BooksOptions } from "../journal/books.ts";
import { folderDisk, probeSync } from "../journal/disk.ts";
import type { ReceiptReader, UnbookedReceipts } from "../ledger/receipts.ts";
import type { StoreAudit } from "../ledger/sql-ledger-store.ts";
import {
  FleetStore,
  ModelVersionStore,
  type NodeOperations,
  SigningKeyStore,
  SqlPricesInForce,
} from "../nodes/fleet.ts";
import type { HeldAmount } from "../nodes/fleet-holds.ts";
import { SqlGasLineStore } from "../payments/gas-line-store.ts";
import { SqlPaymentStore } from "../payments/payment-store.ts";
import type { DurabilityMode } from "../store-config.ts";
import type { KeyActivity, KeyActivityScope } from "../usage/key-activity.ts";
import type { Spending, SpendingScope } from "../usage/spending.ts";
import type { UsageScope } from "../usage/usage.ts";
import type { UsageSums } from "../usage/usage-sums.ts";
import { SqlHostStates } from "./host-states.ts";
import { SqlMargins } from "./margins.ts";

/** Everything that outlives a request: in SQLite for one process, in PostgreSQL for many. */
export interface Bookkeeping extends SqlStores, ReceiptReader, UnbookedReceipts, CreditBooks {
  readonly ledger: Ledger;
  readonly journal: RequestJournal;
  readonly keys: KeyStore;
  readonly accounts: AccountStore;
  /** This process, among those that share the store; null where it is the only one. */
  readonly node: string | null;
  readonly nodes: NodeOperations;
  readonly keyring: Keyring;
  readonly runs: Runs;
  /** Requests can be admitted and recorded. */
  healthy(): boolean;
  balance(id: BalanceId): Promise<BalanceTotals>;
  spent(id: CounterId): Promise<NanoUsd>;
  /** By open requests at this moment. Read it before what is spent: see `FleetHolds`. */
  held(id: CounterId): Promise<HeldAmount>;
  usage(of: UsageScope): Promise<UsageSums | null>;
  keyActivity(of: KeyActivityScope, isNext: boolean): Promise<readonly KeyActivity[] | null>;
  spending(of: SpendingScope): Promise<Spending | null>;
  /**
   * Deletes a slice of the receipts from before then, and keeps their sums; returns how many went, none at
   * the end.
   */
  fold(before: EpochMs): Promise<number>;
  /** The sums recomputed; and what memory says otherwise. */
  audit(): Promise<StoreAudit>;
  /** To the other nodes of the store; absent where there can be none. */
  readonly notices?: ConversationNotices;
  /** The store's own disk refused: what was asked may well be done later. */
  diskRefused(error: unknown): boolean;
  figures(): readonly Figure[];
  close(): Promise<void>;
}

/** Where conversations are that the other nodes would send elsewhere: hints, which may be lost. */
interface ConversationNotices {
  send(routes: readonly RemoteRoute[]): Promise<void>;
  listen(take: (routes: readonly RemoteRoute[]) => void): void;
}

/** Where holds and ends become durable: see store/journal and store/journal/postgres-journal. */
export interface RequestJournal {
  durable(sequence: number): true | Promise<boolean>;
  readonly healthy: boolean;
  readonly syncs: number;
  readonly undurable: number;
  /** Durable ends that the store does not know yet. */
  readonly unappliedCount: number;
}

/** What the books need of the configuration. */
export interface BooksConfig {
  readonly durability: DurabilityMode;
  readonly generation: { readonly writeOffTokens: number };
}

export interface BookkeepingParts {
  readonly config: BooksConfig;
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly log: Log;
  /** Another life of this node has started, or the operator has declared it lost. */
  onLost(error: Error): void;
}

/** What both kinds of books open their journal with. */
export function journalOptions(
  { config, folder, clock, log }: BookkeepingParts,
  path: string,
): Omit<BooksOptions, "store"> {
  const relaxed = config.durability === "relaxed";
  const { syncing, slowMs } = probeSync(folder.path);
  log("disk", { sync_ms: Math.round(slowMs * 1_000) / 1_000, syncing, durability: config.durability });
  return {
    disk: folderDisk(path, slowMs),
    clock,
    relaxed,
    journalFileBytes: JOURNAL_FILE_BYTES,
    writeOffTokens: config.generation.writeOffTokens,
    defer: setImmediate,
    recoveredBody: recoveredReceipt,
    onRecovered: (orphans) => {
      if (orphans > 0) log("recovered", { open_holds: orphans });
    },
    onDamaged: ({ file, keptAs, byte, tornBytes, linesRead, linesLeftOut }) =>
      log("journal damaged", {
        file,
        kept_as: keptAs,
        byte,
        torn_bytes: tornBytes,
        lines_read_behind: linesRead,
        lines_left_out: linesLeftOut,
      }),
    onCutShort: ({ file, bookedBytes, foundBytes }) =>
      log("journal cut short", { file, booked_bytes: bookedBytes, found_bytes: foundBytes }),
    onDisk: (failure) =>
      failure === null ? log("disk accepts again", {}) : log("disk refuses", { error: failure }),
    onFault: (error) => log("books", { error: String(error) }),
  };
}

/** The store's recomputed books, held against what memory has spent, where that has not gone on since. */
export function withMemory(
  audit: StoreAudit,
  ledger: Ledger,
  appliedThrough: number,
  known: (id: CounterId) => number,
): StoreAudit {
  const drifts = [...audit.drifts];
  for (const { id, spent, changedBy } of ledger.counters.booked()) {
    if (changedBy > appliedThrough) continue;
    const drift = BigInt(known(id)) - BigInt(spent);
    if (drift !== 0n) drifts.push({ account: `memory ${id}`, driftNano: drift < 0n ? -drift : drift });
  }
  return { ...audit, drifts };
}

const JOURNAL_FILE_BYTES = 64 * 1024 * 1024;

/** The stores whose changes no node has to notice. */
export const sqlStores = (db: Database, clock: Pick<Clock, "now">) => ({
  events: new SqlEventReader(db),
  webhooks: new SqlWebhookStore(db),
  ownWebhooks: new SqlOwnWebhookStore(db),
  exports: new SqlExportStore(db),
  payments: new SqlPaymentStore(db, clock),
  gasLine: new SqlGasLineStore(db),
  signingKeys: new SigningKeyStore(db),
  fleet: new FleetStore(db),
  modelVersions: new ModelVersionStore(db),
  mailHours: new SqlMailHours(db),
  hostStates: new SqlHostStates(db),
  margins: new SqlMargins(db),
  pricesInForce: new SqlPricesInForce(db),
  changes: new SqlChangeLog(db),
  operators: new SqlOperatorStore(db),
});

export interface SqlStores extends Readonly<ReturnType<typeof sqlStores>> {}
