import { type Refusal, refuse, refused, retryAfter } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import { newId } from "../../units/id.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import type { KeyDeps } from "./deps.ts";
import type { Balance, Key, KeyLimits, Root } from "./key.ts";
import { type KeySpec, missingBudget } from "./key-spec.ts";
import type { BalanceWithBudgets, RecentKeys } from "./key-store.ts";
import { type Actor, changedHands, rootOf, SET_UP } from "./root.ts";
import { newApiKey, newRecoverySecret, shownPrefix } from "./secret.ts";

/** A key with the one copy of its plaintext there will ever be. */
export interface Minted {
  readonly key: Key;
  readonly secret: string;
}

/**
 * A balance without an account: two bearer secrets and nothing else that could identify anybody. A price list is the
 * balance's, so that keys which its owner makes later have it as well.
 */
export async function setUp(
  deps: KeyDeps,
  { priceList = null, ...spec }: KeySpec,
): Promise<(Minted & { recovery: string; priceList: string | null }) | Refusal> {
  if (spec.budgets !== undefined && spec.budgets.length > 0) return missingBudget(spec.budgets[0]!);
  const balance = { id: newId("bal", deps.random), accountId: null };
  const recovery = newRecoverySecret(deps.random);
  const minted = mint(deps, balance, spec);
  const made = {
    ...balance,
    suspended: null,
    priceList,
    createdAt: minted.key.createdAt,
    setUpKey: minted.key.rotationId,
    secretsSavedAt: null,
    closed: false,
    lowCredit: null,
    reclaims: 0,
    recovery: hashSecret(recovery),
    undo: null,
  };
  await deps.store.addBalance(made, minted.key);
  return { ...minted, recovery, priceList };
}

/** Another key on a balance. */
export async function createKey(
  deps: KeyDeps,
  balance: Balance,
  spec: KeySpec,
  by: Actor,
): Promise<Minted | Refusal> {
  const minted = mint(deps, balance, spec);
  const hasCredit = (await deps.spendable.of(balance.id)) > 0;
  const added = await deps.store.addKey(balance.id, (withBudgets, liveKeys, recentKeys) => {
    const root = rootOf(by, withBudgets.balance);
    if (root === null || withBudgets.balance.closed) return changedHands();
    const key = { ...minted.key, root };
    return tooManyRecent(recentKeys, root, hasCredit) ?? admitted(key, withBudgets, liveKeys, deps);
  });
  return refused(added) ? added : { key: added, secret: minted.secret };
}

function admitted(
  key: Key,
  { balance, budgets }: BalanceWithBudgets,
  liveKeys: number,
  deps: KeyDeps,
): Key | Refusal {
  if (balance.suspended !== null) return suspension(balance.suspended, deps.settings().contact);
  const unknown = key.budgets.find((name) => !budgets.some((budget) => budget.name === name));
  if (unknown !== undefined) return missingBudget(unknown);
  if (liveKeys >= MAX_LIVE_KEYS) {
    return refuse(
      "invalid_request",
      `The balance has ${liveKeys} live keys; it can have at most ${MAX_LIVE_KEYS}. Revoke some that are not used.`,
    );
  }
  return key;
}

const MAX_LIVE_KEYS = 10_000;

/** Also for rotation: each key is a row that stays, for a month at least, even when it is revoked at once. */
export function tooManyRecent(
  { ofSetUp, ofClaims }: RecentKeys,
  root: Root,
  hasCredit: boolean,
): Refusal | null {
  const recent = root === SET_UP ? ofSetUp : ofClaims;
  const most = hasCredit ? MAX_KEYS_A_DAY.withCredit : MAX_KEYS_A_DAY.without;
  if (recent < most) return null;
  const advice = hasCredit ? "" : ` With credit, it could make ${MAX_KEYS_A_DAY.withCredit}.`;
  return refuse(
    "rate_limited",
    `The balance made ${recent} keys within 24 hours, revoked ones included; the most is ${most}. Use keys again, or wait.${advice}`,
    retryAfter(HOUR_S),
  );
}

const MAX_KEYS_A_DAY = { withCredit: 10_000, without: 100 };
const HOUR_S = 3_600;

function mint(deps: KeyDeps, balance: Pick<Balance, "id" | "accountId">, spec: KeySpec): Minted {
  const { name = null, expiresAt = null, priceList = null, policy = null, ...limits } = spec;
  const secret = newApiKey(deps.random);
  const id = newId("key", deps.random);
  const key: Key = {
    ...NO_LIMITS,
    ...deps.settings().defaults[balance.accountId === null ? "accountless" : "account"],
    ...limits,
    id,
    hash: hashSecret(secret),
    prefix: shownPrefix(secret),
    name,
    balanceId: balance.id,
    rotationId: id,
    priceList,
    policy,
    root: SET_UP,
    state: "active",
    createdAt: deps.clock.now(),
    expiresAt,
  };
  return { key, secret };
}

const NO_LIMITS: KeyLimits = {
  rpmLimit: null,
  tpmLimit: null,
  dailyLimit: null,
  monthlyLimit: null,
  allowedModels: null,
  budgets: [],
};
