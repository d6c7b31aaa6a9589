import { type Command, Option } from "@commander-js/extra-typings";
import { BUDGET_WINDOWS, type BudgetAnswer } from "../api/budgets.ts";
import { asEither, asOwner, rowsAt } from "./actions.ts";
import { amountUsd, groupOf, owned } from "./arguments.ts";
import { path } from "./client.ts";
import { type CommandContext, members, tableOf } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { ofBalance } from "./named.ts";

export function addBudgets(gateway: Command, context: CommandContext): void {
  const budgets = groupOf(gateway, "budgets", "Create, list and change spending caps.");
  owned(budgets, "list")
    .description("List the budgets of a balance, or of --owner.")
    .argument("[balance]", "id of a balance, bal_…")
    .action(
      asEither(context, async (client, balance) =>
        rowsAt<BudgetAnswer>(client.onBalance(balance), await ofBalance(balance, "budgets", client), {
          name: "name",
          "cap USD": "cap_usd",
          per: "per",
          window: "window",
          used: "used_usd",
          held: "held_usd",
          resets: "resets_at",
        }),
      ),
    );
  owned(budgets, "create")
    .description("Create a spending cap that keys can share, as --owner.")
    .argument("<name>", "name of the budget")
    .addOption(capOption().makeOptionMandatory())
    .addOption(windowOption().makeOptionMandatory())
    .option("--per <tag>", "cap each value of this tag separately, such as tag:user")
    .action(
      asOwner(context, async (client, name, { capUsd, window, per }) => {
        const body = { name, cap_usd: capUsd, window, per };
        const budget = await client.post<BudgetAnswer>("/v1/budgets", body);
        return [budget, members(budget)];
      }),
    );
  addOne(budgets, context);
}

const capOption = () => new Option("--cap-usd <usd>", "the most that may be spent").argParser(amountUsd);
const windowOption = () => new Option("--window <window>", "how long it counts").choices(BUDGET_WINDOWS);

function addOne(budgets: Command, context: CommandContext): void {
  owned(budgets, "show")
    .description("Show a budget of --owner; if it caps each value of a tag, with the values that spent most.")
    .argument("<name>", "name of the budget")
    .option("--value <value>", "the value of the tag to show")
    .action(
      asOwner(context, async (client, name, { value }) => {
        const query = value === undefined ? "" : `?value=${encodeURIComponent(value)}`;
        const budget = await client.get<BudgetAnswer>(path`/v1/budgets/${name}` + query);
        const { values, ...rest } = budget;
        const listed =
          values === undefined ? [] : ["", ...tableOf({ value: "value", "used USD": "used_usd" }, values)];
        return [budget, [...members(rest), ...listed]];
      }),
    );
  owned(budgets, "change")
    .description("Change a budget's cap or window.")
    .argument("<name>", "name of the budget")
    .option("--balance <id>", "the balance it belongs to, bal_…")
    .addOption(capOption())
    .addOption(windowOption())
    .action(
      asEither(context, async (client, name, { balance, capUsd, window }) => {
        if (capUsd === undefined && window === undefined) {
          throw new CommandFailure(EXIT.usage, "no change was named", "Name --cap-usd, --window, or both.");
        }
        const budgetPath = (await ofBalance(balance, "budgets", client)) + path`/${name}`;
        const budget = await client.patch<BudgetAnswer>(budgetPath, { cap_usd: capUsd, window });
        return [budget, members(budget)];
      }),
    );
}
