import { type Command, Option } from "@commander-js/extra-typings";
import type { DetachedAnswer, SuspensionAnswer } from "../api/admin.ts";
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import { asOperator, type CommandResult } from "./actions.ts";
import { connected, noteOption, revokeKeysOption } from "./arguments.ts";
import { type Client, path } from "./client.ts";
import type { CommandContext } from "./console.ts";
import { liveKeyLines } from "./live-keys.ts";
import { balanceIdOf } from "./named.ts";

export function addSuspensions(gateway: Command, context: CommandContext): void {
  connected(gateway, "suspend")
    .description("Suspend an account or balance: every generation is refused.")
    .argument("<id>", "acct_…, bal_…, or a key of the balance")
    .addOption(
      new Option("--reason <reason>", "the reason, which the owner can read")
        .choices(SUSPENSION_REASONS)
        .makeOptionMandatory(),
    )
    .addOption(byOption())
    .addOption(noteOption())
    .action(asOperator(context, (client, id, options) => decide("suspend", id, options, client)));
  connected(gateway, "unsuspend")
    .description("Lift a suspension.")
    .argument("<id>", "acct_…, bal_…, or a key of the balance")
    .addOption(
      new Option("--reason <reason>", "lift only the suspension with this reason").choices(
        SUSPENSION_REASONS,
      ),
    )
    .addOption(byOption())
    .addOption(noteOption())
    .action(asOperator(context, (client, id, options) => decide("unsuspend", id, options, client)));
  connected(gateway, "detach")
    .description("Take a claimed balance out of an account; its recovery secret then opens it again.")
    .argument("<account>", "acct_…")
    .argument("<balance>", "bal_…")
    .addOption(revokeKeysOption())
    .action(
      asOperator(context, async (client, account, balance, { revokeKeys }) => {
        const body = { balance_id: balance, revoke_keys: revokeKeys };
        const done = await client.post<DetachedAnswer>(path`/admin/accounts/${account}/detach`, body);
        const line = `${balance} belongs to no account: the recovery secret that it was claimed with opens it again.`;
        return [done, [line, ...liveKeyLines(done)]];
      }),
    );
}

const byOption = () => new Option("--by <name>", "who decided it, for the record (default: admin)");

async function decide(
  decision: "suspend" | "unsuspend",
  named: string,
  { reason, by, note }: { reason?: string; by?: string; note?: string },
  client: Client,
): Promise<CommandResult> {
  const id = await balanceIdOf(named, client);
  const body = { reason, by, note };
  const done = await client.post<SuspensionAnswer>(path`/admin/accounts/${id}/${decision}`, body);
  const balances = done.balance_ids.join(", ");
  const line =
    done.suspended === null
      ? `${balances}: no longer suspended.`
      : `${balances}: suspended for ${done.suspended} from the next request on.`;
  return [done, [line]];
}
