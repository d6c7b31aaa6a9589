import type { Host } from "../catalog/catalog.ts";
import { OutsideParty, secretsIn } from "../units/outside-party.ts";

/** Takes out of a host's words what is the operator's: customers read them. */
export const redact = (text: string, host: Host): string => partyOf(host).redact(text);

const partyOf = ({ apiKey, headers, baseUrl }: Host): OutsideParty =>
  new OutsideParty({
    called: "host",
    secrets: [
      ...(apiKey === null ? [] : [apiKey]),
      ...Object.entries(headers).flatMap(([name, value]) =>
        PUBLIC.has(name) ? [] : [value, value.replace(SCHEME, "")],
      ),
      ...secretsIn(baseUrl),
    ],
    addresses: [baseUrl],
  });

/** Headers that say nothing of the operator. */
const PUBLIC = new Set(["anthropic-version", "anthropic-beta", "content-type", "accept"]);
const SCHEME = /^(?:bearer|basic)\s+/i;
