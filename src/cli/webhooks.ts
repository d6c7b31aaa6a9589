import type { List } from "../api/answers.ts";
import type { EventAnswer, OperatorsEvent } from "../api/events.ts";
import type {
  OperatorsWebhookAnswer,
  WebhookAnswer,
  WebhookSecretAnswer,
  WebhookTestAnswer,
} from "../api/webhooks.ts";
import { mustBeOwner } from "./budgets.ts";
import { adminClient, type OwnerOptions, ownerClient } from "./client.ts";
import { type CommandContext, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { showList } from "./listing.ts";
import { balanceIdOf } from "./named.ts";

/** An owner's endpoints; or for the operator those of the configuration, or of a balance. */
export async function listWebhooks(options: OwnerOptions, context: CommandContext): Promise<void> {
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

export async function addWebhook(
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
export async function testWebhook(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const owner = ownerClient(options, context);
  const path = `/webhooks/${encodeURIComponent(id)}/test`;
  const done =
    owner === null
      ? await adminClient(options, context).post<WebhookTestAnswer>(`/admin${path}`)
      : await owner.post<WebhookTestAnswer>(`/v1${path}`);
  if (!done.delivered) throw new CommandFailure(EXIT.found, `${id} was not delivered: ${done.problem}`);
  show(context, options.json, done, [`${id} took the event webhook.test.`]);
}

export async function rotateWebhook(
  id: string,
  options: OwnerOptions,
  context: CommandContext,
): Promise<void> {
  const path = `/v1/webhooks/${encodeURIComponent(id)}/rotate`;
  const made = await mustBeOwner(options, context, "these webhooks").post<WebhookSecretAnswer>(path);
  show(context, options.json, made, [
    ...secretLines(made.secret),
    "For 24 hours, the secret from before signs as well.",
  ]);
}

export async function removeWebhook(
  id: string,
  options: OwnerOptions,
  context: CommandContext,
): Promise<void> {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const done = await mustBeOwner(options, context, "these webhooks").delete<object>(path);
  show(context, options.json, done, [`${id} is removed.`]);
}

/** What happened, newest first: to an owner's balance, or for the operator to all. */
export async function listEvents(
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
