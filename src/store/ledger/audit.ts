/** Every sum of the books, recomputed. `drifts` are the accounts whose running sum is not that. */
export interface StoreAudit {
  readonly credits: bigint;
  readonly charges: bigint;
  readonly losses: bigint;
  readonly writeOffs: bigint;
  readonly drifts: readonly Drift[];
}

export interface Drift {
  readonly account: string;
  readonly driftNano: bigint;
}

/** An audit reads everything, in so many milliseconds at most. */
export const AUDIT_MS = 600_000;
