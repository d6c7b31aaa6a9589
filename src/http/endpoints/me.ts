import type { DefaultLimits } from "../../api/keys.ts";
import { ME } from "../../api/me.ts";
import type { Account } from "../../customers/accounts/account.ts";
import type { BalanceRecord } from "../../customers/accounts/account-store.ts";
import { type BalanceOwnership, isPending, ownership } from "../../customers/accounts/ownership.ts";
import type { Balance } from "../../customers/keys/key.ts";
import { type Actor, changedHands, rootOf } from "../../customers/keys/root.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import { windowAt } from "../../units/window.ts";
import { actorOf, type Identity } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { HttpExchange } from "../exchange.ts";
import { readUsd, repeated } from "../fields.ts";
import { operation } from "../operation.ts";
import { identityView } from "./accounts.ts";
import { namedPriceList } from "./key-fields.ts";
import { usedKeyView } from "./key-list.ts";

export const meEndpoints = () => [
  operation("GET /v1/me", ME.show, ({ who, exchange }) => me(who, exchange)),
  operation("PATCH /v1/me", ME.change, async ({ who, fields, exchange }, deps) => {
    const changed = await changeBalance(who.balance.id, fields, actorOf(who), deps);
    return refused(changed) ? changed : me({ ...who, balance: changed }, exchange);
  }),
];

interface BalanceFields {
  readonly low_credit_usd?: number | null | undefined;
  readonly price_list?: string | null | undefined;
}

/** The balance as it is then. */
export async function changeBalance(
  id: BalanceId,
  { low_credit_usd, price_list }: BalanceFields,
  by: Actor,
  { keyDeps, config }: HttpDeps,
): Promise<Balance | Refusal> {
  const lowCredit = low_credit_usd == null ? low_credit_usd : readUsd("low_credit_usd", low_credit_usd);
  if (refused(lowCredit)) return lowCredit;
  const priceList = namedPriceList(price_list, config.catalog);
  if (refused(priceList)) return priceList;
  const changed = await keyDeps.store.changeBalance(id, (balance) =>
    rootOf(by, balance) === null
      ? changedHands()
      : {
          ...balance,
          ...(lowCredit === undefined ? {} : { lowCredit }),
          ...(priceList === undefined ? {} : { priceList }),
        },
  );
  keyDeps.keyring.forgetBalance(id);
  return changed ?? invalidField("id", `There is no balance \`${repeated(id)}\`.`);
}

/** Readable while suspended too: people must be able to see why they are refused. */
async function me(who: Identity, exchange: HttpExchange) {
  const { deps } = exchange;
  const { balance } = who;
  const now = deps.clock.now();
  const money = await deps.ledger.balanceUse(balance.id);
  const found = await deps.accounts.store.balanceRecord(balance.id);
  const at = found === null ? null : ownership(found, now);
  return {
    balance_id: balance.id,
    balance_usd: usdFromNano(money.total),
    available_usd: usdFromNano(money.available),
    held_usd: usdFromNano(money.held),
    held_at: money.heldAt,
    suspended: balance.suspended,
    suspended_at: await suspendedAt(balance, deps),
    key: who.kind === "key" ? await usedKeyView(who.key, now, deps.ledger) : null,
    open_tier: await openTier(balance, exchange, now),
    key_defaults: defaultLimits(balance, deps),
    low_credit_usd: usdOrNone(balance.lowCredit),
    low_credit_default_usd: usdOrNone(deps.config.settings.lowCredit),
    account: found === null || at === null ? null : accountOf(who, found, at, now),
    reclaimed: at?.state === "reclaimed",
    contact: deps.config.settings.contact,
  };
}

const usdOrNone = (amount: NanoUsd | null): number | null => (amount === null ? null : usdFromNano(amount));

/** By whichever of the two was suspended last: the balance, or its account. */
async function suspendedAt(balance: Balance, { keyDeps }: HttpDeps): Promise<string | null> {
  if (balance.suspended === null) return null;
  const subjects = balance.accountId === null ? [balance.id] : [balance.accountId, balance.id];
  const last = await Promise.all(subjects.map((subject) => keyDeps.store.suspensions(subject, 1)));
  const at = last.flat().flatMap(({ reason, at }) => (reason === null ? [] : [at]));
  return at.length === 0 ? null : isoTime(Math.max(...at) as EpochMs);
}

function defaultLimits({ accountId }: Balance, { keyDeps }: HttpDeps): DefaultLimits {
  const limits = keyDeps.settings().defaults[accountId === null ? "accountless" : "account"];
  return {
    rpm_limit: limits.rpmLimit,
    tpm_limit: limits.tpmLimit,
    daily_limit_usd: limits.dailyLimit === null ? null : usdFromNano(limits.dailyLimit),
    monthly_limit_usd: limits.monthlyLimit === null ? null : usdFromNano(limits.monthlyLimit),
  };
}

async function openTier(balance: Balance, exchange: HttpExchange, now: EpochMs) {
  const blocks = exchange.blocks();
  const { limit, used, heldAt } = await exchange.deps.ledger.openTier(balance, blocks, now);
  return { limit, used, held_at: heldAt, resets_at: isoTime(windowAt("day", now).resetsAt!) };
}

/**
 * With the balances and the waiting claims only for a session: a key need not know what else its owner has.
 */
function accountOf(who: Identity, found: BalanceRecord, at: BalanceOwnership, now: EpochMs) {
  const undo = at.state === "claimed" ? { undo_until: isoTime(at.undoUntil) } : {};
  if (who.kind === "owner" && who.by === "session") {
    const { account, balances, claims } = who.accountBalances;
    const pending = claims.filter((claim) => isPending(claim, now));
    return {
      ...accountView(account),
      balances,
      claims: pending.map(({ balanceId, at }) => ({ balance_id: balanceId, claimed_at: isoTime(at) })),
      ...undo,
    };
  }
  if (at.state === "nobody's" || at.state === "reclaimed") return null;
  // A caller who claims for an address learns nothing about the account that it may have.
  if (at.state === "offered") {
    return { id: found.claimant!.id, ...identityView(found.claimant!), confirmed: false };
  }
  return { ...accountView(found.owner!.account), confirmed: true, ...undo };
}

const accountView = (account: Account) => ({
  id: account.id,
  ...identityView(account),
  ...(account.suspended === null ? {} : { suspended: account.suspended }),
});
