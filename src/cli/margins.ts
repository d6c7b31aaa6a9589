import type { ComparedSum, EverybodysUsage, Period } from "../api/usage.ts";
import { adminClient } from "./client.ts";
import type { OperationOptions } from "./connection.ts";
import { type CommandContext, show, table } from "./console.ts";

export const MARGINS_BY = ["balance", "key", "model", "host"] as const;

interface MarginOptions extends OperationOptions {
  readonly by: (typeof MARGINS_BY)[number];
  readonly period: Period;
}

/** What requests were charged less what their hosts charged, the lowest margin first. */
export async function showMargins(options: MarginOptions, context: CommandContext): Promise<void> {
  const { by, period } = options;
  const usage = await adminClient(options, context).get<EverybodysUsage>(
    `/admin/usage?order=loss&period=${period}`,
  );
  const lists = {
    balance: usage.balances.data.map(({ balance_id, ...sum }) => [balance_id, sum] as const),
    key: usage.keys.data.map(({ key_id, ...sum }) => [key_id, sum] as const),
    model: usage.models.data.map(({ model, ...sum }) => [model, sum] as const),
    host: usage.hosts.data.map(({ host, ...sum }) => [host, sum] as const),
  };
  const rows = [...lists[by], ["all", usage.total] as const];
  const head = [by, "requests", "with known cost", "charged", "host cost", "margin"];
  const data = rows.map(([name, sum]) => ({ [by]: name, ...marginOf(sum) }));
  show(context, options.json, { period, since: usage.since, data }, table(head, data.map(Object.values)));
}

const marginOf = (sum: ComparedSum) => ({
  requests: sum.requests,
  requests_with_host_cost: sum.requests_with_host_cost,
  cost_usd: sum.cost_usd,
  host_cost_usd: sum.host_cost_usd,
  margin_usd: sum.margin_usd,
});
