import type { Account, Claim } from "../../accounts/account.ts";
import { claimEnds, isPending } from "../../accounts/belonging.ts";
import { claimByEmail, claimByWallet, settleClaim, whyNoClaimant } from "../../accounts/claim.ts";
import { takeBack } from "../../accounts/undo.ts";
import { CLAIMS, ClaimFields } from "../../api/claims.ts";
import { type Refusal, refuse, refused, retryAfter } from "../../errors/refusal.ts";
import { invalidRecovery } from "../../generation/refusals.ts";
import { isRecoverySecret } from "../../keys/secret.ts";
import { isoTime } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { usdFromNano } from "../../units/usd.ts";
import { EVERYBODY } from "../address.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, Exchange } from "../endpoint.ts";
import { invalidField, readFields } from "../fields.ts";
import {
  againstForging,
  againstGuessing,
  bearerOf,
  identify,
  keysOnly,
  ownersOnly,
  sessionsOnly,
} from "../identity.ts";
import { ok, type Reply } from "../reply.ts";
import { emailOf, identityView, MOST_MAILS, tooMany } from "./accounts.ts";

/** How balances come into accounts, and out of them again: decision 8. */
export const claimEndpoints = (): Endpoint[] => [
  { method: "POST", path: "/v1/me/claim", about: CLAIMS.claim, handle: claim },
  { method: "DELETE", path: "/v1/me/claim", about: CLAIMS.undo, handle: undo },
  { method: "GET", path: "/v1/me/claims", about: CLAIMS.list, handle: list },
  {
    method: "POST",
    path: "/v1/me/claims/:id",
    about: CLAIMS.confirm,
    handle: (exchange, deps) => settle(exchange, deps, "confirm"),
  },
  {
    method: "DELETE",
    path: "/v1/me/claims/:id",
    about: CLAIMS.decline,
    handle: (exchange, deps) => settle(exchange, deps, "decline"),
  },
];

async function claim(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind !== "key") return keysOnly("claim its balance");
  const noClaimant = whyNoClaimant(who.key.rotationId, who.balance.setUpKey);
  if (noClaimant !== null) return noClaimant;
  const fields = await readFields(ClaimFields, exchange, deps);
  if (refused(fields)) return fields;
  if ((fields.email === undefined) === (fields.wallet === undefined)) {
    return invalidField("email", "Send either `email` or `wallet`.");
  }
  const { id } = who.balance;
  if (fields.wallet !== undefined) {
    const { wallet } = fields;
    const account = await againstForging(exchange, deps, () => claimByWallet(deps.accounts, id, wallet));
    return refused(account) ? account : claimed(account, id, true);
  }
  const address = emailOf(fields.email!);
  if (refused(address)) return address;
  const busy = await tooMany("claims", "claims", MOST_MAILS, exchange, deps);
  if (busy !== null) return busy;
  const crowded = await deps.throttles.claims.take(EVERYBODY, deps.settings().mailsPerHour);
  if (crowded !== null) return tooManyForAll(crowded);
  const account = await claimByEmail(deps.accounts, id, address);
  return refused(account) ? account : claimed(account, id, false);
}

const tooManyForAll = (retryAfterS: number): Refusal =>
  refuse(
    "rate_limited",
    `More claims were mailed within an hour than this gateway sends. Retry in ${retryAfterS} s, or claim with a wallet.`,
    retryAfter(retryAfterS),
  );

const claimed = (account: Account, balance: BalanceId, confirmed: boolean): Reply =>
  ok({ account_id: account.id, balance_id: balance, ...identityView(account), confirmed });

/** Takes the secret from before the claim too, which opens nothing else once the account has replaced it. */
async function undo(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const secret = bearerOf(exchange.request);
  if (secret !== null && isRecoverySecret(secret)) {
    const taken = await takeBack(deps.accounts, hashSecret(secret));
    if (taken === null) {
      return againstGuessing(exchange, deps, async () => invalidRecovery(deps.settings().dashboardUrl));
    }
    return refused(taken) ? taken : ok({ balance_id: taken, withdrawn: true });
  }
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  return who.kind === "key"
    ? ownersOnly("undo a claim")
    : refuse(
        "invalid_request",
        "Only the recovery secret undoes a claim. To decline one made for you, use DELETE /v1/me/claims/{id}.",
      );
}

async function list(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key" || who.by !== "session") return sessionsOnly("review claims");
  const now = deps.keyDeps.clock.now();
  const waiting = who.holdings.claims.filter((one) => isPending(one, now));
  return ok({ object: "list", data: await Promise.all(waiting.map((one) => claimView(one, deps))) });
}

/** With what tells one's own balance from a stranger's. */
async function claimView({ balanceId, at }: Claim, deps: HttpDeps) {
  const [withBudgets, money] = await Promise.all([
    deps.keyDeps.store.balanceWithBudgets(balanceId),
    deps.ledger.balance(balanceId),
  ]);
  return {
    balance_id: balanceId,
    claimed_at: isoTime(at),
    expires_at: isoTime(claimEnds({ at })),
    balance_usd: usdFromNano(money.total),
    balance_created_at: isoTime(withBudgets!.balance.createdAt),
  };
}

async function settle(
  exchange: Exchange,
  deps: HttpDeps,
  word: "confirm" | "decline",
): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key" || who.by !== "session") return sessionsOnly(`${word} claims`);
  const { account } = who.holdings;
  const balance = await settleClaim(deps.accounts, account.id, (exchange.params.id ?? "") as BalanceId, word);
  return refused(balance)
    ? balance
    : ok({ account_id: account.id, balance_id: balance, confirmed: word === "confirm" });
}
