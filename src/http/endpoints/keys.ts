import { DEFAULT_KEYS, KEYS, MAX_KEYS } from "../../api/keys.ts";
import { type Refusal, refuse, refused, retryAfter } from "../../errors/refusal.ts";
import { suspension } from "../../errors/suspension.ts";
import { createKey, setUp } from "../../keys/creation.ts";
import type { Key } from "../../keys/key.ts";
import { type Actor, revise, revoke, rotate } from "../../keys/rotation.ts";
import { isoTime } from "../../units/clock.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import { EVERYBODY, takeOfAll, tooOften } from "../address.ts";
import { clientBlocks } from "../client-blocks.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { invalidField, readCount, repeated } from "../fields.ts";
import { type Identity, identify, isAnonymous, ownBalances, ownersOnly } from "../identity.ts";
import { created, ok, type Reply } from "../reply.ts";
import { readKeySpec } from "./key-fields.ts";
import { mintedView, usedKeyView } from "./key-view.ts";
import { recoveryUrl } from "./ownership.ts";

/** Keys: contract §4. */
export const keyEndpoints = (): Endpoint[] => [
  { method: "POST", path: "/v1/keys", about: KEYS.create, handle: create },
  { method: "GET", path: "/v1/keys", about: KEYS.list, handle: list },
  { method: "GET", path: "/v1/keys/:id", about: KEYS.show, handle: show },
  { method: "PATCH", path: "/v1/keys/:id", about: KEYS.change, handle: change },
  { method: "POST", path: "/v1/keys/:id/rotate", about: KEYS.rotate, handle: replace },
  { method: "DELETE", path: "/v1/keys/:id", about: KEYS.revoke, handle: end },
  { method: "POST", path: "/v1/keys/:id/revoke", about: KEYS.revoke, handle: end },
];

async function create(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const { request } = exchange;
  if (isAnonymous(request)) {
    const { accountlessKeysPerAddressPerHour } = deps.settings();
    if (accountlessKeysPerAddressPerHour === 0) return noSetUps(deps);
    const { set_ups: setUps } = deps.throttles;
    const blocks = clientBlocks(exchange, deps);
    const wait = await takeOfAll(setUps, blocks, accountlessKeysPerAddressPerHour);
    if (wait !== null) return tooManySetUps(accountlessKeysPerAddressPerHour, wait);
    const crowded = await setUps.take(EVERYBODY, accountlessKeysPerAddressPerHour * SET_UP_SHARES);
    if (crowded !== null) return tooManyForAll(crowded);
    return createBalance(exchange, deps);
  }
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key") return ownersOnly("create keys");
  if (who.balance.suspended !== null) return suspension(who.balance.suspended, deps.settings().contact);
  const wait = await unpaidKey(who.balance.id, exchange, deps);
  if (wait !== null) return tooManyUnpaid(wait);
  const spec = await readKeySpec(exchange, deps);
  if (refused(spec)) return spec;
  const minted = await createKey(deps.keyDeps, who.balance, spec, who.by);
  return refused(minted) ? minted : created(mintedView(minted, deps.keyDeps.clock.now()));
}

/** For whoever asks, and for whom the operator makes one. */
export async function createBalance(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const spec = await readKeySpec(exchange, deps);
  if (refused(spec)) return spec;
  const made = await setUp(deps.keyDeps, spec);
  if (refused(made)) return made;
  return created({
    ...mintedView(made, deps.keyDeps.clock.now()),
    recovery_secret: made.recovery,
    recovery_url: recoveryUrl(made.recovery, deps),
  });
}

async function list(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  const now = deps.keyDeps.clock.now();
  if (who.kind === "key") {
    return ok({ object: "list", data: [await usedKeyView(who.key, now, deps.ledger)], has_more: false });
  }
  const query = queryOf(exchange.request);
  const limit = readCount(query, "limit", DEFAULT_KEYS, MAX_KEYS);
  if (refused(limit)) return limit;
  const before = query.get("before");
  if (before !== null && (await visibleKey(before, who, deps)) === null) {
    return invalidField("before", "`before` must be the id of one of your keys.");
  }
  const keys = await deps.keyDeps.store.keysOf(ownBalances(who), limit + 1, before as KeyId | null);
  const data = await Promise.all(keys.slice(0, limit).map((key) => usedKeyView(key, now, deps.ledger)));
  return ok({ object: "list", data, has_more: keys.length > limit });
}

async function show(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const found = await addressed(exchange, deps);
  return refused(found) ? found : ok(await usedKeyView(found.key, deps.keyDeps.clock.now(), deps.ledger));
}

async function change(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const found = await addressed(exchange, deps);
  if (refused(found)) return found;
  const spec = await readKeySpec(exchange, deps);
  if (refused(spec)) return spec;
  const key = await revise(deps.keyDeps, found.key.id, spec, found.by);
  return refused(key) ? key : ok(await usedKeyView(key, deps.keyDeps.clock.now(), deps.ledger));
}

async function replace(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const found = await addressed(exchange, deps);
  if (refused(found)) return found;
  const wait = await unpaidKey(found.key.balanceId, exchange, deps);
  if (wait !== null) return tooManyUnpaid(wait);
  const rotated = await rotate(deps.keyDeps, found.key, found.by);
  if (refused(rotated)) return rotated;
  const { old } = rotated;
  const expires_at = isoTime(old.expiresAt ?? deps.keyDeps.clock.now());
  return ok({ ...mintedView(rotated, deps.keyDeps.clock.now()), old_key: { id: old.id, expires_at } });
}

async function end(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const found = await addressed(exchange, deps);
  if (refused(found)) return found;
  const key = await revoke(deps.keyDeps, found.key.id);
  return refused(key) ? key : ok({ id: key.id, state: key.state });
}

/** The key that the path names, if whoever asks may see it. */
async function addressed(exchange: Exchange, deps: HttpDeps): Promise<{ key: Key; by: Actor } | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  const id = exchange.params.id ?? "";
  const key = await visibleKey(id, who, deps);
  if (key !== null) return { key, by: who.kind === "key" ? "key" : who.by };
  return invalidField(
    "id",
    who.kind === "key"
      ? `An API key can see and change only itself: \`${who.key.id}\`. For other keys, send an owner's credential: the recovery secret, or a signed-in session.`
      : `You have no key \`${repeated(id)}\`.`,
  );
}

async function visibleKey(id: string, who: Identity, { keyDeps }: HttpDeps): Promise<Key | null> {
  if (who.kind === "key") return id === who.key.id ? who.key : null;
  const key = await keyDeps.store.keyById(id as KeyId);
  return key !== null && ownBalances(who).includes(key.balanceId) ? key : null;
}

/**
 * Each set-up writes to the disk, and whoever has many networks must not keep the disk busy: all together make as
 * many as this many addresses may.
 */
const SET_UP_SHARES = 100;

const tooManyForAll = (retryAfterS: number): Refusal =>
  refuse(
    "rate_limited",
    `More keys without an account were created within an hour than this gateway gives out. Retry in ${retryAfterS} s. To create more keys on a balance that you have, send its recovery secret.`,
    retryAfter(retryAfterS),
  );

/**
 * A key is a row that stays, and a balance without credit costs nothing: so many an hour from a network. Null, or
 * the seconds to wait.
 */
async function unpaidKey(balance: BalanceId, exchange: Exchange, deps: HttpDeps): Promise<number | null> {
  if ((await deps.keyDeps.credit(balance)) > 0) return null;
  const { unpaid_keys: unpaidKeys } = deps.throttles;
  const wait = await takeOfAll(unpaidKeys, clientBlocks(exchange, deps), UNPAID_KEYS_AN_HOUR);
  return wait ?? (await unpaidKeys.take(EVERYBODY, UNPAID_KEYS_AN_HOUR * SET_UP_SHARES));
}

const UNPAID_KEYS_AN_HOUR = 120;

const tooManyUnpaid = (retryAfterS: number): Refusal =>
  tooOften(
    `made or rotated ${UNPAID_KEYS_AN_HOUR} keys of balances without credit`,
    retryAfterS,
    "Revoking is always possible; with credit, there is no such limit.",
  );

const noSetUps = ({ settings }: HttpDeps): Refusal =>
  refuse(
    "invalid_request",
    `This gateway does not give out keys to everybody. Ask its operator for one, or sign in at ${settings().dashboardUrl}.`,
  );

const tooManySetUps = (limit: number, retryAfterS: number): Refusal =>
  tooOften(
    `created ${limit} keys without an account`,
    retryAfterS,
    "To create more keys on a balance that you have, send its recovery secret.",
  );
