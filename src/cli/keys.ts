import type { KeyAnswer, KeyFields, MintedAnswer, RevokedAnswer, SetUpAnswer } from "../api/keys.ts";
import { Client } from "./client.ts";
import {
  adminToken,
  type ConnectionOptions,
  gatewayUrl,
  knownAdminToken,
  refuseClearText,
} from "./connection.ts";
import { type CommandContext, pairs, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { withProgress } from "./progress.ts";

export interface KeyOptions extends ConnectionOptions {
  readonly json: boolean;
  /**
   * The recovery secret of a balance, or a session: commands then act for its owner, and need no admin token.
   */
  readonly owner?: string | undefined;
}

export interface KeySpecOptions extends KeyOptions {
  readonly name?: string | undefined;
  readonly rpmLimit?: number | "none" | undefined;
  readonly tpmLimit?: number | "none" | undefined;
  readonly dailyLimitUsd?: number | "none" | undefined;
  readonly monthlyLimitUsd?: number | "none" | undefined;
  readonly allowModel?: readonly string[] | undefined;
  readonly budget?: readonly string[] | undefined;
  readonly expiresAt?: string | undefined;
}

/**
 * Without an owner's credential: a balance without an account, with its first key; as the operator where that
 * is who asks.
 */
export async function createKey(options: KeySpecOptions, place: CommandContext): Promise<void> {
  const owner = ownerOf(options, place);
  const url = gatewayUrl(options, place);
  // The answer holds secrets whether or not a credential is sent.
  refuseClearText(url, options);
  const token = owner === null ? knownAdminToken(options, place) : null;
  const path = token === null ? "/v1/keys" : "/admin/keys";
  const made = await new Client(place, url, owner ?? token).post<MintedAnswer | SetUpAnswer>(
    path,
    specOf(options),
  );
  const recovery = "recovery_secret" in made ? made.recovery_secret : null;
  show(place, options.json, made, [
    ...pairs([
      ["key", made.key],
      ...(recovery === null ? [] : [["recovery secret", recovery] as const]),
      ["id", made.id],
      ["balance", made.balance_id],
    ]),
    "",
    recovery === null
      ? "Save the key: it is not shown again."
      : "Save both secrets: neither is shown again, and nobody can restore them.",
  ]);
}

/** What is undefined is not sent. */
const specOf = (options: KeySpecOptions): { [F in keyof KeyFields]: KeyFields[F] | undefined } => ({
  name: options.name,
  rpm_limit: limitOf(options.rpmLimit),
  tpm_limit: limitOf(options.tpmLimit),
  daily_limit_usd: limitOf(options.dailyLimitUsd),
  monthly_limit_usd: limitOf(options.monthlyLimitUsd),
  allowed_models: options.allowModel,
  budget: options.budget,
  expires_at: options.expiresAt,
});

const limitOf = (limit: number | "none" | undefined) => (limit === "none" ? null : limit);

export async function listKeys(
  balance: string | undefined,
  options: KeyOptions & { readonly limit: number },
  place: CommandContext,
): Promise<void> {
  const owner = ownerOf(options, place);
  if (owner === null && balance === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      "no balance was named, so there are no keys to list",
      "Name one of `gateway balances`, or set GATEWAY_OWNER to act as an owner.",
    );
  }
  const path = owner === null ? `/admin/balances/${encodeURIComponent(balance!)}/keys` : "/v1/keys";
  const client = clientFor(owner, options, place);
  const { rows, more } = await withProgress(place, (progress) =>
    client.all<KeyAnswer>(path, options.limit, (count) => progress(count, null, "keys")),
  );
  show(place, options.json, { data: rows, has_more: more }, [
    ...table(
      ["id", "prefix", "name", "state", "rpm", "tpm", "day USD", "used", "month USD", "used", "budget"],
      rows.map((key) => [
        key.id,
        key.prefix,
        key.name,
        key.state,
        key.rpm_limit,
        key.tpm_limit,
        key.daily_limit_usd,
        key.used_day_usd,
        key.monthly_limit_usd,
        key.used_month_usd,
        budgetText(key.budget),
      ]),
    ),
    ...(more ? [`… and more: raise --limit above ${options.limit} to see them`] : []),
  ]);
}

export async function showKey(id: string, options: KeyOptions, place: CommandContext): Promise<void> {
  const owner = ownerOf(options, place);
  const path = `${owner === null ? "/admin" : "/v1"}/keys/${encodeURIComponent(id)}`;
  const key = await clientFor(owner, options, place).get<KeyAnswer>(path);
  show(place, options.json, key, linesOf(key));
}

/** Changes what was named and leaves the rest as it is. */
export async function changeKey(id: string, options: KeySpecOptions, place: CommandContext): Promise<void> {
  const spec = specOf(options);
  if (Object.values(spec).every((value) => value === undefined)) {
    throw new CommandFailure(
      EXIT.usage,
      "no change was named",
      "Name at least one, such as --daily-limit-usd 20.",
    );
  }
  const owner = ownerOf(options, place);
  const path = `${owner === null ? "/admin" : "/v1"}/keys/${encodeURIComponent(id)}`;
  const key = await clientFor(owner, options, place).patch<KeyAnswer>(path, spec);
  show(place, options.json, key, linesOf(key));
}

const linesOf = (key: KeyAnswer): string[] =>
  pairs(
    Object.entries(key).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value as string | number | null),
    ]),
  );

export async function revokeKey(id: string, options: KeyOptions, place: CommandContext): Promise<void> {
  const owner = ownerOf(options, place);
  const path = `${owner === null ? "/admin" : "/v1"}/keys/${encodeURIComponent(id)}/revoke`;
  const revoked = await clientFor(owner, options, place).post<RevokedAnswer>(path);
  show(place, options.json, revoked, [`${revoked.id} is revoked: its next request is refused.`]);
}

const ownerOf = ({ owner }: KeyOptions, { env }: CommandContext): string | null =>
  owner ?? (env.GATEWAY_OWNER || null);

function clientFor(owner: string | null, options: KeyOptions, place: CommandContext): Client {
  const url = gatewayUrl(options, place);
  if (owner === null) return new Client(place, url, adminToken(options, url, place));
  refuseClearText(url, options);
  return new Client(place, url, owner);
}

const budgetText = (budget: KeyAnswer["budget"]): string | null =>
  budget === null || typeof budget === "string" ? budget : budget.join(", ");
