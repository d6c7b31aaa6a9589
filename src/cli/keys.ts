import { type Command, Option } from "@commander-js/extra-typings";
import {
  type AdminKeyFields,
  KEY_ORDERS,
  type KeyAnswer,
  type MintedAnswer,
  type RevokedAnswer,
  type RotatedAnswer,
  type SetUpAnswer,
} from "../api/keys.ts";
import { PERIODS } from "../api/usage.ts";
import {
  amountUsd,
  connected,
  jsonObject,
  limitOption,
  orUnlimited,
  ownerOption,
  several,
  wholeNumber,
} from "./arguments.ts";
import { adminClient, Client, type OwnerOptions, ownerClient } from "./client.ts";
import { gatewayUrl, knownAdminToken, refuseClearText } from "./connection.ts";
import { type CommandContext, members, pairs, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { showList } from "./listing.ts";
import { balanceIdOf, keyIdOf } from "./named.ts";

export function addKeys(gateway: Command, context: CommandContext): void {
  const keys = gateway
    .command("keys")
    .description("Create, list, show, change and revoke API keys.") as Command;
  const withKeySpec = (name: string) =>
    connected(keys, name)
      .addOption(ownerOption())
      .option("--name <text>", "a name to recognise it by")
      .option("--rpm-limit <n>", "requests per minute, or none", orUnlimited(wholeNumber))
      .option("--tpm-limit <n>", "tokens per minute, or none", orUnlimited(wholeNumber))
      .option("--daily-limit-usd <usd>", "spend per UTC day, or none", orUnlimited(amountUsd))
      .option("--monthly-limit-usd <usd>", "spend per calendar month, or none", orUnlimited(amountUsd))
      .addOption(new Option("--allow-model <id>", "a model it may call; repeatable").argParser(several))
      .addOption(new Option("--budget <name>", "a budget it draws from; repeatable").argParser(several))
      .option(
        "--policy <json>",
        `which hosts may serve it, and where its tags come from, such as '{"region":["eu"],"zdr":true}', or none`,
        orUnlimited(jsonObject),
      )
      .option("--expires-at <time>", "a time in ISO 8601 with a time zone")
      .option("--price-list <name>", "the price list that applies to it, or none; operators only");
  withKeySpec("create")
    .description("Create a key, on a new balance without an account unless --balance or --owner names one.")
    .option("--balance <id>", "the key's balance, bal_…; with --owner, which of the owner's balances")
    .action((options) => createKey(options, context));
  withKeySpec("change")
    .description("Change a key; what you do not name stays as it is.")
    .argument("<key>", "id of a key, key_…, or the key itself")
    .action((id, options) => changeKey(id, options, context));
  connected(keys, "list")
    .description("List the keys of a balance, or of --owner.")
    .argument("[balance]", "id of a balance, bal_…")
    .addOption(ownerOption())
    .option("--search <text>", "only those with this text in name, first characters or id")
    .addOption(
      new Option("--state <state>", "only keys that work, or those that ended").choices(["active", "ended"]),
    )
    .addOption(new Option("--period <period>", "what each key spent in it; days are UTC").choices(PERIODS))
    .addOption(
      new Option("--sort <order>", "most spend in the period, or latest use, first").choices(KEY_ORDERS),
    )
    .addOption(limitOption())
    .action((balance, options) => listKeys(balance, options, context));
  connected(keys, "show")
    .description("Show a key with its use.")
    .argument("<key>", "id of a key, key_…, or the key itself")
    .addOption(ownerOption())
    .action((id, options) => showKey(id, options, context));
  connected(keys, "rotate")
    .description(
      "Replace a key of --owner: the new key is shown once, the old one works for a while (`grace_ms`).",
    )
    .argument("<key>", "id of a key, key_…, or the key itself")
    .addOption(ownerOption())
    .action((id, options) => rotateKey(id, options, context));
  connected(keys, "revoke")
    .description("Revoke a key: its very next request is refused.")
    .argument("<key>", "id of a key, key_…, or the key itself")
    .addOption(ownerOption())
    .action((id, options) => revokeKey(id, options, context));
}

interface KeySpecOptions extends OwnerOptions {
  readonly name?: string | undefined;
  readonly rpmLimit?: number | "none" | undefined;
  readonly tpmLimit?: number | "none" | undefined;
  readonly dailyLimitUsd?: number | "none" | undefined;
  readonly monthlyLimitUsd?: number | "none" | undefined;
  readonly allowModel?: readonly string[] | undefined;
  readonly budget?: readonly string[] | undefined;
  readonly expiresAt?: string | undefined;
  readonly priceList?: string | undefined;
  readonly policy?: object | "none" | undefined;
}

const keysAt = (balance: string): string => `/admin/balances/${encodeURIComponent(balance)}/keys`;

/**
 * On the balance that is named, or the owner's. Without either: a balance without an account, with its first key; as the operator where that
 * is who asks.
 */
async function createKey(options: KeySpecOptions, context: CommandContext): Promise<void> {
  const url = gatewayUrl(options, context);
  // The answer holds secrets whether or not a credential is sent.
  refuseClearText(url, options);
  const owner = ownerClient(options, context);
  const token = owner === null ? knownAdminToken(options, context) : null;
  const isFor = owner === null ? options.balance : undefined;
  const client =
    owner ?? (isFor === undefined ? new Client(context, url, token) : adminClient(options, context));
  const path =
    isFor !== undefined
      ? keysAt(await balanceIdOf(isFor, client))
      : token === null
        ? "/v1/keys"
        : "/admin/keys";
  const made = await client.post<MintedAnswer | SetUpAnswer>(path, specOf(options));
  const recovery = "recovery_secret" in made ? made.recovery_secret : null;
  show(context, options.json, made, [
    ...pairs([
      ["key", made.key],
      ...(recovery === null ? [] : [["recovery secret", recovery] as const]),
      ["id", made.id],
      ["balance", made.balance_id],
      ...("balance_price_list" in made && made.balance_price_list !== null
        ? [["price list of the balance", made.balance_price_list] as const]
        : []),
    ]),
    "",
    recovery === null
      ? "Save the key: it is not shown again."
      : "Save both secrets: neither is shown again, and nobody can restore them.",
  ]);
}

/** What is undefined is not sent. */
const specOf = (options: KeySpecOptions): { [F in keyof AdminKeyFields]: AdminKeyFields[F] | undefined } => ({
  name: options.name,
  rpm_limit: limitOf(options.rpmLimit),
  tpm_limit: limitOf(options.tpmLimit),
  daily_limit_usd: limitOf(options.dailyLimitUsd),
  monthly_limit_usd: limitOf(options.monthlyLimitUsd),
  allowed_models: options.allowModel,
  budget: options.budget,
  expires_at: options.expiresAt,
  policy: options.policy === "none" ? null : (options.policy as AdminKeyFields["policy"]),
  price_list: options.priceList === "none" ? null : options.priceList,
});

const limitOf = (limit: number | "none" | undefined) => (limit === "none" ? null : limit);

async function listKeys(
  balance: string | undefined,
  options: OwnerOptions & {
    readonly limit: number;
    readonly search?: string | undefined;
    readonly state?: string | undefined;
    readonly period?: string | undefined;
    readonly sort?: string | undefined;
  },
  context: CommandContext,
): Promise<void> {
  const { search, state, sort } = options;
  const period = options.period ?? (sort === undefined ? undefined : "month");
  const owner = ownerClient(options, context);
  if (owner === null && balance === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      "no balance was named, so there are no keys to list",
      "Name one of `gateway balances`, or set GATEWAY_OWNER to act as an owner.",
    );
  }
  const client = owner ?? adminClient(options, context);
  const path = owner === null ? keysAt(await balanceIdOf(balance!, client)) : "/v1/keys";
  const listing = {
    path,
    filters: { search, state, period, sort },
    noun: "keys",
    head: [
      "id",
      "prefix",
      "name",
      "state",
      "rpm",
      "tpm",
      "day USD",
      "used",
      "month USD",
      "used",
      "budget",
      ...(period === undefined ? [] : [`${period} USD`, "last used"]),
    ],
    cells: (key: KeyAnswer) => [
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
      ...(period === undefined ? [] : [key.used_period_usd ?? null, key.last_used_at ?? null]),
    ],
  };
  await showList(listing, client, options, context);
}

async function showKey(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const { client, path } = await keyAt(id, options, context);
  const key = await client.get<KeyAnswer>(path);
  show(context, options.json, key, members(key));
}

/** Changes what was named and leaves the rest as it is. */
async function changeKey(id: string, options: KeySpecOptions, context: CommandContext): Promise<void> {
  const spec = specOf(options);
  if (Object.values(spec).every((value) => value === undefined)) {
    throw new CommandFailure(
      EXIT.usage,
      "no change was named",
      "Name at least one, such as --daily-limit-usd 20.",
    );
  }
  const { client, path } = await keyAt(id, options, context);
  const key = await client.patch<KeyAnswer>(path, spec);
  show(context, options.json, key, members(key));
}

async function revokeKey(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const { client, path } = await keyAt(id, options, context);
  const revoked = await client.post<RevokedAnswer>(`${path}/revoke`);
  show(context, options.json, revoked, [`${revoked.id} is revoked: its next request is refused.`]);
}

/** For the owner: the key that takes its place is shown once. */
async function rotateKey(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const client = ownerClient(options, context);
  if (client === null)
    throw new CommandFailure(
      EXIT.usage,
      "only its owner can rotate a key",
      "Set GATEWAY_OWNER to the recovery secret of its balance, or to a session.",
    );
  const path = `/v1/keys/${encodeURIComponent(await keyIdOf(id, client, "v1"))}/rotate`;
  const made = await client.post<RotatedAnswer>(path);
  show(context, options.json, made, [
    ...pairs([
      ["key", made.key],
      ["id", made.id],
      ["old key ends", made.old_key.expires_at],
    ]),
    "",
    "Save the key: it is not shown again.",
  ]);
}

/** As its owner sees it, or as the operator does where no owner is named. */
async function keyAt(named: string, options: OwnerOptions, context: CommandContext) {
  const owner = ownerClient(options, context);
  const client = owner ?? adminClient(options, context);
  const as = owner === null ? "admin" : "v1";
  const id = await keyIdOf(named, client, as);
  return { client, path: `/${as}/keys/${encodeURIComponent(id)}` };
}

const budgetText = (budget: KeyAnswer["budget"]): string | null =>
  budget === null || typeof budget === "string" ? budget : budget.join(", ");
