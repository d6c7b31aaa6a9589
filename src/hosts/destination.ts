import type { Host, SurfaceName } from "../catalog/catalog.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import type { Destination } from "./transport.ts";

/** Where requests go at each host, by language and by whether they ask for a stream; each made once. */
export class Destinations {
  private readonly known = new WeakMap<Host, Record<"whole" | "streamed", Map<SurfaceName, Destination>>>();

  at(host: Host, spoken: SurfaceName, stream: boolean): Destination {
    let known = this.known.get(host);
    if (known === undefined) {
      known = { whole: new Map(), streamed: new Map() };
      this.known.set(host, known);
    }
    const destinations = stream ? known.streamed : known.whole;
    let destination = destinations.get(spoken);
    if (destination === undefined) {
      const { path } = SURFACES[spoken];
      destination = { host, method: "POST", path, headers: standingHeaders(host, stream) };
      destinations.set(spoken, destination);
    }
    return destination;
  }
}

/** The operator's headers that no client may override. */
function standingHeaders(host: Host, stream: boolean): Record<string, string> {
  const headers: Record<string, string> = { ...host.headers };
  delete headers[VERSION];
  delete headers[BETA];
  headers["content-type"] = "application/json";
  headers.accept = stream ? "text/event-stream" : "application/json";
  if (host.apiKey !== null) {
    if (host.auth === "x-api-key") headers["x-api-key"] = host.apiKey;
    else headers.authorization = `Bearer ${host.apiKey}`;
  }
  return headers;
}

/**
 * A request's own headers: those of the client that the host should see, including its language's where the
 * host speaks that language. The client's version of Anthropic's language wins over the operator's, because
 * it wrote its body for it; betas of both are joined.
 */
export function ownHeaders(
  { headers }: Host,
  surface: SurfaceName,
  spoken: SurfaceName,
  client: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const passed = surface === spoken ? client : withoutLanguage(client);
  const version =
    passed[VERSION] ?? headers[VERSION] ?? (spoken === "messages" ? ANTHROPIC_VERSION : undefined);
  const beta = joined(headers[BETA], passed[BETA]);
  if (version === passed[VERSION] && beta === passed[BETA]) return passed;
  const own = { ...passed };
  if (version !== undefined) own[VERSION] = version;
  if (beta !== undefined) own[BETA] = beta;
  return own;
}

const VERSION = "anthropic-version";
const BETA = "anthropic-beta";
/**
 * The version of Messages that translated requests are written for (docs.anthropic.com, "Versions"); hosts
 * insist on one.
 */
const ANTHROPIC_VERSION = "2023-06-01";

const OF_A_LANGUAGE = /^(anthropic|openai|x-stainless)-/;

function withoutLanguage(headers: Readonly<Record<string, string>>): Record<string, string> {
  const rest: Record<string, string> = {};
  for (const name in headers) if (!OF_A_LANGUAGE.test(name)) rest[name] = headers[name]!;
  return rest;
}

const joined = (operators: string | undefined, clients: string | undefined): string | undefined =>
  operators === undefined || clients === undefined ? (operators ?? clients) : `${operators},${clients}`;
