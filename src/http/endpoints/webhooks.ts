import { type OperatorsWebhookAnswer, WEBHOOKS, type WebhookAnswer } from "../../api/webhooks.ts";
import type { OwnWebhook } from "../../customers/events/own-webhook.ts";
import { MAILBOX, originOf } from "../../customers/events/webhook.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused, retryAfter } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import { actorOf } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import { operation } from "../operation.ts";
import { list } from "../reply.ts";

/** Owners' endpoints for the events of a balance; the operator sees whether deliveries succeed. */
export const webhookEndpoints = () => [
  operation("GET /v1/webhooks", WEBHOOKS.list, async ({ who }, { webhooks }) =>
    list((await webhooks.list(who.balance.id)).map(view)),
  ),
  operation("POST /v1/webhooks", WEBHOOKS.create, async ({ who, fields }, { webhooks }) => {
    const { url, events: kinds = null, format = "signed" } = fields;
    const made = await webhooks.create(who.balance.id, { url, kinds, format }, actorOf(who));
    return refused(made) ? made : { ...view(made.webhook), secret: made.secret };
  }),
  operation("GET /v1/webhooks/:id", WEBHOOKS.show, async ({ who, params: { id } }, { webhooks }) =>
    shown(await webhooks.show(who.balance.id, id)),
  ),
  operation("PATCH /v1/webhooks/:id", WEBHOOKS.change, async ({ who, params, fields }, { webhooks }) => {
    const { url, events, paused } = fields;
    const change = {
      ...(url === undefined ? {} : { url }),
      ...(events === undefined ? {} : { kinds: events }),
      ...(paused === undefined ? {} : { isPaused: paused }),
    };
    return shown(await webhooks.change(who.balance.id, params.id, change, actorOf(who)));
  }),
  operation("DELETE /v1/webhooks/:id", WEBHOOKS.drop, async ({ who, params: { id } }, { webhooks }) => {
    const why = await webhooks.remove(who.balance.id, id, actorOf(who));
    return why ?? { id, deleted: true as const };
  }),
  operation("POST /v1/webhooks/:id/test", WEBHOOKS.test, async ({ who, params: { id } }, deps) => {
    const webhook = await deps.webhooks.show(who.balance.id, id);
    if (refused(webhook)) return webhook;
    const tooMany = await overTests(who.balance.id, deps);
    if (tooMany !== null) return tooMany;
    const failure = await deps.webhooks.test(webhook);
    return { id, delivered: failure === null, problem: failure?.problem ?? null };
  }),
  operation(
    "POST /v1/webhooks/:id/rotate",
    WEBHOOKS.rotate,
    async ({ who, params: { id } }, { webhooks }) => {
      const rotated = await webhooks.rotate(who.balance.id, id, actorOf(who));
      return refused(rotated) ? rotated : { ...view(rotated.webhook), secret: rotated.secret };
    },
  ),
  operation(
    "GET /admin/webhooks",
    WEBHOOKS.listForOperator,
    async ({ query }, { webhooks, operatorsWebhooks }) =>
      query.balance_id === null
        ? list((await operatorsWebhooks.list()).map((one) => operatorsView(one, one.waiting)))
        : list((await webhooks.list(query.balance_id as BalanceId)).map((one) => operatorsView(one, null))),
  ),
  operation("POST /admin/webhooks/:id/test", WEBHOOKS.testForOperator, async ({ params: { id } }, deps) => {
    const failure = await deps.operatorsWebhooks.test(id);
    return failure === undefined
      ? invalidField("id", "`id` must be that of an endpoint of the configuration, other than `mail`.")
      : { id, delivered: failure === null, problem: failure?.problem ?? null };
  }),
];

const shown = (webhook: OwnWebhook | Refusal) => (refused(webhook) ? webhook : view(webhook));

/** What the operator sees of endpoints: the path of an owner's address may be a secret. */
const operatorsView = (
  webhook: Pick<
    OwnWebhook,
    "id" | "url" | "format" | "kinds" | "failures" | "problem" | "pausedAt" | "dueAt"
  >,
  waiting: number | null,
): OperatorsWebhookAnswer => ({
  ...stateView(webhook),
  origin: originOf(webhook.url),
  waiting,
});

const view = (webhook: OwnWebhook): WebhookAnswer => ({
  ...stateView(webhook),
  url: webhook.url === MAILBOX ? null : webhook.url,
  created_at: isoTime(webhook.createdAt),
});

const stateView = ({
  id,
  kinds,
  format,
  failures,
  problem,
  pausedAt,
  dueAt,
}: Pick<OwnWebhook, "id" | "kinds" | "format" | "failures" | "problem" | "pausedAt" | "dueAt">) => ({
  id,
  events: kinds,
  format,
  state: stateOf({ failures, pausedAt }),
  problem,
  failures,
  next_attempt_at: failures > 0 && pausedAt === null ? isoTime(dueAt) : null,
  paused_at: timeOrNone(pausedAt),
});

function stateOf({ failures, pausedAt }: Pick<OwnWebhook, "failures" | "pausedAt">): WebhookAnswer["state"] {
  if (pausedAt !== null) return "paused";
  return failures > 0 ? "failing" : "active";
}

const timeOrNone = (at: EpochMs | null) => (at === null ? null : isoTime(at));

/** Each sends a request to an address that the owner names. */
async function overTests(balance: BalanceId, { throttles }: HttpDeps): Promise<Refusal | null> {
  const waitS = await throttles.webhook_tests.take(balance, MAX_TESTS_PER_HOUR);
  return waitS === null
    ? null
    : refuse(
        "rate_limited",
        `Webhooks of this balance were tested ${MAX_TESTS_PER_HOUR} times within an hour, which is the limit. Retry in ${waitS} s.`,
        retryAfter(waitS),
      );
}

const MAX_TESTS_PER_HOUR = 20;
