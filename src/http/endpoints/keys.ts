import { ADMIN } from "../../api/admin.ts";
import {
  type AdminKeyFields,
  KEYS,
  KeyFields,
  type MintedAnswer,
  type RevokedAnswer,
  type SetUpAnswer,
} from "../../api/keys.ts";
import { createKey, setUp } from "../../customers/keys/creation.ts";
import type { Balance, Key } from "../../customers/keys/key.ts";
import { type Actor, OPERATOR } from "../../customers/keys/root.ts";
import { revise, revoke, rotate } from "../../customers/keys/rotation.ts";
import { tooMuchUnpaid } from "../../generation/refusals.ts";
import { takeOfAll, takeOfEverybody, tooOften } from "../../ledger/limits/address.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused, retryAfter } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { balanceNamed } from "../admin/balances.ts";
import { actorOf, type Identity, identify, isAnonymous, ownBalances, ownersOnly } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpExchange } from "../exchange.ts";
import { readFields, repeated } from "../fields.ts";
import { operation } from "../operation.ts";
import { recoveryUrl } from "./accounts.ts";
import { keySpec } from "./key-fields.ts";
import { keysPage, mintedView, pageOfKeys, usedKeyView } from "./key-list.ts";

/** Keys: contract §4. */
export const keyEndpoints = (): Endpoint[] => [
  { method: "POST", path: "/v1/keys", about: KEYS.create, handle: create },
  operation("GET /v1/keys", KEYS.list, async ({ who, query }, deps) => {
    const { before } = query;
    if (who.kind === "key") return pageOfKeys([who.key], 1, deps);
    if (before !== null && (await visibleKey(before, who, deps)) === null) {
      return invalidField("before", "`before` must be the id of one of your keys.");
    }
    return keysPage(ownBalances(who), query, deps);
  }),
  operation("GET /v1/keys/:id", KEYS.show, async ({ who, params: { id } }, deps) =>
    shownKey(await addressed(id, who, deps), deps),
  ),
  operation("POST /v1/keys/find", KEYS.find, async ({ who, fields }, deps) => {
    const key = await keyWithSecret(fields.key, deps);
    return shownKey(key !== null && ownBalances(who).includes(key.balanceId) ? key : noSuchSecret(), deps);
  }),
  operation("PATCH /v1/keys/:id", KEYS.change, async ({ who, params: { id }, fields }, deps) =>
    changedKey(await addressed(id, who, deps), fields, actorOf(who), deps),
  ),
  operation("POST /v1/keys/:id/rotate", KEYS.rotate, async ({ who, params: { id }, exchange }, deps) => {
    const found = await addressed(id, who, deps);
    if (refused(found)) return found;
    const tooMany = await unpaidKey(found.balanceId, exchange);
    if (tooMany !== null) return tooMany;
    const rotated = await rotate(deps.keyDeps, found, actorOf(who));
    if (refused(rotated)) return rotated;
    const { old } = rotated;
    const now = deps.clock.now();
    return {
      ...mintedView(rotated, now),
      old_key: { id: old.id, expires_at: isoTime(old.expiresAt ?? now) },
    };
  }),
  ...(["DELETE /v1/keys/:id", "POST /v1/keys/:id/revoke"] as const).map((name) =>
    operation(name, KEYS.revoke, async ({ who, params: { id }, exchange }, deps) => {
      const found = await addressed(id, who, deps);
      if (refused(found)) return found;
      // The first time is never too much; each further one is synced to the disk as well, and changes nothing.
      const waitS =
        found.state === "revoked"
          ? deps.unpaidRequests.waitS(found.balanceId, () => exchange.blocks(), AGAIN)
          : null;
      return waitS === null
        ? revoked(await revoke(deps.keyDeps, found.id, actorOf(who)))
        : tooMuchUnpaid(waitS);
    }),
  ),
];

/** Keys of any balance, for the operator: answers have no hash, and no secret except that of a new key. */
export const adminKeyEndpoints = () => [
  operation("GET /admin/balances/:id/keys", ADMIN.keys, async ({ params, query }, deps) => {
    const balance = await balanceNamed(params.id, deps);
    if (refused(balance)) return balance;
    const { store } = deps.keyDeps;
    const before = query.before as KeyId | null;
    if (before !== null && (await store.keyById(before))?.balanceId !== balance.id) {
      return invalidField("before", "`before` must be the id of a key of this balance.");
    }
    return keysPage([balance.id], query, deps);
  }),
  // Not throttled: where nobody else may make balances, the operator does.
  operation("POST /admin/keys", ADMIN.createKey, ({ fields }, deps) => newBalance(fields, deps)),
  operation("POST /admin/balances/:id/keys", ADMIN.createKeyOn, async ({ params, fields }, deps) => {
    const balance = await balanceNamed(params.id, deps);
    return refused(balance) ? balance : newKey(balance, fields, OPERATOR, deps);
  }),
  operation("POST /admin/keys/find", ADMIN.findKey, async ({ fields }, deps) =>
    shownKey((await keyWithSecret(fields.key, deps)) ?? noSuchSecret(), deps),
  ),
  operation("GET /admin/keys/:id", ADMIN.key, async ({ params: { id } }, deps) =>
    shownKey(await keyNamed(id, deps), deps),
  ),
  // For a user who asks for more: the operator raises what the owner may not be there to raise.
  operation("PATCH /admin/keys/:id", ADMIN.changeKey, async ({ params: { id }, fields }, deps) =>
    changedKey(await keyNamed(id, deps), fields, OPERATOR, deps),
  ),
  // For a key that was reported as leaked: the operator need not wait for its owner.
  operation("POST /admin/keys/:id/revoke", ADMIN.revoke, async ({ params: { id } }, deps) => {
    const found = await keyNamed(id, deps);
    return refused(found) ? found : revoked(await revoke(deps.keyDeps, found.id, OPERATOR));
  }),
];

async function create(exchange: HttpExchange): Promise<MintedAnswer | Refusal> {
  const { request, deps } = exchange;
  if (isAnonymous(request)) {
    const { accountlessKeysPerAddressPerHour } = deps.config.settings;
    if (accountlessKeysPerAddressPerHour === 0) return noSetUps(deps);
    const { set_ups: setUps } = deps.throttles;
    const blocks = exchange.blocks();
    const wait = await takeOfAll(setUps, blocks, accountlessKeysPerAddressPerHour);
    if (wait !== null) return tooManySetUps(accountlessKeysPerAddressPerHour, wait);
    const crowded = await takeOfEverybody(setUps, blocks, accountlessKeysPerAddressPerHour * SET_UP_SHARES);
    if (crowded !== null) return tooManyForAll(crowded);
    const fields = await readFields(KeyFields, exchange);
    return refused(fields) ? fields : newBalance(fields, deps);
  }
  const who = await identify(exchange);
  if (refused(who)) return who;
  if (who.kind === "key") return ownersOnly("create keys");
  if (who.balance.suspended !== null) return suspension(who.balance.suspended, deps.config.settings.contact);
  const tooMany = await unpaidKey(who.balance.id, exchange);
  if (tooMany !== null) return tooMany;
  const fields = await readFields(KeyFields, exchange);
  if (refused(fields)) return fields;
  return newKey(who.balance, fields, actorOf(who), deps);
}

/** On a balance that exists. */
async function newKey(balance: Balance, fields: AdminKeyFields, by: Actor, deps: HttpDeps) {
  const now = deps.clock.now();
  const spec = keySpec(fields, now, deps.config.catalog);
  if (refused(spec)) return spec;
  const minted = await createKey(deps.keyDeps, balance, spec, by);
  return refused(minted) ? minted : mintedView(minted, now);
}

/** For the caller, and for the person whom the operator makes one for. */
async function newBalance(fields: AdminKeyFields, deps: HttpDeps): Promise<SetUpAnswer | Refusal> {
  const now = deps.clock.now();
  const spec = keySpec(fields, now, deps.config.catalog);
  if (refused(spec)) return spec;
  const made = await setUp(deps.keyDeps, spec);
  if (refused(made)) return made;
  return {
    ...mintedView(made, now),
    balance_price_list: made.priceList,
    recovery_secret: made.recovery,
    recovery_url: recoveryUrl(made.recovery, deps),
  };
}

/** Read from the store: the keyring knows none that has ended. */
const keyWithSecret = (secret: string, { keyDeps }: HttpDeps): Promise<Key | null> =>
  keyDeps.store.keyByHash(hashSecret(secret));

const noSuchSecret = (): Refusal =>
  invalidField("key", "No key here has this secret. Check that it is whole: `or-live-` and 32 characters.");

const shownKey = async (key: Key | Refusal, { clock, ledger }: HttpDeps) =>
  refused(key) ? key : await usedKeyView(key, clock.now(), ledger);

async function changedKey(found: Key | Refusal, fields: AdminKeyFields, by: Actor, deps: HttpDeps) {
  if (refused(found)) return found;
  const spec = keySpec(fields, deps.clock.now(), deps.config.catalog);
  return refused(spec) ? spec : shownKey(await revise(deps.keyDeps, found.id, spec, by), deps);
}

const revoked = (key: Key | Refusal): RevokedAnswer | Refusal =>
  refused(key) ? key : { id: key.id, state: "revoked" };

const AGAIN = { bytes: 0, writes: true };

/** The key that the path names, if the caller may see it. */
async function addressed(id: string, who: Identity, deps: HttpDeps): Promise<Key | Refusal> {
  const key = await visibleKey(id, who, deps);
  return (
    key ??
    invalidField(
      "id",
      who.kind === "key"
        ? `An API key can see and change only itself: \`${who.key.id}\`. For other keys, send an owner's credential: the recovery secret, or a signed-in session.`
        : `You have no key \`${repeated(id)}\`.`,
    )
  );
}

async function visibleKey(id: string, who: Identity, { keyDeps }: HttpDeps): Promise<Key | null> {
  if (who.kind === "key") return id === who.key.id ? who.key : null;
  const key = await keyDeps.store.keyById(id as KeyId);
  return key !== null && ownBalances(who).includes(key.balanceId) ? key : null;
}

/**
 * Each set-up writes to the disk, and a caller with many networks must not keep the disk busy: all together make as
 * many as this many addresses may.
 */
const SET_UP_SHARES = 100;

const tooManyForAll = (retryAfterS: number): Refusal =>
  refuse(
    "rate_limited",
    `More keys without an account were created within an hour than this gateway gives out. Retry in ${retryAfterS} s. To create more keys on a balance that you have, send its recovery secret.`,
    retryAfter(retryAfterS),
  );

/** A key is a row that stays, and a balance without credit costs nothing: so many an hour from a network. */
async function unpaidKey(balance: BalanceId, exchange: HttpExchange): Promise<Refusal | null> {
  if ((await exchange.deps.keyDeps.spendable.of(balance)) > 0) return null;
  const { unpaid_keys: unpaidKeys } = exchange.deps.throttles;
  const blocks = exchange.blocks();
  const wait =
    (await takeOfAll(unpaidKeys, blocks, UNPAID_KEYS_AN_HOUR)) ??
    (await takeOfEverybody(unpaidKeys, blocks, UNPAID_KEYS_AN_HOUR * SET_UP_SHARES));
  if (wait === null) return null;
  const what = `made or rotated ${UNPAID_KEYS_AN_HOUR} keys of balances without credit`;
  return tooOften(what, wait, "Revoking is always possible; with credit, there is no such limit.");
}

const UNPAID_KEYS_AN_HOUR = 120;

const noSetUps = ({ config }: HttpDeps): Refusal =>
  refuse(
    "invalid_request",
    `This gateway does not give out keys to everybody. Ask its operator for one, or sign in at ${config.settings.dashboardUrl}.`,
  );

const tooManySetUps = (limit: number, retryAfterS: number): Refusal =>
  tooOften(
    `created ${limit} keys without an account`,
    retryAfterS,
    "To create more keys on a balance that you have, send its recovery secret.",
  );

async function keyNamed(id: string, { keyDeps }: HttpDeps): Promise<Key | Refusal> {
  const key = await keyDeps.store.keyById(id as KeyId);
  return key ?? invalidField("id", `There is no key \`${repeated(id)}\`.`);
}
