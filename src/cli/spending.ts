import type { EverybodysUsage, Period, UsageAnswer } from "../api/usage.ts";
import { adminClient, type OwnerOptions, ownerClient } from "./client.ts";
import { type CommandContext, show, table } from "./console.ts";

/** Which keys spent most in a period, the most first: an owner's, or everybody's. */
export async function showSpending(
  period: Period,
  { limit, ...options }: OwnerOptions & { readonly limit: number },
  context: CommandContext,
): Promise<void> {
  const owner = ownerClient(options, context);
  const path = (of: string) => `/${of}/usage?period=${period}`;
  const rows =
    owner === null
      ? (
          await adminClient(options, context).get<EverybodysUsage>(
            `${path("admin")}&order=cost&limit=${limit}`,
          )
        ).keys.data
      : (await owner.get<UsageAnswer>(path("v1"))).keys
          .toSorted((a, b) => b.cost_usd - a.cost_usd)
          .slice(0, limit);
  show(context, options.json, { period, data: rows }, [
    ...table(
      ["key", "requests", "failed", "tokens in", "out", "cost USD"],
      rows.map((row) => [
        row.key_id,
        row.requests,
        row.failed,
        row.input_tokens,
        row.output_tokens,
        row.cost_usd,
      ]),
    ),
  ]);
}
