import { DAY_MS, type EpochMs } from "../../units/clock.ts";
import { invalidField, type Refusal } from "../../units/errors/refusal.ts";
import type { AccountId } from "../../units/id.ts";
import { hashSecret, type SecretHash } from "../../units/secret-hash.ts";
import type { Session } from "./account.ts";
import type { AccountDeps } from "./deps.ts";

export const SESSION_MS = 30 * DAY_MS;

/** What its owner sees of a session. The id is made of the stored hash, and leads back to neither. */
export const sessionId = ({ hash }: Pick<Session, "hash">): string => `sess_${hashSecret(hash).slice(0, 22)}`;
export const signedInAt = ({ expiresAt }: Session): EpochMs => (expiresAt - SESSION_MS) as EpochMs;

/** Ends the session that asks for it. */
export const signOut = (deps: AccountDeps, session: SecretHash): Promise<void> =>
  deps.store.endSession(session);

/** Ends one session of the account by its id; the next request with it is refused, on any node. */
export async function endSession(deps: AccountDeps, account: AccountId, id: string): Promise<Refusal | null> {
  const session = (await deps.store.sessions(account)).find((one) => sessionId(one) === id);
  if (session === undefined) {
    return invalidField("id", "The account has no such session. GET /v1/auth/sessions lists them.");
  }
  await deps.store.endSession(session.hash);
  return null;
}
