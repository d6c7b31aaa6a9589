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
import { asEither, asOwner, pagesAt } from "./actions.ts";
import {
  amountUsd,
  groupOf,
  jsonObject,
  limitOption,
  orUnlimited,
  owned,
  several,
  wholeNumber,
} from "./arguments.ts";
import { adminClient, Client, ownerClient, path } from "./client.ts";
import { gatewayUrl, knownAdminToken, refuseClearText } from "./connection.ts";
import { type CommandContext, members, pairs, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { balanceIdOf, keyIdOf, ofBalance } from "./named.ts";

export function addKeys(gateway: Command, context: CommandContext): void {
  const keys = groupOf(gateway, "keys", "Create, list, show, change and revoke API keys.");
  withKeySpec(keys, "create")
    .description("Create a key, on a new balance without an account unless --balance or --owner names one.")
    .option("--balance <id>", "the key's balance, bal_…; with --owner, which of the owner's balances")
    .action((options) => createKey(options, context));
  withKeySpec(keys, "change")
    .description("Change a key; what you do not name stays as it is.")
    .argument("<key>", A_KEY)
    .action(
      asEither(context, async (client, named, options) => {
        const spec = specOf(options);
        if (Object.values(spec).every((value) => value === undefined)) {
          const next = "Name at least one, such as --daily-limit-usd 20.";
          throw new CommandFailure(EXIT.usage, "no change was named", next);
        }
        const key = await client.patch<KeyAnswer>(await keyAt(named, client), spec);
        return [key, members(key)];
      }),
    );
  addList(keys, context);
  addOne(keys, context);
}

const A_KEY = "id of a key, key_…, or the key itself";

const withKeySpec = (keys: Command, name: string) =>
  owned(keys, name)
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

type KeyOptions = ReturnType<ReturnType<typeof withKeySpec>["opts"]>;

/**
 * On the balance that is named, or the owner's. Without either: a balance without an account, with its first key; as the operator where that
 * is who asks.
 */
async function createKey(
  options: KeyOptions & { readonly balance?: string | undefined },
  context: CommandContext,
): Promise<void> {
  const url = gatewayUrl(options, context);
  // The answer holds secrets whether or not a credential is sent.
  refuseClearText(url, options);
  const owner = ownerClient(options, context);
  const token = owner === null ? knownAdminToken(options, context) : null;
  const isFor = owner === null ? options.balance : undefined;
  const client =
    owner ?? (isFor === undefined ? new Client(context, url, token) : adminClient(options, context));
  const keysPath =
    isFor !== undefined
      ? path`/admin/balances/${await balanceIdOf(isFor, client)}/keys`
      : token === null
        ? "/v1/keys"
        : "/admin/keys";
  const made = await client.post<MintedAnswer | SetUpAnswer>(keysPath, specOf(options));
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
const specOf = (options: KeyOptions): { [F in keyof AdminKeyFields]: AdminKeyFields[F] | undefined } => ({
  name: options.name,
  rpm_limit: orNull(options.rpmLimit),
  tpm_limit: orNull(options.tpmLimit),
  daily_limit_usd: orNull(options.dailyLimitUsd),
  monthly_limit_usd: orNull(options.monthlyLimitUsd),
  allowed_models: options.allowModel,
  budget: options.budget,
  expires_at: options.expiresAt,
  policy: orNull(options.policy) as AdminKeyFields["policy"],
  price_list: options.priceList === "none" ? null : options.priceList,
});

const orNull = <Value>(value: Value | "none") => (value === "none" ? null : value);

function addList(keys: Command, context: CommandContext): void {
  owned(keys, "list")
    .description("List the keys of a balance, or of --owner.")
    .argument("[balance]", "id of a balance, bal_…")
    .option("--search <text>", "only those with this text in name, first characters or id")
    .addOption(
      new Option("--state <state>", "only keys that work, or those that ended").choices(["active", "ended"]),
    )
    .addOption(new Option("--period <period>", "what each key spent in it; days are UTC").choices(PERIODS))
    .addOption(
      new Option("--sort <order>", "most spend in the period, or latest use, first").choices(KEY_ORDERS),
    )
    .addOption(limitOption())
    .action(
      asEither(context, async (client, balance, { search, state, sort, ...options }) => {
        const period = options.period ?? (sort === undefined ? undefined : "month");
        return pagesAt<KeyAnswer>(client.onBalance(balance), context, options, {
          path: await ofBalance(balance, "keys", client),
          filters: { search, state, period, sort },
          noun: "keys",
          columns: {
            ...COLUMNS,
            ...(period === undefined
              ? {}
              : { [`${period} USD`]: "used_period_usd" as const, "last used": "last_used_at" as const }),
          },
        });
      }),
    );
}

const COLUMNS = {
  id: "id",
  prefix: "prefix",
  name: "name",
  state: "state",
  rpm: "rpm_limit",
  tpm: "tpm_limit",
  "day USD": "daily_limit_usd",
  "used today": "used_day_usd",
  "month USD": "monthly_limit_usd",
  "used this month": "used_month_usd",
  budget: ({ budget }: KeyAnswer) => (budget === null ? null : [budget].flat().join(", ")),
} as const;

function addOne(keys: Command, context: CommandContext): void {
  owned(keys, "show")
    .description("Show a key with its use.")
    .argument("<key>", A_KEY)
    .action(
      asEither(context, async (client, named) => {
        const key = await client.get<KeyAnswer>(await keyAt(named, client));
        return [key, members(key)];
      }),
    );
  owned(keys, "rotate")
    .description(
      "Replace a key of --owner: the new key is shown once, the old one works for a while (`grace_ms`).",
    )
    .argument("<key>", A_KEY)
    .action(
      asOwner(context, async (client, named) => {
        const made = await client.post<RotatedAnswer>(`${await keyAt(named, client)}/rotate`);
        const lines = pairs([
          ["key", made.key],
          ["id", made.id],
          ["old key ends", made.old_key.expires_at],
        ]);
        return [made, [...lines, "", "Save the key: it is not shown again."]];
      }),
    );
  owned(keys, "revoke")
    .description("Revoke a key: its very next request is refused.")
    .argument("<key>", A_KEY)
    .action(
      asEither(context, async (client, named) => {
        const revoked = await client.post<RevokedAnswer>(`${await keyAt(named, client)}/revoke`);
        return [revoked, [`${revoked.id} is revoked: its next request is refused.`]];
      }),
    );
}

const keyAt = async (named: string, client: Client): Promise<string> =>
  path`/${client.as}/keys/${await keyIdOf(named, client)}`;
