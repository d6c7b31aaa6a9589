import { Argument, type Command, Option } from "@commander-js/extra-typings";
import {
  type AccountAnswer,
  BALANCE_STATES,
  type BalanceAnswer,
  type CreditedAnswer,
  type DebitedAnswer,
  type ListedBalance,
} from "../api/admin.ts";
import type { List } from "../api/schema.ts";
import { asOperator, pagesAt } from "./actions.ts";
import { amountUsd, connected, limitOption, lowCreditArgument } from "./arguments.ts";
import { type Client, path } from "./client.ts";
import { type CommandContext, members } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { balanceIdOf, keyIdOf } from "./named.ts";

export function addMoney(gateway: Command, context: CommandContext): void {
  addBalances(gateway, context);
  connected(gateway, "account")
    .description("Show an account with its balances.")
    .argument("<account>", "acct_…, an email address or a wallet")
    .action(
      asOperator(context, async (client, who) => {
        const account = await accountOf(who, client);
        return [account, members(account)];
      }),
    );
  addCredit(gateway, context);
}

function addBalances(gateway: Command, context: CommandContext): void {
  connected(gateway, "balances")
    .description("List balances, newest first.")
    .addOption(limitOption())
    .addOption(
      new Option("--below <usd>", "only those with less than this left of their credit").argParser(amountUsd),
    )
    .addOption(new Option("--state <state>", "only such balances").choices(BALANCE_STATES))
    .action(
      asOperator(context, (client, { below, state, ...options }) =>
        pagesAt<ListedBalance>(client, context, options, {
          path: "/admin/balances",
          filters: { below_usd: below?.toString(), state },
          noun: "balances",
          columns: BALANCE_COLUMNS,
          notes: unanswered,
        }),
      ),
    );
  connected(gateway, "price-list")
    .description("Set the price list that applies to the keys of a balance.")
    .argument("<balance>", "bal_…, or a key of the balance")
    .argument("<name>", "name of a list of `price_lists`, or none for the models' own prices")
    .action(
      asOperator(context, async (client, named, name) => {
        const id = await balanceIdOf(named, client);
        const price_list = name === "none" ? null : name;
        const balance = await client.patch<BalanceAnswer>(path`/admin/balances/${id}`, { price_list });
        const by = price_list === null ? "the models' own prices" : `the price list ${price_list}`;
        return [balance, [`Requests of ${id} are charged by ${by} from now on.`]];
      }),
    );
  connected(gateway, "low-credit")
    .description("Set the credit below which a balance's owner is notified; owners use `owner low-credit`.")
    .argument("<balance>", "bal_…, or a key of the balance")
    .addArgument(lowCreditArgument())
    .action(
      asOperator(context, async (client, named, low_credit_usd) => {
        const id = await balanceIdOf(named, client);
        const balance = await client.patch<BalanceAnswer>(path`/admin/balances/${id}`, { low_credit_usd });
        return [balance, [lowCreditLine(id, low_credit_usd)]];
      }),
    );
}

const BALANCE_COLUMNS = {
  id: "id",
  account: "account_id",
  "balance USD": "balance_usd",
  available: "available_usd",
  held: "held_usd",
  keys: "live_keys",
  "price list": "price_list",
  suspended: "suspended",
  created: "created_at",
} as const;

/** Where a process could not say what its open requests hold. */
export const unanswered = (shown: readonly Pick<ListedBalance, "held_at">[]): string[] =>
  shown.some(({ held_at }) => held_at === "all_processes_at_most")
    ? ["A process did not answer: all that it may still spend counts as held."]
    : [];

export const lowCreditLine = (balance: string, below: number | null): string =>
  below === null
    ? `The gateway's own low_credit_usd holds for ${balance}.`
    : below === 0
      ? `The owner of ${balance} is not notified that credit is low.`
      : `The owner of ${balance} is notified when its credit falls below ${below} USD.`;

async function accountOf(who: string, client: Client): Promise<AccountAnswer> {
  if (who.startsWith("acct_")) return client.get(path`/admin/accounts/${who}`);
  const query = `${who.includes("@") ? "email" : "wallet"}=${encodeURIComponent(who)}`;
  const { data } = await client.get<List<AccountAnswer>>(`/admin/accounts?${query}`);
  if (data.length > 0) return data[0]!;
  throw new CommandFailure(
    EXIT.refused,
    `no account has signed in as ${who}`,
    "`gateway balances` lists balances without an account, too.",
  );
}

function addCredit(gateway: Command, context: CommandContext): void {
  connected(gateway, "credit")
    .description("Add prepaid credit, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_… or whole")
    .addArgument(new Argument("<usd>", "amount in USD").argParser(amountUsd))
    .option("--note <text>", "kept with the credit")
    .option("--idempotency-key <text>", "a credit repeated with the same key is made only once")
    .action(
      asOperator(context, async (client, target, usd, options) => {
        const done = await once<CreditedAnswer>("credit", target, usd, options, client);
        const { balance_id, amount_usd, credited_at, idempotency_key } = done;
        const line = `${balance_id} was credited ${amount_usd} USD at ${credited_at}.`;
        return [done, [line, `idempotency key: ${idempotency_key}`]];
      }),
    );
  connected(gateway, "debit")
    .description("Take back credit that is neither spent nor held, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_… or whole")
    .addArgument(
      new Argument("<usd>", "amount in USD, or all that is available").argParser((text) =>
        text === "all" ? text : amountUsd(text),
      ),
    )
    .option("--note <text>", "kept with the debit; the owner sees it")
    .option("--idempotency-key <text>", "a debit repeated with the same key is made only once")
    .action(
      asOperator(context, async (client, target, usd, options) => {
        const done = await once<DebitedAnswer>("debit", target, usd, options, client);
        const { balance_id, amount_usd, debited_at, idempotency_key } = done;
        const line = `${amount_usd} USD were taken back from ${balance_id} at ${debited_at}.`;
        return [done, [line, `idempotency key: ${idempotency_key}`]];
      }),
    );
}

/** Without an answer, the message says how to retry without doing it twice. */
async function once<Done>(
  what: "credit" | "debit",
  target: string,
  usd: number | "all",
  { note, idempotencyKey = crypto.randomUUID() }: { note?: string; idempotencyKey?: string },
  client: Client,
): Promise<Done> {
  if (!/^(bal_|key_|or-)/.test(target)) {
    throw new CommandFailure(
      EXIT.usage,
      `"${target}" is neither a balance (bal_…) nor a key (key_…)`,
      "`gateway balances` lists balances.",
    );
  }
  const id = await keyIdOf(target, client);
  const kind = id.startsWith("bal_") ? "balance_id" : "key_id";
  const body = { [kind]: id, amount_usd: usd, idempotency_key: idempotencyKey, note };
  return client.post<Done>(`/admin/${what}s`, body).catch((error: unknown) => {
    if (!(error instanceof CommandFailure) || !error.inDoubt) throw error;
    const again = `gateway ${what} ${id} ${usd} --idempotency-key ${idempotencyKey}`;
    throw new CommandFailure(
      error.exitCode,
      error.message,
      `${IN_DOUBT[what]} To be sure, repeat it with its idempotency key, which does it only once: ${again}`,
    );
  });
}

const IN_DOUBT = { credit: "The credit may have been made.", debit: "It may have been taken back." };
