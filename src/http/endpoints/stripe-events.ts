import { PAYMENTS } from "../../api/payments.ts";
import { refuse, refused } from "../../errors/refusal.ts";
import { readControlBytes } from "../control-body.ts";
import type { Endpoint } from "../endpoint.ts";
import { operation } from "../operation.ts";
import { ok } from "../reply.ts";

/** Stripe's events. Any other answer than 200 has Stripe send one again, for three days. */
export const stripeEventEndpoints = (): Endpoint[] => [
  operation("POST /webhooks/stripe", PAYMENTS.stripe, async ({ exchange }, deps) => {
    const body = await readControlBytes(exchange, deps, MAX_EVENT_BYTES);
    if (refused(body)) return body;
    const signature = exchange.request.headers.get("stripe-signature") ?? "";
    const event = await deps.payments!.card!.event({ body: new TextDecoder().decode(body), signature });
    return event === null
      ? refuse("invalid_request", "The event was not signed by Stripe for this gateway within 300 s.", {
          param: "Stripe-Signature",
        })
      : ok(event);
  }),
];

const MAX_EVENT_BYTES = 262_144;
