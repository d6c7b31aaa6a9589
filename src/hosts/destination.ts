import type { Host, HostKey, SurfaceName } from "../catalog/catalog.ts";
import { OLDER_VERSION } from "../surfaces/messages/version.ts";
import type { HostBody } from "../surfaces/surface.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import type { Destination } from "./transport.ts";

/** Where requests go at each host, by language and by whether they ask for a stream; each made once. */
export class Destinations {
  private readonly known = new WeakMap<Host | HostKey, KnownDestinations>();

  /** `key` is the one of several; the first where nobody chose. */
  at(
    host: Host,
    spoken: SurfaceName,
    stream: boolean,
    key: HostKey | undefined = host.keys?.[0],
  ): Destination {
    const secret = key === undefined ? host.apiKey : key.secret.text;
    let known = this.known.get(key ?? host);
    // A rotated file has changed the key.
    if (known === undefined || known.secret !== secret) {
      known = { secret, whole: new Map(), streamed: new Map() };
      this.known.set(key ?? host, known);
    }
    const destinations = stream ? known.streamed : known.whole;
    return destinations.getOrInsertComputed(spoken, () => ({
      host,
      method: "POST",
      path: SURFACES[spoken].path,
      headers: standingHeaders(host, stream, secret),
    }));
  }
}

interface KnownDestinations extends Record<"whole" | "streamed", Map<SurfaceName, Destination>> {
  readonly secret: string | null;
}

/** The operator's headers that no client may override. */
function standingHeaders(host: Host, stream: boolean, secret: string | null): Record<string, string> {
  const headers: Record<string, string> = { ...host.headers };
  delete headers[VERSION];
  delete headers[BETA];
  headers["content-type"] = "application/json";
  headers.accept = stream ? "text/event-stream" : "application/json";
  if (secret !== null) {
    if (host.auth === "x-api-key") headers["x-api-key"] = secret;
    else headers.authorization = `Bearer ${secret}`;
  }
  return headers;
}

/**
 * A request's own headers: those of the client that the host should see, including its language's where the
 * host speaks that language. The client's version of Anthropic's language wins over the operator's, because
 * it wrote its body for it, and so does the one that the body needs; betas of both are joined. Hosts of Messages
 * insist on a version.
 */
export function ownHeaders(
  { headers }: Host,
  surface: SurfaceName,
  spoken: SurfaceName,
  client: Readonly<Record<string, string>>,
  /** What the body needs. */
  { version: needed, beta: neededBeta }: Pick<HostBody, "version" | "beta"> = NOTHING_NEEDED,
): Readonly<Record<string, string>> {
  const passed = surface === spoken ? client : withoutLanguage(client);
  const version =
    passed[VERSION] ?? needed ?? headers[VERSION] ?? (spoken === "messages" ? OLDER_VERSION : undefined);
  const named = joined(headers[BETA], passed[BETA]);
  const beta = neededBeta === undefined || isNamed(neededBeta, named) ? named : joined(named, neededBeta);
  if (version === passed[VERSION] && beta === passed[BETA]) return passed;
  const own = { ...passed };
  if (version !== undefined) own[VERSION] = version;
  if (beta !== undefined) own[BETA] = beta;
  return own;
}

const NOTHING_NEEDED = {};

/** In this version or another, which the client wrote its body for. */
const isNamed = (beta: string, named: string | undefined): boolean =>
  named?.includes(beta.replace(/-\d{4}-\d\d-\d\d$/, "")) === true;

const VERSION = "anthropic-version";
const BETA = "anthropic-beta";
const OF_A_LANGUAGE = /^(anthropic|openai|x-stainless)-/;

function withoutLanguage(headers: Readonly<Record<string, string>>): Record<string, string> {
  const rest: Record<string, string> = {};
  for (const name in headers) if (!OF_A_LANGUAGE.test(name)) rest[name] = headers[name]!;
  return rest;
}

const joined = (operators: string | undefined, clients: string | undefined): string | undefined =>
  operators === undefined || clients === undefined ? (operators ?? clients) : `${operators},${clients}`;
