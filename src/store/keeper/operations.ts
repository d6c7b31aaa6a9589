import type { BalanceCursor, RemovedUnused } from "../../keys/key-store.ts";
import type { Grant, Inquiry, Statement } from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import type { Credit, Debit, TooMuch } from "../../ledger/credit.ts";
import type { MembershipChange } from "../../ledger/membership.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NotedChange } from "../changes.ts";
import type { Unapplied } from "../journal/journal.ts";
import type { NodeReport } from "../nodes.ts";
import type { Performed, RehearsedStatement } from "./rehearsal.ts";

/**
 * What a keeper does for nodes: everything that writes the database, and what only it knows. Durable when it
 * resolves. All that goes in and out is JSON. Nodes read the database themselves.
 */
export interface KeeperOperations {
  lastEpoch(node: string): Promise<number | null>;
  join(node: string): Promise<{ epoch: number; seen: number }>;
  renew(node: string, epoch: number, seen: number): Promise<readonly MembershipChange[]>;
  unseen(version: number): Promise<boolean>;
  leave(node: string, epoch: number): Promise<void>;
  recall(balance: BalanceId, counters: readonly CounterId[]): Promise<number>;
  list(): Promise<readonly NodeReport[]>;
  close(node: string): Promise<"closed" | "alive" | "unknown">;

  /** Of one node; in the order in which they are answered. */
  settle(statements: readonly Statement[]): Promise<readonly Grant[]>;
  retire(node: string, counters: readonly CounterId[]): Promise<void>;
  inquiries(node: string): Promise<readonly Inquiry[]>;

  ship(node: string, epoch: number | null, batch: readonly Unapplied[]): Promise<void>;
  /**
   * Books the ends in the node's journal, which is in this folder, up to these places in its files. False, and nothing is
   * booked, where they cannot all be read there.
   */
  shipFrom(
    folder: string,
    node: string,
    epoch: number | null,
    places: readonly (readonly [file: number, bytes: number])[],
  ): Promise<boolean>;
  reached(node: string): Promise<readonly [file: number, bytes: number][]>;
  /** Whether everything that was shipped survives a power cut, and no backup is being made of what was before. */
  checkpoint(): Promise<boolean>;
  forgetReachedBefore(node: string, file: number): Promise<void>;
  credit(credit: Credit): Promise<Credit | null>;
  debit(debit: Debit): Promise<Credit | TooMuch>;
  fold(before: EpochMs): Promise<number>;

  perform(statements: readonly RehearsedStatement[], changes: readonly NotedChange[]): Promise<Performed>;
  /** With the change that nodes must notice before it is answered; null for none. */
  removeUnused(
    before: EpochMs,
    from: BalanceCursor,
  ): Promise<{ readonly removed: RemovedUnused; readonly version: number | null }>;
}

/** What the keeper says by itself, once it has named its version. */
export type KeeperAnnouncement =
  | { readonly said: "changed" }
  | { readonly said: "recalled"; readonly asker: string; readonly inquiry: Inquiry };

export interface KeeperCall {
  readonly id: number;
  readonly call: keyof KeeperOperations;
  readonly args: readonly unknown[];
}

export type KeeperAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failed: { readonly name: string; readonly message: string } };

export interface KeeperHello {
  readonly protocol: number;
}
