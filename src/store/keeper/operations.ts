import type { BalanceCursor, RemovedUnused } from "../../customers/keys/key-store.ts";
import type { Grant, Inquiry, Statement } from "../../ledger/authority.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { HeldAnswer, HeldExchange, HeldQuestion } from "../books/fleet-holds.ts";
import type { NodeAuthority, NodeRegistry, SharedLedgerStore } from "../books/node-store.ts";
import type { NotedChange } from "../changes.ts";
import type { ShippedEnds } from "../journal/node-books.ts";
import type { Performed, RehearsedStatement } from "./rehearsal.ts";

/**
 * What a keeper does for nodes: everything that writes the database, and what only it knows. Durable when it
 * resolves. All that goes in and out is JSON. Nodes read the database themselves.
 */
export interface KeeperOperations
  extends NodeRegistry,
    Pick<NodeAuthority, "retire" | "inquiries">,
    Pick<SharedLedgerStore, "credit" | "debit" | "decideClaim" | "fold">,
    Pick<ShippedEnds, "ship" | "forgetReachedBefore"> {
  lastEpoch(node: string): Promise<number | null>;
  join(node: string): Promise<{ epoch: number; seen: number }>;
  /** Of one node; in the order in which they are answered. */
  settle(statements: readonly Statement[]): Promise<readonly Grant[]>;
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
  sendHeldQuestion: HeldExchange["sendQuestion"];
  sendHeldAnswer: HeldExchange["sendAnswer"];
  /** Whether everything that was shipped survives a power cut, and no backup is being made of what was before. */
  checkpoint(): Promise<boolean>;

  perform(statements: readonly RehearsedStatement[], changes: readonly NotedChange[]): Promise<Performed>;
  /** With the change that nodes must notice before it is answered; null for none. */
  removeUnused(
    before: EpochMs,
    from: BalanceCursor,
  ): Promise<{ readonly removed: RemovedUnused; readonly version: number | null }>;
}

/** What the keeper says by itself, once it has named its version. */
export type KeeperAnnouncement =
  | { readonly kind: "changed" }
  | { readonly kind: "recalled"; readonly asker: string; readonly inquiry: Inquiry }
  | { readonly kind: "held"; readonly message: HeldQuestion | HeldAnswer };

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
