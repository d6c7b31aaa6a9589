import type { AuthorKind, ChangeAction } from "../../units/change-actions.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";

/** A change, as the log of changes is given it. It has no secret, no hash of one, and no address of a person. */
export interface ChangeEntry {
  readonly action: ChangeAction;
  /** The id or name of what is changed. */
  readonly subject: string;
  /** Whose owner may see it; null for what is the operator's alone. */
  readonly balance: BalanceId | null;
  /** What was there before, and what takes its place: the fields that differ. */
  readonly before: ChangedFields;
  readonly after: ChangedFields;
  /** Who it is by, where the request's credential does not say: somebody who signs in. */
  readonly by?: ChangeAuthor;
}

export type ChangedFields = Readonly<Record<string, unknown>>;

export interface ChangeAuthor {
  readonly kind: AuthorKind;
  readonly id: string;
  readonly name: string | null;
}

/** A row of the log. */
export interface LoggedChange extends Omit<ChangeEntry, "by"> {
  readonly id: ChangeId;
  readonly at: EpochMs;
  readonly by: ChangeAuthor;
  /** Where the request came from: an IPv4 /24 or an IPv6 /48. */
  readonly network: string;
  /** The request's `x-gateway-receipt`. */
  readonly request: string;
}

export type ChangeId = `chg_${string}`;

export interface ChangeFilter {
  readonly since: EpochMs | null;
  readonly until: EpochMs | null;
  /** The id or name of an author. */
  readonly by: string | null;
  readonly action: ChangeAction | null;
  readonly subject: string | null;
}

/** Whose changes an owner sees: of these balances, and of the account itself. */
export interface ChangeScope {
  readonly balances: readonly BalanceId[];
  readonly account: AccountId | null;
}

export interface ChangeLog {
  /**
   * For what is not in the store; durable when it resolves. Where several processes do the same, they name it alike, and
   * the first one's row of these seconds is the only one.
   */
  append(change: ChangeEntry, name?: string): Promise<void>;
  /** Newest first, from below `before`; of everybody where there is no scope. */
  list(
    scope: ChangeScope | null,
    filter: ChangeFilter,
    limit: number,
    before: string | null,
  ): Promise<readonly LoggedChange[]>;
  /** Deletes some that are older than `before`; returns how many, none at the end. */
  forget(before: EpochMs): Promise<number>;
}
