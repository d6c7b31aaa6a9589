import { type Command, Option } from "@commander-js/extra-typings";
import type { List } from "../api/answers.ts";
import { BUDGET_WINDOWS, type BudgetAnswer } from "../api/budgets.ts";
import { amountUsd, connected, ownerOption } from "./arguments.ts";
import { adminClient, type Client, type OwnerOptions, ownerClient } from "./client.ts";
import { type CommandContext, members, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { balanceIdOf } from "./named.ts";

export function addBudgets(gateway: Command, context: CommandContext): void {
  const budgets = gateway.command("budgets").description("Create, list and change spending caps.") as Command;
  connected(budgets, "list")
    .description("List the budgets of a balance, or of --owner.")
    .argument("[balance]", "id of a balance, bal_…")
    .addOption(ownerOption())
    .action((balance, options) => listBudgets(balance, options, context));
  connected(budgets, "create")
    .description("Create a spending cap that keys can share, as --owner.")
    .argument("<name>", "name of the budget")
    .addOption(ownerOption())
    .addOption(
      new Option("--cap-usd <usd>", "the most that may be spent").argParser(amountUsd).makeOptionMandatory(),
    )
    .addOption(
      new Option("--window <window>", "how long it counts").choices(BUDGET_WINDOWS).makeOptionMandatory(),
    )
    .option("--per <tag>", "cap each value of this tag separately, such as tag:user")
    .action((name, options) => createBudget(name, options, context));
  connected(budgets, "show")
    .description("Show a budget of --owner; if it caps each value of a tag, with the values that spent most.")
    .argument("<name>", "name of the budget")
    .addOption(ownerOption())
    .option("--value <value>", "the value of the tag to show")
    .action((name, options) => showBudget(name, options, context));
  connected(budgets, "change")
    .description("Change a budget's cap or window.")
    .argument("<name>", "name of the budget")
    .option("--balance <id>", "the balance it belongs to, bal_…")
    .addOption(ownerOption())
    .addOption(new Option("--cap-usd <usd>", "the most that may be spent").argParser(amountUsd))
    .addOption(new Option("--window <window>", "how long it counts").choices(BUDGET_WINDOWS))
    .action((name, options) => changeBudget(name, options, context));
}

/** Lists the budgets of the balance that the operator names, or of the owner. */
async function listBudgets(
  balance: string | undefined,
  options: OwnerOptions,
  context: CommandContext,
): Promise<void> {
  const { client, path } = await budgetsOf(balance, options, context);
  const { data } = await client.get<List<BudgetAnswer>>(path);
  show(context, options.json, { data }, [
    ...table(
      ["name", "cap USD", "per", "window", "used", "held", "resets"],
      data.map((one) => [
        one.name,
        one.cap_usd,
        one.per,
        one.window,
        one.used_usd,
        one.held_usd,
        one.resets_at,
      ]),
    ),
  ]);
}

async function createBudget(
  name: string,
  { capUsd, window, per, ...options }: OwnerOptions & NewBudget,
  context: CommandContext,
): Promise<void> {
  const client = mustBeOwner(options, context);
  const budget = await client.post<BudgetAnswer>("/v1/budgets", { name, cap_usd: capUsd, window, per });
  show(context, options.json, budget, members(budget));
}

interface NewBudget {
  readonly capUsd: number;
  readonly window: string;
  readonly per?: string | undefined;
}

/** With the values that spent most, where it caps each value of a tag; or with one of them. */
async function showBudget(
  name: string,
  { value, ...options }: OwnerOptions & { readonly value?: string | undefined },
  context: CommandContext,
): Promise<void> {
  const client = mustBeOwner(options, context);
  const query = value === undefined ? "" : `?value=${encodeURIComponent(value)}`;
  const budget = await client.get<BudgetAnswer>(`/v1/budgets/${encodeURIComponent(name)}${query}`);
  const { values, ...rest } = budget;
  const rows = (values ?? []).map((one) => [one.value, one.used_usd]);
  const listed = values === undefined ? [] : ["", ...table(["value", "used USD"], rows)];
  show(context, options.json, budget, [...members(rest), ...listed]);
}

export function mustBeOwner(options: OwnerOptions, context: CommandContext, what = "budgets"): Client {
  const client = ownerClient(options, context);
  if (client !== null) return client;
  throw new CommandFailure(
    EXIT.usage,
    `${what} belong to owners`,
    "Act as the owner: set GATEWAY_OWNER to the balance's recovery secret.",
  );
}

async function changeBudget(
  name: string,
  {
    balance,
    capUsd,
    window,
    ...options
  }: OwnerOptions & { capUsd?: number | undefined; window?: string | undefined },
  context: CommandContext,
): Promise<void> {
  if (capUsd === undefined && window === undefined) {
    throw new CommandFailure(EXIT.usage, "no change was named", "Name --cap-usd, --window, or both.");
  }
  const { client, path } = await budgetsOf(balance, options, context);
  const budget = await client.patch<BudgetAnswer>(`${path}/${encodeURIComponent(name)}`, {
    cap_usd: capUsd,
    window,
  });
  show(context, options.json, budget, members(budget));
}

async function budgetsOf(balance: string | undefined, options: OwnerOptions, context: CommandContext) {
  const owner = ownerClient({ ...options, balance }, context);
  if (owner !== null) return { client: owner, path: "/v1/budgets" };
  if (balance === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      "no balance was named",
      "Name one of `gateway balances` with --balance, or set GATEWAY_OWNER to act as an owner.",
    );
  }
  const client = adminClient(options, context);
  return {
    client,
    path: `/admin/balances/${encodeURIComponent(await balanceIdOf(balance, client))}/budgets`,
  };
}
