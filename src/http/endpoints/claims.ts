import {
  CLAIMS,
  type ClaimAnswer,
  UndoFields,
  type UndoneAnswer,
  type WaitingClaim,
} from "../../api/claims.ts";
import type { Account, Claim } from "../../customers/accounts/account.ts";
import { claimByEmail, claimByWallet, settleClaim, whyNoClaimant } from "../../customers/accounts/claim.ts";
import { claimEnds, isPending } from "../../customers/accounts/ownership.ts";
import { takeBack } from "../../customers/accounts/undo.ts";
import { isRecoverySecret } from "../../customers/keys/secret.ts";
import { invalidRecovery } from "../../generation/refusals.ts";
import { takeOfEverybody } from "../../ledger/limits/address.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused, retryAfter } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { usdFromNano } from "../../units/usd.ts";
import {
  againstForging,
  againstGuessing,
  bearerOf,
  identify,
  ownersOnly,
  type SessionIdentity,
} from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpExchange } from "../exchange.ts";
import { readFields } from "../fields.ts";
import { operation } from "../operation.ts";
import { list } from "../reply.ts";
import { emailOf, identityView, MAX_MAILS, tooMany } from "./accounts.ts";
import { usedKeyView } from "./key-list.ts";

/** How balances come into accounts, and out of them again: decision 8. */
export const claimEndpoints = (): Endpoint[] => [
  operation("POST /v1/me/claim", CLAIMS.claim, async ({ who, fields, exchange }, deps) => {
    const { email, wallet, recovery_secret: secret } = fields;
    const noClaimant = secret === undefined ? whyNoClaimant(who.key.rotationId, who.balance.setUpKey) : null;
    if (noClaimant !== null) return noClaimant;
    const { id } = who.balance;
    const claimant = { balance: id, secret: secret === undefined ? null : hashSecret(secret) };
    if ((email === undefined) === (wallet === undefined)) {
      return invalidField("email", "Send either `email` or `wallet`.");
    }
    if (wallet !== undefined) {
      const account = await againstForging(exchange, () => claimByWallet(deps.accounts, claimant, wallet));
      return refused(account) ? account : claimed(account, id, true);
    }
    const address = emailOf(email!);
    if (refused(address)) return address;
    const busy = await tooMany("claims", "claims", MAX_MAILS, exchange);
    if (busy !== null) return busy;
    if ((await deps.keyDeps.spendable.of(id)) <= 0) {
      const blocks = exchange.blocks();
      const crowded = await takeOfEverybody(deps.throttles.claims, blocks, deps.config.settings.mailsPerHour);
      if (crowded !== null) return tooManyForAll(crowded);
    }
    const account = await claimByEmail(deps.accounts, claimant, address);
    return refused(account) ? account : claimed(account, id, false);
  }),
  { method: "DELETE", path: "/v1/me/claim", about: CLAIMS.undo, handle: undo },
  operation("GET /v1/me/claims", CLAIMS.list, async ({ who }, deps) => {
    const now = deps.clock.now();
    const waiting = who.accountBalances.claims.filter((one) => isPending(one, now));
    return list(await Promise.all(waiting.map((one) => claimView(one, deps))));
  }),
  operation("POST /v1/me/claims/:id", CLAIMS.confirm, ({ who, params: { id } }, deps) =>
    settle(who, id, "confirm", deps),
  ),
  operation("DELETE /v1/me/claims/:id", CLAIMS.decline, ({ who, params: { id } }, deps) =>
    settle(who, id, "decline", deps),
  ),
];

const tooManyForAll = (retryAfterS: number): Refusal =>
  refuse(
    "rate_limited",
    `More claims of balances without credit were mailed within an hour than this gateway sends. Add credit, claim with a wallet, or retry in ${retryAfterS} s.`,
    retryAfter(retryAfterS),
  );

const claimed = (account: Account, balance: BalanceId, confirmed: boolean): ClaimAnswer => ({
  account_id: account.id,
  balance_id: balance,
  ...identityView(account),
  confirmed,
});

/** Takes the secret from before the claim too, which opens nothing else once the account has replaced it. */
async function undo(exchange: HttpExchange): Promise<UndoneAnswer | Refusal> {
  const { deps } = exchange;
  const secret = bearerOf(exchange.request);
  if (secret !== null && isRecoverySecret(secret)) {
    const fields = await readFields(UndoFields, exchange);
    if (refused(fields)) return fields;
    const taken = await takeBack(deps.accounts, hashSecret(secret), fields.revoke_keys ?? false);
    if (taken === null) {
      return againstGuessing(exchange, async () => invalidRecovery(deps.config.settings.dashboardUrl));
    }
    return refused(taken) ? taken : { balance_id: taken, withdrawn: true, ...(await liveKeys(taken, deps)) };
  }
  const who = await identify(exchange);
  if (refused(who)) return who;
  return who.kind === "key"
    ? ownersOnly("undo a claim")
    : refuse(
        "invalid_request",
        "Only the recovery secret undoes a claim. To decline one made for you, use DELETE /v1/me/claims/{id}.",
      );
}

/** What still works after a claim ended, for the owner who took the balance back to look through. */
export async function liveKeys(balance: BalanceId, { keyDeps, ledger, clock }: HttpDeps) {
  const keys = await keyDeps.store.liveKeysOf(balance, MAX_LIVE_KEYS + 1);
  const now = clock.now();
  const listed = keys.slice(0, MAX_LIVE_KEYS);
  return {
    live_keys: await Promise.all(listed.map((key) => usedKeyView(key, now, ledger))),
    has_more: keys.length > MAX_LIVE_KEYS,
  };
}

const MAX_LIVE_KEYS = 100;

/** With what tells one's own balance from a stranger's. */
async function claimView({ balanceId, at }: Claim, deps: HttpDeps): Promise<WaitingClaim> {
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
  { accountBalances: { account } }: SessionIdentity,
  id: string,
  word: "confirm" | "decline",
  deps: HttpDeps,
): Promise<ClaimAnswer | Refusal> {
  const balance = await settleClaim(deps.accounts, account.id, id as BalanceId, word);
  return refused(balance)
    ? balance
    : { account_id: account.id, balance_id: balance, confirmed: word === "confirm" };
}
