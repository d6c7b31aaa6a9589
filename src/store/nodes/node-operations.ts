import type { EpochMs } from "../../units/clock.ts";
import type { NanoUsd } from "../../units/usd.ts";

/** Gateways that share a store; none, where one process has its own. */
export interface NodeOperations {
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
