import type { AccountStore } from "../../customers/accounts/account-store.ts";
import type { KeyStore } from "../../customers/keys/key-store.ts";
import type { Inquiry } from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import type { Journal, Ledger } from "../../ledger/ledger.ts";
import type { Registry } from "../../ledger/node-lease.ts";
import type { RemoteRoute } from "../../routing/affinity.ts";
import type { BalanceId } from "../../units/id.ts";
import type { BookkeepingParts, RequestJournal, SqlStores } from "../books/bookkeeping.ts";
import type { NodeAuthority } from "../ledger/grants.ts";
import type { UnbookedReceipts } from "../ledger/receipts.ts";
import type { SqlLedgerStore } from "../ledger/sql-ledger-store.ts";
import type { NodeOperations } from "./fleet.ts";
import type { HeldAnswer, HeldExchange, HeldQuestion } from "./fleet-holds.ts";

/** What the nodes of a gateway share, and know each other by: PostgreSQL, or the keeper of a SQLite database. */
export interface NodeStore {
  readonly registry: NodeRegistry;
  readonly authority: NodeAuthority;
  readonly ledger: SqlLedgerStore;
  readonly stores: SqlStores;
  /** What `UsageReader` reads. */
  readonly usagePath: string;
  /** A change resolves once `acknowledged` has for its version. */
  keys(acknowledged: Acknowledged): KeyStore;
  accounts(acknowledged: Acknowledged): AccountStore;
  /** The node's journal; what its last life left in it is booked. */
  openBooks(parts: BookkeepingParts, node: string): Promise<FollowingBooks>;
  /** Begins the node's next epoch. */
  join(node: string): Promise<{ epoch: number; seen: number }>;
  readonly held: HeldExchange;
  /** Absent where the nodes have another way to tell each other. */
  notifyConversations?(node: string, routes: readonly RemoteRoute[]): Promise<void>;
  /** Notices may be missed, so nodes also poll. */
  listen(onNotice: (notice: NodeNotice) => void): void;
  /** What else a node does for the others as long as it has a lease; returns what ends it. */
  serveOthers(usable: () => boolean): () => void;
  close(): Promise<void>;
}

type Acknowledged = (version: number) => Promise<void>;

export interface NodeRegistry extends Registry, NodeOperations {
  /**
   * Has every node give back what it does not use of these counters. Returns the change that they acknowledge
   * by it.
   */
  recall(balance: BalanceId, counters: readonly CounterId[]): Promise<number>;
}

/** What nodes notify each other of. A node's own notices arrive too. */
export type NodeNotice =
  /** There are changes to read. */
  | { readonly kind: "changed" }
  /** `asker` runs short of a counter. */
  | { readonly kind: "recalled"; readonly asker: string; readonly inquiry: Inquiry }
  /** A node asks what requests hold, or answers. */
  | { readonly kind: "held"; readonly message: HeldQuestion | HeldAnswer }
  /** Where conversations are. */
  | { readonly kind: "conversations"; readonly node: string; readonly routes: readonly RemoteRoute[] };

/** What all kinds of nodes' books can do. */
export interface FollowingBooks extends UnbookedReceipts {
  readonly journal: RequestJournal & Journal & { flushed(): Promise<boolean> };
  /** Ends that were shipped since start, and the batches they went in. */
  readonly shipped: number;
  readonly batches: number;
  readonly appliedThrough: number;
  follow(ledger: Ledger, epoch: number, onForgotten: (counters: readonly CounterId[]) => void): void;
  catchUp(): Promise<void>;
  /** True when nothing stayed. */
  close(): Promise<boolean>;
}
