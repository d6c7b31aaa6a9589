/**
 * What happened in a storm, as those saw it who asked: nothing of it is taken from the gateways' own word but
 * the answers themselves. Times are of one clock, in milliseconds; amounts are in nano-dollars.
 */
export interface History {
  /** A request holds so much at most. */
  readonly worstCaseNano: number;
  readonly keys: ReadonlyMap<string, KeyFacts>;
  readonly requests: readonly Request[];
  readonly revokes: readonly Revoke[];
  /** Every attempt to credit; those with the same idempotency key count once. */
  readonly credits: readonly Credit[];
  /** Every attempt to set a limit. */
  readonly limits: readonly LimitSet[];
  /**
   * From then on everything was healed, every gateway had said that it is ready, and no connection that was
   * cut off is waited for.
   */
  readonly calmMs: number;
  /** What gateways said when they ended by themselves. */
  readonly unexpectedEnds: readonly string[];
  readonly end: Outcome;
}

/** By its id. */
export interface KeyFacts {
  readonly balance: string;
  /** Limits that its requests count against, next to its balance: a name of our own for each. */
  readonly limits: readonly string[];
}

export interface Attempt {
  readonly sentMs: number;
  /** Null when no answer came, or one that says nothing of what became of it. */
  readonly answeredMs: number | null;
}

export interface Request {
  readonly key: string;
  readonly gateway: string;
  readonly sentMs: number;
  /** When the answer was there to its end, or the client gave up. */
  readonly endedMs: number;
  /** Null when none came. */
  readonly status: number | null;
  readonly code: string | null;
  readonly receipt: string | null;
  /** By the usage of an answer that came whole; null for every other one. */
  readonly costNano: number | null;
}

export interface Revoke extends Attempt {
  readonly key: string;
}

export interface Credit extends Attempt {
  readonly balance: string;
  readonly idempotencyKey: string;
  /** Below zero where it was taken back. */
  readonly nano: number;
}

export interface LimitSet extends Attempt {
  readonly limit: string;
  readonly nano: number;
}

/** Once everything was healed, and what was left had been spent. */
export interface Outcome {
  readonly receipts: readonly Receipt[];
  readonly audits: readonly Audit[];
  readonly balances: readonly { readonly balance: string; readonly leftNano: number }[];
  /** What the gateways say has been used of a limit. */
  readonly limits: readonly { readonly limit: string; readonly usedNano: number }[];
}

export interface Receipt {
  readonly id: string;
  readonly key: string;
  readonly state: string;
  readonly costNano: number;
}

export interface Audit {
  readonly gateway: string;
  readonly ok: boolean;
  readonly driftNano: number;
  readonly creditsNano: number;
  readonly chargesNano: number;
}
