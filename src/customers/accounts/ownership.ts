import type { EpochMs } from "../../units/clock.ts";
import { DAY_MS } from "../../units/clock.ts";
import type { AccountId } from "../../units/id.ts";
import type { Claim } from "./account.ts";
import type { BalanceRecord } from "./account-store.ts";

/**
 * Who a balance belongs to, as a small state machine. Set-up makes it nobody's, a first sign-in makes it its
 * account's own; the rest is drawn in docs/decisions/0008-accounts.md:
 *
 *   nobody's ──claim by email──▶ offered ──account confirms──▶ claimed ──7 days──▶ kept
 *   nobody's ──claim by wallet──────────────────────────────▶ claimed
 *   offered ──account declines, 7 days──▶ nobody's
 *   offered ──recovery secret withdraws──▶ reclaimed
 *   claimed ──recovery secret undoes──▶ reclaimed
 *   offered, claimed, kept ──operator detaches──▶ reclaimed
 *
 * Only the key made at set-up, and its rotations, may claim what is nobody's. What was reclaimed is claimed, or offered,
 * with the recovery secret next to a key: a thief who claimed it still has the key. While a claim
 * can be undone, the account may do nothing to the balance that could not be taken back from it.
 */
export type BalanceOwnership =
  | { readonly state: "nobody's" | "reclaimed" }
  | { readonly state: "offered"; readonly claim: Claim }
  | { readonly state: "claimed"; readonly account: AccountId; readonly undoUntil: EpochMs }
  | { readonly state: "kept" | "own"; readonly account: AccountId };

export function ownership(
  { owner, claimedAt, claim, reclaims }: BalanceRecord,
  now: EpochMs,
): BalanceOwnership {
  if (owner === null) {
    if (claim !== null && isPending(claim, now)) return { state: "offered", claim };
    return { state: reclaims > 0 ? "reclaimed" : "nobody's" };
  }
  const account = owner.account.id;
  if (claimedAt === null) return { state: "own", account };
  const undoUntil = undoEnds(claimedAt);
  return now < undoUntil ? { state: "claimed", account, undoUntil } : { state: "kept", account };
}

export const undoEnds = (claimedAt: EpochMs): EpochMs => (claimedAt + UNDO_DAYS * DAY_MS) as EpochMs;

/**
 * A claim waits this long for the owner of the address. It must end sometime: a claim for a mistyped address
 * would block its balance for ever, and one made for somebody else's address would lie in wait for them.
 */
export const CLAIM_DAYS = 7;

export const isPending = ({ at }: Claim, now: EpochMs): boolean => now < claimEnds({ at });

export const claimEnds = ({ at }: Pick<Claim, "at">): EpochMs => (at + CLAIM_DAYS * DAY_MS) as EpochMs;

/** So long does the recovery secret take a claimed balance back. */
export const UNDO_DAYS = 7;
