import { type Command, Option } from "@commander-js/extra-typings";
import type { OperatorsPayment } from "../api/payments.ts";
import { PAYMENT_STATES } from "../payments/payment.ts";
import { asOperator, pagesAt } from "./actions.ts";
import { connected, groupOf, limitOption, noteOption } from "./arguments.ts";
import { path } from "./client.ts";
import type { CommandContext } from "./console.ts";
import { balanceIdOf } from "./named.ts";

export function addPayments(gateway: Command, context: CommandContext): void {
  const payments = groupOf(gateway, "payments", "List and refund payments, and decide about held ones.");
  connected(payments, "list")
    .description("List payments of all balances, newest first.")
    .addOption(
      new Option("--state <state>", "only these; held ones wait for a decision").choices(PAYMENT_STATES),
    )
    .option("--balance <id>", "only of this balance")
    .addOption(limitOption())
    .action(
      asOperator(context, async (client, { state, balance: named, ...options }) => {
        const balance = named === undefined ? undefined : await balanceIdOf(named, client);
        return pagesAt<OperatorsPayment>(client, context, options, {
          path: "/admin/payments",
          filters: { state, balance },
          noun: "payments",
          columns: COLUMNS,
        });
      }),
    );
  connected(payments, "refund")
    .description("Take back the credit of a payment, and refund the card.")
    .argument("<payment>", "id of a payment, pay_…")
    .action(
      asOperator(context, async (client, named) => {
        const payment = await client.post<OperatorsPayment>(path`/admin/payments/${named}/refund`);
        const { id, state, balance_id, rail, amount_usd, payer } = payment;
        const lines = [
          `${id} is ${state}: its credit was taken back from ${balance_id}.`,
          rail === "x402"
            ? `Send ${amount_usd} USD to ${payer}: the gateway has no key to do it.`
            : "The card gets its money back.",
        ];
        return [payment, lines];
      }),
    );
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
    .action(
      asOperator(context, async (client, id, { as, note }) => {
        const body = { as, note };
        const payment = await client.post<OperatorsPayment>(path`/admin/payments/${id}/resolve`, body);
        return [payment, [`${payment.id} is ${payment.state}.`]];
      }),
    );
}

const COLUMNS = {
  id: "id",
  created: "created_at",
  rail: "rail",
  state: "state",
  "amount USD": "amount_usd",
  credited: "credited_usd",
  balance: "balance_id",
  reason: "reason",
} as const;
