/** What the API answers with, as far as the pages read it. */
export interface KeyAnswer {
  readonly id: string;
  readonly prefix: string;
  readonly name: string | null;
  readonly balance_id: string;
  readonly state: "active" | "rotated" | "expired" | "revoked";
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly rpm_limit: number | null;
  readonly tpm_limit: number | null;
  readonly daily_limit_usd: number | null;
  readonly monthly_limit_usd: number | null;
  readonly allowed_models: readonly string[] | null;
  readonly budget: string | readonly string[] | null;
  readonly used_day_usd: number;
  readonly used_month_usd: number;
  readonly held_usd: number;
}

export interface MintedAnswer extends KeyAnswer {
  /** The plaintext, in this one answer only. */
  readonly key: string;
}

export interface SetUpAnswer extends MintedAnswer {
  readonly recovery_secret: string;
  readonly recovery_url: string;
}

export interface RotatedAnswer extends MintedAnswer {
  readonly old_key: { readonly id: string; readonly expires_at: string };
}

export interface MeAnswer {
  readonly balance_id: string;
  readonly balance_usd: number;
  readonly available_usd: number;
  readonly held_usd: number;
  readonly suspended: string | null;
  readonly open_tier: { readonly limit: number; readonly used: number; readonly resets_at: string };
  readonly account: AccountAnswer | null;
  /** Where the operator is reached: an address of a page, or of a mailbox with `mailto:`. */
  readonly contact: string | null;
}

export interface AccountAnswer {
  readonly id: string;
  readonly email?: string;
  readonly wallet?: string;
  readonly suspended?: string;
  /** Shown to whoever is not signed in: false while a claim waits for the owner of the address. */
  readonly confirmed?: boolean;
  /** So long may the recovery secret take the balance back from the account. */
  readonly undo_until?: string;
  /** The rest is shown to a session only. */
  readonly balances?: readonly string[];
  readonly claims?: readonly { readonly balance_id: string; readonly claimed_at: string }[];
}

export interface ClaimAnswer {
  readonly email?: string;
  readonly wallet?: string;
  readonly confirmed: boolean;
}

export interface WaitingClaimAnswer {
  readonly balance_id: string;
  readonly claimed_at: string;
  readonly expires_at: string;
  readonly balance_usd: number;
  readonly balance_created_at: string;
}

export interface SessionAnswer {
  readonly session: string;
}

/** Whom a mailed link signs in. */
export interface LinkAnswer {
  readonly email: string;
  readonly claimed_balance_id: string | null;
}

export interface OpenSessionAnswer {
  readonly id: string;
  readonly signed_in_at: string;
  readonly expires_at: string;
  readonly current: boolean;
}

export interface RecoveryAnswer {
  readonly recovery_secret: string;
  readonly recovery_url: string;
}

export interface BudgetAnswer {
  readonly id: string;
  readonly name: string;
  readonly cap_usd: number;
  readonly window: BudgetWindow;
  readonly used_usd: number;
  readonly held_usd: number;
  readonly resets_at: string | null;
}

export type BudgetWindow = "day" | "week" | "month" | "total";

export interface PriceAnswer {
  readonly input: number;
  readonly audio_input?: number;
  readonly output: number;
  readonly audio_output?: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly cache_write_1h?: number;
}

export interface ModelAnswer {
  readonly id: string;
  readonly name: string;
  readonly context_length: number;
  readonly max_output_tokens: number;
  readonly price: PriceAnswer | null;
  readonly surfaces: readonly string[];
  readonly free: boolean;
  readonly available: boolean;
}

export interface ReceiptAnswer {
  readonly id: string;
  readonly created_at: string;
  readonly state: ReceiptState;
  readonly surface: string;
  readonly key_id: string;
  readonly model_requested: string | null;
  readonly model: string | null;
  readonly host: string | null;
  readonly attempts: readonly AttemptAnswer[];
  readonly stream: boolean;
  readonly tokens: TokensAnswer;
  readonly price: PriceAnswer | null;
  readonly cost_usd: number;
  readonly held_usd: number;
  readonly write_off: boolean;
  readonly write_off_usd: number;
  readonly first_token_ms: number | null;
  readonly total_ms: number | null;
  readonly error_code: string | null;
}

export type ReceiptState = "settled" | "written_off" | "refused" | "failed" | "cancelled" | "recovered";

export interface AttemptAnswer {
  readonly host: string;
  readonly outcome: string;
  readonly ms: number;
  readonly detail: string | null;
}

export interface TokensAnswer {
  readonly input: number;
  /** Of `input`. */
  readonly audio_input?: number;
  readonly cache_read: number;
  readonly cache_write: number;
  /** Of `cache_write`. */
  readonly cache_write_1h?: number;
  readonly output: number;
  /** Of `output`. */
  readonly audio_output?: number;
  readonly reasoning: number;
  readonly source: "host" | "counted";
}

export interface CreditAnswer {
  /** Below zero where it was taken back. */
  readonly amount_usd: number;
  readonly note: string | null;
  readonly credited_at: string;
}

export interface UsageAnswer {
  readonly since: string;
  readonly stretch_ms: number;
  readonly stretches: readonly (UsageSum & { readonly start: string })[];
  readonly routes: readonly (UsageSum & {
    readonly host: string;
    readonly first_token_ms: { readonly p50: number | null; readonly p95: number | null };
  })[];
  readonly truncated: boolean;
}

export interface UsageSum {
  readonly model: string;
  readonly requests: number;
  readonly failed: number;
  readonly cost_usd: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
}
