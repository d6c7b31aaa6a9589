import { EVENT_KINDS } from "../units/event-kinds.ts";
import { nodeAddress, oneOf, secrets } from "./kinds.ts";
import { describe } from "./problem.ts";
import { joined, listOf, mapOf, required, setting } from "./setting.ts";

/** As Standard Webhooks spells a secret. */
const SECRET = "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$";

const ENDPOINT = mapOf(
  {
    url: required(nodeAddress(), "an address that events are posted to"),
    format: setting(oneOf(["signed", "slack"]), "signed", {
      doc: "`slack`: messages for one of Slack's incoming webhooks",
    }),
    secret: setting(secrets("whsec_ and 24 to 64 bytes in base64", SECRET), [], {
      doc: "signs deliveries: `whsec_` and 24 to 64 random bytes in base64; two while you replace it",
      otherwise: "required, except for Slack",
    }),
    kinds: setting(listOf(oneOf(EVENT_KINDS), "a list of at least one kind of event"), null, {
      doc: "the [kinds of events](webhooks.md#events) to send",
      otherwise: "all",
    }),
  },
  "an endpoint: { url, secret, kinds }",
);

/** The block `webhooks`: where the operator's programs learn what happens to balances. */
export const WEBHOOKS = joined(
  mapOf({
    endpoints: setting(listOf(ENDPOINT, "a list of at least one endpoint"), [], {
      doc: "",
      otherwise: "none",
    }),
    owners: setting(oneOf(["public", "loopback", "off"]), "public", {
      doc: "where [owners](webhooks.md#owners-endpoints) may send their events: `public`, https addresses on the internet; `loopback`, for tests also http on this machine; `off`, nowhere",
    }),
  }),
  (webhooks, _rows, path, report) => {
    const urls = new Set<string>();
    for (const [index, { url, format, secret }] of webhooks.endpoints.entries()) {
      const urlPath = [...path, "endpoints", index, "url"];
      if ((secret.length === 0) === (format === "signed"))
        report(
          [...path, "endpoints", index, "secret"],
          secret.length === 0 ? "nothing" : "a secret",
          secret.length === 0 ? "whsec_ and 24 to 64 bytes in base64" : "none, where the format is slack",
        );
      if (urls.has(url))
        report(urlPath, describe(new URL(url).origin), "an address that no other endpoint has");
      urls.add(url);
    }
    return webhooks;
  },
  (webhooks) => webhooks,
);
