import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import type { AccountId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { Balance, Root } from "./key.ts";

export const SET_UP: Root = 0;

/** Who acts on keys: a key on itself, the operator, or the owner by one of two credentials. */
export type Actor =
  | { readonly by: "key" | "operator" }
  | { readonly by: "recovery"; readonly secret: SecretHash }
  | { readonly by: "session"; readonly account: AccountId };

export const OPERATOR: Actor = { by: "operator" };

/**
 * What `actor` now makes on a balance derives from; `own` is the root of the key that is acted on. Null for an owner
 * who is none any more: decided with the change, it keeps out what was sent before a claim was undone and comes after.
 */
export function rootOf(actor: Actor, balance: Balance, own: Root = SET_UP): Root | null {
  switch (actor.by) {
    case "key":
    case "operator":
      return own;
    case "session":
      return actor.account === balance.accountId ? claimOf(balance) : null;
    case "recovery":
      if (actor.secret !== balance.recovery) return null;
      return balance.undo === null ? SET_UP : claimOf(balance);
  }
}

/** The balance got another owner, was closed or got another recovery secret after the request was authorized. */
export const changedHands = (): Refusal =>
  refuse(
    "invalid_request",
    "The balance changed hands while this request was under way. Nothing was changed; send it again.",
  );

/** Whether the claim that a credential derives from was undone. */
export const isOfEndedClaim = (root: Root, balance: Balance): boolean =>
  root !== SET_UP && root !== claimOf(balance);

/** The claim in force; without one, nothing derives from any. */
const claimOf = ({ accountId, setUpKey, reclaims }: Balance): Root =>
  accountId === null || setUpKey === null ? SET_UP : reclaims + 1;
