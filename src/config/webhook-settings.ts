import { EVENT_KINDS } from "../units/event-kinds.ts";
import { nodeAddress, oneOf, secrets } from "./kinds.ts";
import { describe } from "./problem.ts";
import { joined, listOf, mapOf, required, setting } from "./setting.ts";

/** As Standard Webhooks spells a secret. */
const SECRET = "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$";

const ENDPOINT = mapOf(
  {
    url: required(nodeAddress(), "an address that events are posted to"),
    secret: required(
      secrets("whsec_ and 24 to 64 bytes in base64", SECRET),
      "signs what is sent: `whsec_` and 24 to 64 random bytes in base64; or a list of two, while one replaces the other",
    ),
    kinds: setting(listOf(oneOf(EVENT_KINDS), "a list of at least one kind of event"), null, {
      doc: "the [kinds of events](webhooks.md#events) that are sent there",
      otherwise: "all",
    }),
  },
  "an endpoint: { url, secret, kinds }",
);

/** The block `webhooks`: where the operator's programs learn what happens to balances. */
export const WEBHOOKS = joined(
  mapOf({ endpoints: required(listOf(ENDPOINT, "a list of at least one endpoint"), "") }),
  (webhooks, _rows, path, report) => {
    const urls = new Set<string>();
    for (const [index, { url }] of webhooks.endpoints.entries()) {
      const place = [...path, "endpoints", index, "url"];
      if (urls.has(url))
        report(place, describe(new URL(url).origin), "an address that no other endpoint has");
      urls.add(url);
    }
    return webhooks;
  },
  (webhooks) => webhooks,
);
