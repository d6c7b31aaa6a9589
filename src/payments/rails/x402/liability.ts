import type { Balance } from "../../../customers/keys/key.ts";
import type { KeyId } from "../../../units/id.ts";

/**
 * Whether a payer on a sanctions list has the whole balance suspended. An owner's agent may be talked into presenting any
 * payment, and a leaked key is presented by anybody: with those, the payment is refused, and the owner goes on. Where there is
 * no account, the set-up key is all of the customer that there is.
 */
export const standsForOwner = ({ accountId, setUpKey }: Balance, keyId: KeyId | null): boolean =>
  keyId === null || (accountId === null && keyId === setUpKey);
