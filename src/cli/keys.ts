import type { KeyAnswer, KeyFields, MintedAnswer, RevokedAnswer, SetUpAnswer } from "../api/keys.ts";
import { adminClient, Client, type OwnerOptions, ownerClient } from "./client.ts";
import { gatewayUrl, knownAdminToken, refuseClearText } from "./connection.ts";
import { andMore, type CommandContext, pairs, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { withProgress } from "./progress.ts";

export interface KeySpecOptions extends OwnerOptions {
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
  const url = gatewayUrl(options, place);
  // The answer holds secrets whether or not a credential is sent.
  refuseClearText(url, options);
  const owner = ownerClient(options, place);
  const token = owner === null ? knownAdminToken(options, place) : null;
  const path = token === null ? "/v1/keys" : "/admin/keys";
  const client = owner ?? new Client(place, url, token);
  const made = await client.post<MintedAnswer | SetUpAnswer>(path, specOf(options));
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
  options: OwnerOptions & { readonly limit: number },
  place: CommandContext,
): Promise<void> {
  const owner = ownerClient(options, place);
  if (owner === null && balance === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      "no balance was named, so there are no keys to list",
      "Name one of `gateway balances`, or set GATEWAY_OWNER to act as an owner.",
    );
  }
  const path = owner === null ? `/admin/balances/${encodeURIComponent(balance!)}/keys` : "/v1/keys";
  const client = owner ?? adminClient(options, place);
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
    ...andMore(more, options),
  ]);
}

export async function showKey(id: string, options: OwnerOptions, place: CommandContext): Promise<void> {
  const { client, path } = keyAt(id, options, place);
  const key = await client.get<KeyAnswer>(path);
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
  const { client, path } = keyAt(id, options, place);
  const key = await client.patch<KeyAnswer>(path, spec);
  show(place, options.json, key, linesOf(key));
}

const linesOf = (key: KeyAnswer): string[] =>
  pairs(
    Object.entries(key).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value as string | number | null),
    ]),
  );

export async function revokeKey(id: string, options: OwnerOptions, place: CommandContext): Promise<void> {
  const { client, path } = keyAt(id, options, place);
  const revoked = await client.post<RevokedAnswer>(`${path}/revoke`);
  show(place, options.json, revoked, [`${revoked.id} is revoked: its next request is refused.`]);
}

/** As its owner sees it, or as the operator does where no owner is named. */
function keyAt(id: string, options: OwnerOptions, place: CommandContext) {
  const owner = ownerClient(options, place);
  const path = `${owner === null ? "/admin" : "/v1"}/keys/${encodeURIComponent(id)}`;
  return { client: owner ?? adminClient(options, place), path };
}

const budgetText = (budget: KeyAnswer["budget"]): string | null =>
  budget === null || typeof budget === "string" ? budget : budget.join(", ");
