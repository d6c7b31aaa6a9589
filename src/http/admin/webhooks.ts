import { WEBHOOKS } from "../../api/webhooks.ts";
import { invalidField } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import type { Endpoint } from "../endpoint.ts";
import { operatorsView } from "../endpoints/webhooks.ts";
import { operation } from "../operation.ts";
import { list, ok } from "../reply.ts";

/** How deliveries go: to the endpoints of the configuration, or to those of a balance's owner. */
export const adminWebhookEndpoints = (): Endpoint[] => [
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
      : ok({ id, delivered: failure === null, problem: failure?.problem ?? null });
  }),
];
