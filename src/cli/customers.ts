import { type Command, Option } from "@commander-js/extra-typings";
import type { AccountAnswer } from "../api/admin.ts";
import type { List } from "../api/answers.ts";
import type { NodeAnswer } from "../api/nodes.ts";
import type { OperatorsPayment } from "../api/payments.ts";
import { PAYMENT_STATES } from "../payments/payment.ts";
import { connected, limitOption, noteOption } from "./arguments.ts";
import { adminClient, type Client } from "./client.ts";
import type { OperationOptions } from "./connection.ts";
import { type CommandContext, members, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { showList } from "./listing.ts";
import { balanceIdOf } from "./named.ts";

export function addPayments(gateway: Command, context: CommandContext): void {
  const payments = gateway
    .command("payments")
    .description("List and refund payments, and decide about held ones.") as Command;
  connected(payments, "list")
    .description("List payments of all balances, newest first.")
    .addOption(
      new Option("--state <state>", "only these; held ones wait for a decision").choices(PAYMENT_STATES),
    )
    .option("--balance <id>", "only of this balance")
    .addOption(limitOption())
    .action((options) => listPayments(options, context));
  connected(payments, "refund")
    .description("Take back the credit of a payment, and refund the card.")
    .argument("<payment>", "id of a payment, pay_…")
    .action((id, options) => refundPayment(id, options, context));
  connected(payments, "resolve")
    .description("Decide about a payment that is held.")
    .argument("<payment>", "id of a payment, pay_…")
    .addOption(
      new Option(
        "--as <decision>",
        "credited: the amount that arrived becomes credit; refunded: it is paid back",
      )
        .choices(["credited", "refunded"])
        .makeOptionMandatory(),
    )
    .addOption(noteOption())
    .action((id, options) => resolvePayment(id, options, context));
}

/** Who an account belongs to, and its balances: by its id, an email address or a wallet. */
export async function showAccount(
  who: string,
  options: OperationOptions,
  context: CommandContext,
): Promise<void> {
  const client = adminClient(options, context);
  const account = await accountOf(who, client);
  show(context, options.json, account, members(account));
}

async function accountOf(who: string, client: Client): Promise<AccountAnswer> {
  if (who.startsWith("acct_")) return client.get(`/admin/accounts/${encodeURIComponent(who)}`);
  const query = `${who.includes("@") ? "email" : "wallet"}=${encodeURIComponent(who)}`;
  const { data } = await client.get<List<AccountAnswer>>(`/admin/accounts?${query}`);
  if (data.length > 0) return data[0]!;
  throw new CommandFailure(
    EXIT.refused,
    `no account has signed in as ${who}`,
    "`gateway balances` lists balances without an account, too.",
  );
}

async function listPayments(
  options: OperationOptions & { limit: number; state?: string | undefined; balance?: string | undefined },
  context: CommandContext,
): Promise<void> {
  const client = adminClient(options, context);
  const balance = options.balance === undefined ? undefined : await balanceIdOf(options.balance, client);
  const listing = {
    path: "/admin/payments",
    filters: { state: options.state, balance },
    noun: "payments",
    head: ["id", "created", "rail", "state", "amount USD", "credited", "balance", "reason"],
    cells: (row: OperatorsPayment) => [
      row.id,
      row.created_at,
      row.rail,
      row.state,
      row.amount_usd,
      row.credited_usd,
      row.balance_id,
      row.reason,
    ],
  };
  await showList(listing, client, options, context);
}

/** The credit is taken back first; a card then gets its money back by itself. */
async function refundPayment(id: string, options: OperationOptions, context: CommandContext): Promise<void> {
  const path = `/admin/payments/${encodeURIComponent(id)}/refund`;
  const payment = await adminClient(options, context).post<OperatorsPayment>(path);
  show(context, options.json, payment, [
    `${payment.id} is ${payment.state}: its credit was taken back from ${payment.balance_id}.`,
    payment.rail === "x402"
      ? `Send ${payment.amount_usd} USD to ${payment.payer}: the gateway has no key to do it.`
      : "The card gets its money back.",
  ]);
}

async function resolvePayment(
  id: string,
  { as, note, ...options }: OperationOptions & { readonly as: string; readonly note?: string | undefined },
  context: CommandContext,
): Promise<void> {
  const path = `/admin/payments/${encodeURIComponent(id)}/resolve`;
  const payment = await adminClient(options, context).post<OperatorsPayment>(path, { as, note });
  show(context, options.json, payment, [`${payment.id} is ${payment.state}.`]);
}

export async function listNodes(options: OperationOptions, context: CommandContext): Promise<void> {
  const { data } = await adminClient(options, context).get<List<NodeAnswer>>("/admin/nodes");
  const rows = data.map((node) => [
    node.id,
    node.state,
    node.lease_expires_at,
    node.reserved_usd,
    node.differs_in.join(", ") || null,
  ]);
  show(
    context,
    options.json,
    { data },
    data.length === 0
      ? ["No nodes: on SQLite, the processes of one machine need none."]
      : table(["node", "state", "lease until", "reserved USD", "differs in"], rows),
  );
}

export async function closeNode(
  id: string,
  options: OperationOptions,
  context: CommandContext,
): Promise<void> {
  const path = `/admin/nodes/${encodeURIComponent(id)}/close`;
  const done = await adminClient(options, context).post<{ id: string; state: string }>(path);
  show(context, options.json, done, [`${done.id} is closed: what was reserved for it is free again.`]);
}
