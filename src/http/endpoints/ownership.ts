import { OWNERSHIP } from "../../api/ownership.ts";
import { closeBalance, deleteAccount } from "../../customers/accounts/deletion.ts";
import { replaceRecovery } from "../../customers/accounts/recovery.ts";
import { newRecoverySecret } from "../../customers/keys/secret.ts";
import { invalidRecovery } from "../../generation/refusals.ts";
import { invalidField, refused } from "../../units/errors/refusal.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { notOfAccount } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { operation } from "../operation.ts";
import { JsonReply, ok } from "../reply.ts";
import { withoutCookie } from "./sessions.ts";

/** What owners do about their own credentials: replace what leaked, and end everything. */
export const ownershipEndpoints = (): Endpoint[] => [
  operation("POST /v1/me/recovery", OWNERSHIP.recovery, async ({ who }, deps) => {
    const secret = newRecoverySecret(deps.keyDeps.random);
    const by =
      who.by === "recovery"
        ? { recovery: who.secret }
        : { balance: who.balance.id, account: who.accountBalances.account.id };
    const balance = await replaceRecovery(deps.accounts, by, hashSecret(secret));
    if (refused(balance)) return balance;
    // Between letting in and replacing, somebody else was faster.
    if (balance === null)
      return who.by === "recovery" ? invalidRecovery(deps.config.settings.dashboardUrl) : notOfAccount();
    return ok({ balance_id: balance, recovery_secret: secret, recovery_url: recoveryUrl(secret, deps) });
  }),
  operation("DELETE /v1/me", OWNERSHIP.deletion, async ({ who, fields, exchange }, { accounts, config }) => {
    const [what, id] =
      who.by === "session" ? ["account", who.accountBalances.account.id] : ["balance", who.balance.id];
    if (fields.confirm !== id) {
      return invalidField(
        "confirm",
        `\`confirm\` must be the id of the ${what} that ends for good: \`${id}\`.`,
      );
    }
    const ended =
      who.by === "session"
        ? await deleteAccount(accounts, who.accountBalances.account.id)
        : await closeBalance(accounts, who.secret);
    if (ended === null) return invalidRecovery(config.settings.dashboardUrl);
    if (refused(ended)) return ended;
    const { closed, detached } = ended;
    const body = { id, deleted: true as const, closed_balance_ids: closed, detached_balance_ids: detached };
    return new JsonReply(200, body, withoutCookie(exchange));
  }),
];

/** Behind the hash, so that no server on the way ever sees it. */
export const recoveryUrl = (secret: string, deps: HttpDeps): string =>
  `${deps.config.settings.dashboardUrl}#recover=${secret}`;
