import { type Host, keyTextsOf } from "../catalog/catalog.ts";
import { OutsideParty, secretsIn } from "../units/outside-party.ts";

/** Takes out of a host's words what is the operator's: customers read them. */
export const redact = (text: string, host: Host): string => partyOf(host).redact(text);

const partyOf = (host: Host): OutsideParty =>
  new OutsideParty({
    called: "host",
    secrets: [
      ...keyTextsOf(host),
      ...Object.entries(host.headers).flatMap(([name, value]) =>
        PUBLIC.has(name) ? [] : [value, value.replace(SCHEME, "")],
      ),
      ...secretsIn(host.baseUrl),
    ],
    addresses: [host.baseUrl],
  });

/** Headers that say nothing of the operator. */
const PUBLIC = new Set(["anthropic-version", "anthropic-beta", "content-type", "accept"]);
const SCHEME = /^(?:bearer|basic)\s+/i;
