import { type Command, Option } from "@commander-js/extra-typings";
import type { EventAnswer, OperatorsEvent } from "../api/events.ts";
import type {
  OperatorsWebhookAnswer,
  WebhookAnswer,
  WebhookSecretAnswer,
  WebhookTestAnswer,
} from "../api/webhooks.ts";
import { EVENT_KINDS } from "../units/event-kinds.ts";
import { asEither, asOwner, pagesAt, rowsAt } from "./actions.ts";
import { groupOf, limitOption, owned, several } from "./arguments.ts";
import { path } from "./client.ts";
import type { CommandContext } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { balanceIdOf } from "./named.ts";

export function addWebhooks(gateway: Command, context: CommandContext): void {
  const webhooks = groupOf(
    gateway,
    "webhooks",
    "List and test the endpoints that get events; add and remove an owner's.",
  );
  addList(webhooks, context);
  owned(webhooks, "add")
    .description("Send the events of --owner to an address, and print its secret once.")
    .argument("<url>", "https://…, or mail for the address of the balance's account")
    .addOption(new Option("--event <event>", "only these; may be repeated (default: all)").argParser(several))
    .option("--slack", "as messages for one of Slack's incoming webhooks")
    .action(
      asOwner(context, async (client, url, { event: events, slack }) => {
        const to = url === "mail" ? { format: "mail" } : { url };
        const body = { ...to, events, ...(slack === true ? { format: "slack" } : {}) };
        const made = await client.post<WebhookSecretAnswer>("/v1/webhooks", body);
        return [made, [`${made.id} is sent ${eventsText(made)} events.`, ...secretLines(made.secret)]];
      }),
    );
  addOne(webhooks, context);
  addEvents(gateway, context);
}

/** An owner's endpoints; or for the operator those of the configuration, or of a balance. */
function addList(webhooks: Command, context: CommandContext): void {
  owned(webhooks, "list", { isDefault: true })
    .description("List the endpoints of the configuration, of a balance, or of --owner.")
    .option("--balance <id>", "the endpoints of its owner, bal_…")
    .action(
      asEither(context, async (client, { balance }) => {
        if (client.as === "v1")
          return rowsAt<WebhookAnswer>(client, "/v1/webhooks", {
            id: "id",
            url: "url",
            events: eventsText,
            state: "state",
            problem: "problem",
          });
        const query = balance === undefined ? "" : path`?balance_id=${await balanceIdOf(balance, client)}`;
        return rowsAt<OperatorsWebhookAnswer>(client, `/admin/webhooks${query}`, {
          id: "id",
          address: "origin",
          events: eventsText,
          state: "state",
          waiting: "waiting",
          "next attempt": "next_attempt_at",
          problem: "problem",
        });
      }),
    );
}

const eventsText = ({ events }: Pick<WebhookAnswer, "events">): string => events?.join(" ") ?? "all";

const secretLines = (secret: string | null): string[] =>
  secret === null ? [] : ["The secret that signs them, which is not shown again:", secret];

function addOne(webhooks: Command, context: CommandContext): void {
  owned(webhooks, "test")
    .description(
      "Send the event webhook.test to an endpoint; exit code 1 if the endpoint does not accept it.",
    )
    .argument("<id>", "wh_…")
    .action(
      asEither(context, async (client, id) => {
        const done = await client.post<WebhookTestAnswer>(path`/${client.as}/webhooks/${id}/test`);
        if (!done.delivered) throw new CommandFailure(EXIT.found, `${id} was not delivered: ${done.problem}`);
        return [done, [`${id} took the event webhook.test.`]];
      }),
    );
  owned(webhooks, "rotate")
    .description(
      "Replace the secret of an endpoint of --owner; for 24 hours, deliveries are signed with both.",
    )
    .argument("<id>", "wh_…")
    .action(
      asOwner(context, async (client, id) => {
        const made = await client.post<WebhookSecretAnswer>(path`/v1/webhooks/${id}/rotate`);
        const line = "For 24 hours, the secret from before signs as well.";
        return [made, [...secretLines(made.secret), line]];
      }),
    );
  owned(webhooks, "remove")
    .description("Remove an endpoint of --owner.")
    .argument("<id>", "wh_…")
    .action(
      asOwner(context, async (client, id) => {
        const done = await client.delete<object>(path`/v1/webhooks/${id}`);
        return [done, [`${id} is removed.`]];
      }),
    );
}

/** What happened, newest first: to an owner's balance, or for the operator to all. */
function addEvents(gateway: Command, context: CommandContext): void {
  owned(gateway, "events")
    .description("Show what happened to balances in the last 30 days, newest first.")
    .option("--balance <id>", "only to this balance, bal_…")
    .addOption(new Option("--type <event>", "only such events").choices(EVENT_KINDS))
    .addOption(limitOption())
    .action(
      asEither(context, async (client, { balance, type, ...options }) => {
        const isOne = client.as === "admin" && balance !== undefined;
        const balance_id = isOne ? await balanceIdOf(balance, client) : undefined;
        return pagesAt<EventAnswer | OperatorsEvent>(client, context, options, {
          path: `/${client.as}/events`,
          filters: { type, balance_id },
          noun: "events",
          columns: {
            id: "id",
            created: "created_at",
            type: "type",
            balance: ({ data, ...more }) =>
              "balance_id" in more ? more.balance_id : (data.balance_id as string),
            delivered: ({ deliveries }) =>
              `${deliveries.filter((one) => one.delivered_at !== null).length} of ${deliveries.length}`,
            data: ({ data: { balance_id: _, ...data } }) => JSON.stringify(data),
          },
        });
      }),
    );
}
