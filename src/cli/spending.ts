import { Argument, type Command, Option } from "@commander-js/extra-typings";
import { type ComparedSum, type EverybodysUsage, PERIODS, type UsageAnswer } from "../api/usage.ts";
import { asEither, asOperator } from "./actions.ts";
import { connected, limitOption, owned } from "./arguments.ts";
import { type CommandContext, table, tableOf } from "./console.ts";

/** Who spent what in a period, and what the operator earned by it. */
export function addSpending(gateway: Command, context: CommandContext): void {
  owned(gateway, "spending")
    .description("List the keys that spent most, of everybody or of --owner.")
    .addArgument(new Argument("[period]", "the period; days are UTC").choices(PERIODS).default("week"))
    .addOption(limitOption())
    .action(
      asEither(context, async (client, period, { limit }) => {
        const path = `/${client.as}/usage?period=${period}`;
        const rows: readonly SpendingRow[] =
          client.as === "admin"
            ? (await client.get<EverybodysUsage>(`${path}&order=cost&limit=${limit}`)).keys.data
            : (await client.get<UsageAnswer>(path)).keys
                .toSorted((a, b) => b.cost_usd - a.cost_usd)
                .slice(0, limit);
        return [{ period, data: rows }, tableOf(SPENT, rows)];
      }),
    );
}

type SpendingRow = Omit<UsageAnswer["keys"][number], "last_used_at">;

const SPENT = {
  key: "key_id",
  requests: "requests",
  failed: "failed",
  "tokens in": "input_tokens",
  out: "output_tokens",
  "cost USD": "cost_usd",
} as const;

export function addMargins(gateway: Command, context: CommandContext): void {
  connected(gateway, "margins")
    .description("Show what was charged less what hosts charge you, the lowest margin first.")
    .addOption(new Option("--by <what>", "of which each has a line").choices(MARGINS_BY).default("model"))
    .addOption(new Option("--period <period>", "up to now").choices(PERIODS).default("week"))
    .action(
      asOperator(context, async (client, { by, period }) => {
        const usage = await client.get<EverybodysUsage>(`/admin/usage?order=loss&period=${period}`);
        const lists = {
          balance: usage.balances.data.map(({ balance_id, ...sum }) => [balance_id, sum] as const),
          key: usage.keys.data.map(({ key_id, ...sum }) => [key_id, sum] as const),
          model: usage.models.data.map(({ model, ...sum }) => [model, sum] as const),
          host: usage.hosts.data.map(({ host, ...sum }) => [host, sum] as const),
        };
        const rows = [...lists[by], ["all", usage.total] as const];
        const data = rows.map(([name, sum]) => ({ [by]: name, ...marginOf(sum) }));
        const head = [by, "requests", "with known cost", "charged", "host cost", "margin"];
        return [{ period, since: usage.since, data }, table(head, data.map(Object.values))];
      }),
    );
}

const MARGINS_BY = ["balance", "key", "model", "host"] as const;

const marginOf = (sum: ComparedSum) => ({
  requests: sum.requests,
  requests_with_host_cost: sum.requests_with_host_cost,
  cost_usd: sum.cost_usd,
  host_cost_usd: sum.host_cost_usd,
  margin_usd: sum.margin_usd,
});
