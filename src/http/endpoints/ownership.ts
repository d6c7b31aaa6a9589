import { closeBalance, deleteAccount } from "../../accounts/deletion.ts";
import { replaceRecovery } from "../../accounts/recovery.ts";
import { DeletionFields, OWNERSHIP } from "../../api/ownership.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { invalidRecovery } from "../../generation/refusals.ts";
import { newRecoverySecret } from "../../keys/secret.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, Exchange } from "../endpoint.ts";
import { invalidField, readFields } from "../fields.ts";
import { identify, notOfAccount, type OwnerIdentity, ownersOnly } from "../identity.ts";
import { ok, Reply } from "../reply.ts";
import { withoutCookie } from "./sessions.ts";

/** What owners do about their own credentials: replace what leaked, and end everything. */
export const ownershipEndpoints = (): Endpoint[] => [
  { method: "POST", path: "/v1/me/recovery", about: OWNERSHIP.recovery, handle: replace },
  { method: "DELETE", path: "/v1/me", about: OWNERSHIP.deletion, handle: deleteAll },
];

async function replace(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await owner(exchange, deps, "replace the recovery secret");
  if (refused(who)) return who;
  const secret = newRecoverySecret(deps.keyDeps.random);
  const by =
    who.by === "recovery"
      ? { recovery: who.secret }
      : { balance: who.balance.id, account: who.holdings.account.id };
  const balance = await replaceRecovery(deps.accounts, by, hashSecret(secret));
  if (refused(balance)) return balance;
  // Between letting in and replacing, somebody else was faster.
  if (balance === null)
    return who.by === "recovery" ? invalidRecovery(deps.settings().dashboardUrl) : notOfAccount();
  return ok({
    balance_id: balance,
    recovery_secret: secret,
    recovery_url: recoveryUrl(secret, deps),
  });
}

/** Behind the hash, so that no server on the way ever sees it. */
export const recoveryUrl = (secret: string, deps: HttpDeps): string =>
  `${deps.settings().dashboardUrl}#recover=${secret}`;

async function deleteAll(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await owner(exchange, deps, "delete an account");
  if (refused(who)) return who;
  const id = who.by === "session" ? who.holdings.account.id : who.balance.id;
  const fields = await readFields(DeletionFields, exchange, deps);
  if (refused(fields)) return fields;
  if (fields.confirm !== id) {
    const what = who.by === "session" ? "account" : "balance";
    return invalidField(
      "confirm",
      `\`confirm\` must be the id of the ${what} that ends for good: \`${id}\`.`,
    );
  }
  const ended =
    who.by === "session"
      ? await deleteAccount(deps.accounts, who.holdings.account.id)
      : await closeBalance(deps.accounts, who.balance.id);
  if (refused(ended)) return ended;
  const body = { id, deleted: true, closed_balance_ids: ended.closed, detached_balance_ids: ended.detached };
  return new Reply(200, body, withoutCookie(exchange));
}

async function owner(exchange: Exchange, deps: HttpDeps, what: string): Promise<OwnerIdentity | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  return who.kind === "key" ? ownersOnly(what) : who;
}
