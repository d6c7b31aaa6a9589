import type { EpochMs } from "../../units/clock.ts";

/** Models and prices that the operator applied from model lists, on top of what the configuration offers. */
export interface ModelVersion {
  /** From 1; the highest one is in force. */
  readonly number: number;
  readonly at: EpochMs;
  /** The model list that was applied last, as the operator named it. */
  readonly source: string;
  /** The version to go back to; 0 for none, which is what the configuration offers. */
  readonly previous: number;
  /** Rows of models at hosts, as JSON: see config/synced-models. */
  readonly models: string;
}

/** Where all processes that share a store find the same models. */
export interface ModelVersionStore {
  /** The number of the one in force; 0 for none. */
  latest(): Promise<number>;
  /** Null where none was applied under this number, or it is too old to be kept. */
  version(number: number): Promise<ModelVersion | null>;
  /** Durable. False where another process has applied one of that number, and nothing was changed. */
  add(version: ModelVersion): Promise<boolean>;
}

/** Older versions are deleted. */
export const MAX_KEPT_VERSIONS = 100;
