import { PAYMENTS } from "../../api/payments.ts";
import { refuse, refused } from "../../units/errors/refusal.ts";
import { againstForging } from "../authentication.ts";
import { declaredLength } from "../body.ts";
import { readControlBytes } from "../control-body.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpExchange } from "../exchange.ts";
import { operation } from "../operation.ts";
import { ok } from "../reply.ts";

/** Stripe's events. Any other answer than 200 has Stripe send one again, for three days. */
export const stripeEventEndpoints = (): Endpoint[] => [
  operation("POST /webhooks/stripe", PAYMENTS.stripe, async ({ exchange }, deps) => {
    const length = declaredLength(exchange.request);
    if (refused(length)) return length;
    const isSmall = length !== null && length <= SMALL_EVENT_BYTES;
    return isSmall ? take(exchange, deps) : againstForging(exchange, deps, () => take(exchange, deps));
  }),
];

async function take(exchange: HttpExchange, deps: HttpDeps) {
  const body = await readControlBytes(exchange, deps, MAX_EVENT_BYTES);
  if (refused(body)) return body;
  const signature = exchange.request.headers.get("stripe-signature") ?? "";
  const event = await deps.payments!.card!.event({ body: new TextDecoder().decode(body), signature });
  return event === null
    ? refuse("invalid_request", "The event was not signed by Stripe for this gateway within 300 s.", {
        param: "Stripe-Signature",
      })
    : ok(event);
}

const MAX_EVENT_BYTES = 262_144;
/**
 * What others sign costs as little as an unknown key, so it is not counted: else a sender that shares an address with Stripe,
 * behind a proxy that is not trusted, could keep its events out. They have some 4 KiB.
 */
const SMALL_EVENT_BYTES = 16_384;
