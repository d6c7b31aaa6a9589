import { type Refusal, refuse } from "../errors/refusal.ts";
import type { KeyDesk } from "../keys/desk.ts";
import type { Balance, Key } from "../keys/key.ts";
import type { Holder } from "../keys/keyring.ts";
import { hashSecret, isRecoverySecret } from "../keys/secret.ts";

/** Who sends a request. An owner shows the recovery secret of the balance, or a session of its account. */
export type Identity = KeyIdentity | OwnerIdentity;

export interface KeyIdentity {
  readonly kind: "key";
  readonly key: Key;
  readonly balance: Balance;
}

export interface OwnerIdentity {
  readonly kind: "owner";
  readonly by: "recovery" | "session";
  readonly balance: Balance;
}

/** The bearer token; null when there is none. */
export function bearerOf(request: Request): string | null {
  const header = request.headers.get("authorization");
  if (header === null) return null;
  return BEARER.exec(header)?.[1] ?? null;
}

const BEARER = /^bearer +(\S.*)$/i;

/** The same where Anthropic's clients are served, which can send only `x-api-key`. */
export const bearerOrApiKeyOf = (request: Request): string | null =>
  bearerOf(request) ?? request.headers.get("x-api-key");

/** Unknown, revoked and expired credentials have one answer. */
export async function identify(
  secret: string | null,
  request: Request,
  desk: KeyDesk,
  dashboardUrl: string,
): Promise<Identity | Refusal> {
  if (secret === null) return missingKey(request);
  if (isRecoverySecret(secret)) {
    const balance = await desk.store.balanceByRecovery(hashSecret(secret));
    return balance === null ? invalidKey(dashboardUrl) : { kind: "owner", by: "recovery", balance };
  }
  const holder: Holder | null = await desk.keyring.identify(secret, desk.clock.now());
  return holder === null
    ? invalidKey(dashboardUrl)
    : { kind: "key", key: holder.key, balance: holder.balance };
}

export function missingKey(request: Request): Refusal {
  const sent = request.headers.has("x-api-key")
    ? "This endpoint does not read `x-api-key`; no bearer token was sent."
    : request.headers.has("authorization")
      ? "The `Authorization` header does not carry a bearer token."
      : "No API key was sent.";
  return refuse("missing_api_key", `${sent} Send the header \`Authorization: Bearer <API_KEY>\`.`);
}

const invalidKey = (dashboardUrl: string): Refusal =>
  refuse(
    "invalid_api_key",
    `The API key is unknown, revoked or expired. Keys begin with \`or-live-\` and are created in the dashboard (${dashboardUrl}) or with POST /v1/keys.`,
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
