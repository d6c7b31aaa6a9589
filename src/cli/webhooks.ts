import { type Command, Option } from "@commander-js/extra-typings";
import type { List } from "../api/answers.ts";
import type { EventAnswer, OperatorsEvent } from "../api/events.ts";
import type {
  OperatorsWebhookAnswer,
  WebhookAnswer,
  WebhookSecretAnswer,
  WebhookTestAnswer,
} from "../api/webhooks.ts";
import { EVENT_KINDS } from "../units/event-kinds.ts";
import { connected, limitOption, ownerOption, several } from "./arguments.ts";
import { mustBeOwner } from "./budgets.ts";
import { adminClient, type OwnerOptions, ownerClient } from "./client.ts";
import { type CommandContext, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { showList } from "./listing.ts";
import { balanceIdOf } from "./named.ts";

export function addWebhooks(gateway: Command, context: CommandContext): void {
  const webhooks = gateway
    .command("webhooks")
    .description("List and test the endpoints that get events; add and remove an owner's.") as Command;
  connected(webhooks, "list", { isDefault: true })
    .description("List the endpoints of the configuration, of a balance, or of --owner.")
    .option("--balance <id>", "the endpoints of its owner, bal_…")
    .addOption(ownerOption())
    .action((options) => listWebhooks(options, context));
  connected(webhooks, "add")
    .description("Send the events of --owner to an address, and print its secret once.")
    .argument("<url>", "https://…, or mail for the address of the balance's account")
    .addOption(ownerOption())
    .addOption(new Option("--event <event>", "only these; may be repeated (default: all)").argParser(several))
    .option("--slack", "as messages for one of Slack's incoming webhooks")
    .action((url, options) => addWebhook(url, options, context));
  connected(webhooks, "test")
    .description(
      "Send the event webhook.test to an endpoint; exit code 1 if the endpoint does not accept it.",
    )
    .argument("<id>", "wh_…")
    .addOption(ownerOption())
    .action((id, options) => testWebhook(id, options, context));
  connected(webhooks, "rotate")
    .description(
      "Replace the secret of an endpoint of --owner; for 24 hours, deliveries are signed with both.",
    )
    .argument("<id>", "wh_…")
    .addOption(ownerOption())
    .action((id, options) => rotateWebhook(id, options, context));
  connected(webhooks, "remove")
    .description("Remove an endpoint of --owner.")
    .argument("<id>", "wh_…")
    .addOption(ownerOption())
    .action((id, options) => removeWebhook(id, options, context));
  connected(gateway, "events")
    .description("Show what happened to balances in the last 30 days, newest first.")
    .option("--balance <id>", "only to this balance, bal_…")
    .addOption(ownerOption())
    .addOption(new Option("--type <event>", "only such events").choices(EVENT_KINDS))
    .addOption(limitOption())
    .action((options) => listEvents(options, context));
}

/** An owner's endpoints; or for the operator those of the configuration, or of a balance. */
async function listWebhooks(options: OwnerOptions, context: CommandContext): Promise<void> {
  const owner = ownerClient(options, context);
  if (owner !== null) {
    const { data } = await owner.get<List<WebhookAnswer>>("/v1/webhooks");
    const rows = data.map((one) => [one.id, one.url, eventsText(one), one.state, one.problem]);
    return show(context, options.json, { data }, table(["id", "url", "events", "state", "problem"], rows));
  }
  const client = adminClient(options, context);
  const balance = options.balance === undefined ? null : await balanceIdOf(options.balance, client);
  const query = balance === null ? "" : `?balance_id=${encodeURIComponent(balance)}`;
  const { data } = await client.get<List<OperatorsWebhookAnswer>>(`/admin/webhooks${query}`);
  const rows = data.map((one) => [
    one.id,
    one.origin,
    eventsText(one),
    one.state,
    one.waiting,
    one.next_attempt_at,
    one.problem,
  ]);
  const head = ["id", "address", "events", "state", "waiting", "next attempt", "problem"];
  show(context, options.json, { data }, table(head, rows));
}

const eventsText = ({ events }: Pick<WebhookAnswer, "events">): string => events?.join(" ") ?? "all";

async function addWebhook(
  url: string,
  {
    event,
    slack,
    ...options
  }: OwnerOptions & { readonly event?: readonly string[] | undefined; readonly slack?: true | undefined },
  context: CommandContext,
): Promise<void> {
  const made = await mustBeOwner(options, context, "these webhooks").post<WebhookSecretAnswer>(
    "/v1/webhooks",
    {
      ...(url === "mail" ? { format: "mail" } : { url }),
      ...(event === undefined ? {} : { events: event }),
      ...(slack === true ? { format: "slack" } : {}),
    },
  );
  show(context, options.json, made, [
    `${made.id} is sent ${eventsText(made)} events.`,
    ...secretLines(made.secret),
  ]);
}

const secretLines = (secret: string | null): string[] =>
  secret === null ? [] : ["The secret that signs them, which is not shown again:", secret];

/** Sends `webhook.test`; exit code 1 where it was not taken. */
async function testWebhook(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const owner = ownerClient(options, context);
  const path = `/webhooks/${encodeURIComponent(id)}/test`;
  const done =
    owner === null
      ? await adminClient(options, context).post<WebhookTestAnswer>(`/admin${path}`)
      : await owner.post<WebhookTestAnswer>(`/v1${path}`);
  if (!done.delivered) throw new CommandFailure(EXIT.found, `${id} was not delivered: ${done.problem}`);
  show(context, options.json, done, [`${id} took the event webhook.test.`]);
}

async function rotateWebhook(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const path = `/v1/webhooks/${encodeURIComponent(id)}/rotate`;
  const made = await mustBeOwner(options, context, "these webhooks").post<WebhookSecretAnswer>(path);
  show(context, options.json, made, [
    ...secretLines(made.secret),
    "For 24 hours, the secret from before signs as well.",
  ]);
}

async function removeWebhook(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const done = await mustBeOwner(options, context, "these webhooks").delete<object>(path);
  show(context, options.json, done, [`${id} is removed.`]);
}

/** What happened, newest first: to an owner's balance, or for the operator to all. */
async function listEvents(
  options: OwnerOptions & { readonly limit: number; readonly type?: string | undefined },
  context: CommandContext,
): Promise<void> {
  const { type } = options;
  const head = ["id", "created", "type", "balance", "delivered", "data"];
  const cells = ({ id, created_at, type, data, deliveries, ...more }: EventAnswer | OperatorsEvent) => [
    id,
    created_at,
    type,
    "balance_id" in more ? more.balance_id : (data.balance_id as string),
    `${deliveries.filter((one) => one.delivered_at !== null).length} of ${deliveries.length}`,
    JSON.stringify(Object.fromEntries(Object.entries(data).filter(([name]) => name !== "balance_id"))),
  ];
  const owner = ownerClient(options, context);
  if (owner !== null) {
    const listing = { path: "/v1/events", filters: { type }, noun: "events", head, cells };
    return showList<EventAnswer>(listing, owner, options, context);
  }
  const client = adminClient(options, context);
  const balance_id = options.balance === undefined ? undefined : await balanceIdOf(options.balance, client);
  await showList<OperatorsEvent>(
    { path: "/admin/events", filters: { type, balance_id }, noun: "events", head, cells },
    client,
    options,
    context,
  );
}
