import type { AccountBalances } from "../customers/accounts/account.ts";
import { isSession } from "../customers/accounts/secret.ts";
import type { ChangeAuthor } from "../customers/changes/change.ts";
import type { Balance, Key } from "../customers/keys/key.ts";
import type { Actor } from "../customers/keys/root.ts";
import { isRecoverySecret } from "../customers/keys/secret.ts";
import { invalidKey, invalidRecovery, tooMuchUnpaid } from "../generation/refusals.ts";
import { type Throttle, takeOfAll, tooOften } from "../ledger/limits/address.ts";
import { assert } from "../units/assert.ts";
import { invalidField, type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import { hashSecret, type SecretHash } from "../units/secret-hash.ts";
import { declaredLength } from "./body.ts";
import { cookieSession, fromOwnPage } from "./cookie.ts";
import type { HttpDeps } from "./deps.ts";
import { type HttpExchange, pathOf } from "./exchange.ts";

/** Who sends a request. An owner shows the recovery secret of the balance, or a session of its account. */
export type Identity = KeyIdentity | OwnerIdentity;

export interface KeyIdentity {
  readonly kind: "key";
  readonly key: Key;
  readonly balance: Balance;
}

export type OwnerIdentity = RecoveryIdentity | SessionIdentity;

interface RecoveryIdentity {
  readonly kind: "owner";
  readonly by: "recovery";
  readonly balance: Balance;
  readonly secret: SecretHash;
}

export interface SessionIdentity {
  readonly kind: "owner";
  readonly by: "session";
  /** The balance to act on: named by the header `x-gateway-balance`, or else the account's first. */
  readonly balance: Balance;
  /** The balances that may be seen: the named one, or all of the account's. */
  readonly balances: readonly BalanceId[];
  readonly accountBalances: AccountBalances;
  readonly session: SecretHash;
}

/** The balances whose keys and receipts an owner may see. */
export const ownBalances = (owner: OwnerIdentity): readonly BalanceId[] =>
  owner.by === "session" ? owner.balances : [owner.balance.id];

/** Whom a change of keys is decided for. */
export function actorOf(who: Identity): Actor {
  if (who.kind === "key") return { by: "key" };
  return who.by === "recovery"
    ? { by: "recovery", secret: who.secret }
    : { by: "session", account: who.accountBalances.account.id };
}

/** Whose change it is. An address is not named, because the log outlives a deleted account. */
function authorOf(who: Identity): ChangeAuthor {
  if (who.kind === "key") return { kind: "key", id: who.key.id, name: who.key.name };
  return who.by === "recovery"
    ? { kind: "owner", id: who.balance.id, name: "recovery secret" }
    : { kind: "owner", id: who.accountBalances.account.id, name: "session" };
}

/** The bearer token; null when there is none. */
export function bearerOf(request: Request): string | null {
  const header = request.headers.get("authorization");
  if (header === null) return null;
  // As nearly all clients spell it.
  if (header.startsWith("Bearer ") && header.charCodeAt(7) > SPACE) return header.slice(7);
  return BEARER.exec(header)?.[1] ?? null;
}

const SPACE = 0x20;
const BEARER = /^bearer +(\S.*)$/i;

/** The same on endpoints for Anthropic's clients, which can send only `x-api-key`. */
export const bearerOrApiKeyOf = (request: Request): string | null =>
  bearerOf(request) ?? request.headers.get("x-api-key");

/**
 * Authenticates the sender of a request, and counts those without credit: so many are looked at within a minute. Ending a
 * key or a session is never too much, because a user who lost one has to do it.
 */
export async function identify(
  exchange: HttpExchange,
  secretOf?: (request: Request) => string | null,
): Promise<Identity | Refusal> {
  const who = await authenticate(exchange, secretOf);
  if (refused(who)) return who;
  exchange.author = authorOf(who);
  if (isEnding(exchange.request)) return who;
  const load = { bytes: lengthOf(exchange.request), writes: isChange(exchange.request) };
  const waitS = exchange.deps.unpaidRequests.waitS(
    await payerOf(who, exchange.deps),
    () => exchange.blocks(),
    load,
  );
  return waitS === null ? who : tooMuchUnpaid(waitS);
}

/** A balance with credit, where a session that names none has one. */
async function payerOf(who: Identity, { keyDeps }: HttpDeps): Promise<BalanceId> {
  const others = who.kind === "owner" && who.by === "session" ? who.balances.slice(1, MAX_CHECKED) : [];
  for (const id of others) if ((await keyDeps.spendable.of(id)) > 0) return id;
  return who.balance.id;
}

/** Each may have to be read; an account can have any number. */
const MAX_CHECKED = 16;

const isEnding = (request: Request): boolean =>
  request.method === "DELETE" || (request.method === "POST" && ENDING.test(pathOf(request)));

const ENDING = /\/(revoke|logout)$/;

const isChange = (request: Request): boolean =>
  !SAFE_METHODS.has(request.method) && !pathOf(request).endsWith("/count_tokens");

/** As it is declared; without that, as of a small one. */
function lengthOf(request: Request): number {
  const length = declaredLength(request);
  return length === null || refused(length) ? 0 : length;
}

/**
 * Who sends a request: by its bearer token, or else by a session in a cookie, where that is safe. Unknown,
 * revoked and expired credentials have one answer.
 */
export async function authenticate(
  exchange: HttpExchange,
  secretOf: (request: Request) => string | null = bearerOf,
): Promise<Identity | Refusal> {
  const { request } = exchange;
  const secret = secretOf(request);
  if (secret !== null) return identifyBy(secret, exchange);
  const session = request.headers.has("authorization") ? null : cookieSession(request);
  if (session === null) return missingKey(request);
  const forged = !SAFE_METHODS.has(request.method) && !fromOwnPage(request, exchange.deps.config.settings);
  return forged ? notOwnPage() : bySession(session, exchange);
}

/** Methods that change nothing, and whose answers pages elsewhere cannot read. */
const SAFE_METHODS = new Set(["GET", "HEAD"]);

/**
 * Nothing at all that says who somebody is. Who names a balance means one of their own: their session has
 * ended, and a key on a new balance, which they would never find again, is not what they ask for.
 */
export const isAnonymous = (request: Request): boolean =>
  !request.headers.has("x-gateway-balance") &&
  !request.headers.has("authorization") &&
  !request.headers.has("x-api-key") &&
  cookieSession(request) === null;

async function identifyBy(secret: string, exchange: HttpExchange): Promise<Identity | Refusal> {
  if (isRecoverySecret(secret)) return byRecovery(secret, exchange);
  if (isSession(secret)) return bySession(secret, exchange);
  return byKey(secret, exchange);
}

async function byKey(secret: string, exchange: HttpExchange): Promise<KeyIdentity | Refusal> {
  const { keyDeps, clock, config } = exchange.deps;
  const holder = await keyDeps.keyring.identify(secret, clock.now());
  if (holder === null) return invalidKey(config.settings.dashboardUrl);
  exchange.reauthenticate = () => byKey(secret, exchange);
  return { kind: "key", key: holder.key, balance: holder.balance };
}

async function byRecovery(secret: string, exchange: HttpExchange): Promise<RecoveryIdentity | Refusal> {
  return againstGuessing(exchange, async () => {
    const hash = hashSecret(secret);
    const balance = await exchange.deps.keyDeps.store.balanceByRecovery(hash);
    if (balance === null) return invalidRecovery(exchange.deps.config.settings.dashboardUrl);
    exchange.reauthenticate = () => byRecovery(secret, exchange);
    return { kind: "owner", by: "recovery", balance, secret: hash };
  });
}

/**
 * Looks up a secret that opens an account. Only wrong ones count: guesses from the same network, or from
 * everybody behind one proxy, must not lock out the owner, whose secret nobody guesses.
 */
export async function againstGuessing<Opened>(
  exchange: HttpExchange,
  resolve: () => Promise<Opened | Refusal>,
): Promise<Opened | Refusal> {
  const found = await resolve();
  if (!refused(found)) return found;
  const wait = await takeOfAll(exchange.deps.throttles.wrong_secrets, exchange.blocks(), MAX_WRONG);
  return wait === null
    ? found
    : tooOften(`sent ${MAX_WRONG} wrong recovery secrets or links`, wait, "A right one is taken meanwhile.");
}

/** Checks a wallet's signature, which may cost a question to a chain: beyond the limit none is checked. */
export const againstForging = <Opened>(
  exchange: HttpExchange,
  check: () => Promise<Opened | Refusal>,
): Promise<Opened | Refusal> =>
  checkedSignature(exchange.deps.throttles.wrong_signatures, exchange.blocks(), check);

/** The same, where who sends it is known by its network alone. */
export async function checkedSignature<Opened>(
  wrongSignatures: Throttle,
  blocks: readonly string[],
  check: () => Promise<Opened | Refusal>,
): Promise<Opened | Refusal> {
  // Each counts as wrong until it proves right, so that sending many at once does not allow more than sending
  // them one by one; also where it makes the chain's node fail, which a wallet that is a contract can.
  const wait = await takeOfAll(wrongSignatures, blocks, MAX_WRONG);
  if (wait !== null) return tooOften(`sent ${MAX_WRONG} wrong signatures`, wait);
  const outcome = await check();
  if (!refused(outcome)) for (const block of blocks) wrongSignatures.giveBack(block);
  return outcome;
}

/** Per hour and network address. */
const MAX_WRONG = 60;

async function bySession(secret: string, exchange: HttpExchange): Promise<SessionIdentity | Refusal> {
  const { request, deps } = exchange;
  const session = hashSecret(secret);
  const held = await deps.accounts.store.session(session);
  if (held === null || held.expiresAt <= deps.clock.now())
    return endedSession(deps.config.settings.dashboardUrl);
  const named = request.headers.get("x-gateway-balance");
  const balances = named === null ? held.balances : held.balances.filter((one) => one === named);
  const id = balances[0];
  if (id === undefined) return notOfAccount();
  const withBudgets = await deps.keyDeps.store.balanceWithBudgets(id);
  assert(withBudgets !== null, `${id} of ${held.account.id} does not exist`);
  // It was taken back from the account between the two readings.
  if (withBudgets.balance.accountId !== held.account.id) return notOfAccount();
  exchange.reauthenticate = async () => {
    const now = await bySession(secret, exchange);
    return refused(now) || balances.every((one) => now.balances.includes(one)) ? now : notOfAccount();
  };
  return {
    kind: "owner",
    by: "session",
    balance: withBudgets.balance,
    balances,
    accountBalances: held,
    session,
  };
}

export const notOfAccount = (): Refusal =>
  invalidField("x-gateway-balance", "`x-gateway-balance` must name a balance of this account.");

export function missingKey(request: Request): Refusal {
  const sent = request.headers.has("x-api-key")
    ? "This endpoint does not read `x-api-key`; no bearer token was sent."
    : request.headers.has("authorization")
      ? "The `Authorization` header does not carry a bearer token."
      : "No API key was sent.";
  return refuse(
    "missing_api_key",
    `${sent} Send the header \`Authorization: Bearer <API_KEY>\`. Keys are free, and made with POST /v1/keys.`,
  );
}

const endedSession = (dashboardUrl: string): Refusal =>
  refuse(
    "invalid_api_key",
    `The session is unknown, signed out or expired. Sign in again in the dashboard (${dashboardUrl}). API keys begin with \`or-live-\`.`,
  );

const notOwnPage = (): Refusal =>
  invalidField(
    "Origin",
    "A request that changes something by the session cookie must come from the dashboard's own pages. From elsewhere, send the session as the bearer token.",
  );

/** An API key where only an owner may act: an agent must not be able to lift its own caps. */
export const ownersOnly = (what: string): Refusal =>
  refuse(
    "invalid_request",
    `An API key cannot ${what}. Send an owner's credential as the bearer token: the recovery secret, or a signed-in session.`,
  );

/** An owner's credential where a key is needed, whose limits and counters apply. */
export const keysOnly = (what: string): Refusal =>
  refuse("invalid_request", `Only an API key can ${what}. Send one as the bearer token.`);

/** Where there must be an account behind the request. */
export const sessionsOnly = (what: string): Refusal =>
  refuse("invalid_request", `Only a signed-in session can ${what}. Sign in with POST /v1/auth/email.`);
