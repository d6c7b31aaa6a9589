import type { ReceiptAnswer, UsageAnswer, UsageSum } from "../answers.ts";

/** What the operator's endpoints answer with, as far as the pages and the commands read it. */
export interface BalanceRow {
  readonly id: string;
  readonly account_id: string | null;
  readonly suspended: string | null;
  readonly closed: boolean;
  readonly created_at: string;
  readonly balance_usd: number;
  readonly available_usd: number;
  readonly held_usd: number;
  readonly live_keys?: number;
}

export interface OwnedReceipt extends ReceiptAnswer {
  readonly balance_id: string;
}

export interface Decision {
  readonly at: string;
  /** Null: a suspension was lifted. */
  readonly reason: string | null;
  readonly by: string;
  readonly note: string | null;
}

export interface HostRow {
  readonly id: string;
  readonly base_url: string;
  readonly speaks: readonly string[];
  readonly has_api_key: boolean;
  readonly state: "available" | "degraded" | "unproven" | "resting" | "paused";
  readonly max_concurrent: number | null;
  readonly limit: number | null;
  readonly cut_workers: number;
  readonly in_flight: number;
  readonly waiting: number;
  readonly routes: readonly RouteRow[];
}

/**
 * How many requests a host is given at once; null where that is only what a process can carry, set by nobody
 * and never cut.
 */
export const limitInForce = ({ limit, max_concurrent, cut_workers }: HostRow): number | null =>
  max_concurrent !== null || cut_workers > 0 ? limit : null;

export interface RouteRow {
  readonly model: string;
  readonly host_model: string;
  readonly priced: boolean;
  readonly free: boolean;
  readonly verified_free: boolean;
  readonly usable: boolean;
  readonly resting_workers: number;
  readonly unproven_workers: number;
  readonly served: number;
  readonly failed: number;
  readonly last_failure: { readonly at: string; readonly detail: string } | null;
  readonly first_token_ms: number | null;
  readonly tokens_per_second: number | null;
}

/** Nano-dollars as text: sums may be larger than a number holds exactly. */
export interface AuditAnswer {
  readonly ok: boolean;
  readonly drift_nano: string;
  readonly credits_nano: string;
  readonly charges_nano: string;
  readonly held_nano: string;
  readonly available_nano: string;
  readonly write_offs_nano: string;
  readonly losses_nano: string;
  readonly drifts: readonly { readonly account: string; readonly drift_nano: string }[];
}

export interface EverybodysUsage extends Pick<UsageAnswer, "since" | "stretch_ms" | "stretches"> {
  readonly total: ComparedSum;
  readonly balances: Ranking<UsedBalance>;
  readonly keys: Ranking<UsedKey>;
  readonly models: Ranking<{ readonly model: string }>;
  readonly hosts: Ranking<{ readonly host: string }>;
  /** Receipts from before then were not counted; null when all were. */
  readonly counted_since: string | null;
}

export interface UsedBalance {
  readonly balance_id: string;
  readonly account_id: string | null;
  readonly email: string | null;
  readonly wallet: string | null;
}

export interface UsedKey {
  readonly key_id: string;
  readonly name: string | null;
  readonly prefix: string | null;
  readonly balance_id: string | null;
}

export interface ComparedSum extends Omit<UsageSum, "model"> {
  /** At the same time a period earlier; null where that is not known. */
  readonly cost_before_usd: number | null;
}

export interface Ranking<Row> {
  readonly data: readonly (Row & ComparedSum)[];
  readonly rest: ComparedSum & { readonly rows: number };
}
