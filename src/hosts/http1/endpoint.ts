import type { Host } from "../../catalog/catalog.ts";
import { assert } from "../../units/assert.ts";

/** Where a host's base address leads: what its sockets, its TLS check and its request lines need. */
export interface HostEndpoint {
  /** `https://api.example.com:8443`; hosts with the same origin share sockets. */
  readonly origin: string;
  readonly secure: boolean;
  /** A name or an address, IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Value of the `host` field: the port only where it is not the scheme's own. */
  readonly authority: string;
  /** Path of the base address, without a trailing slash; often `/v1`. */
  readonly prefix: string;
  /** Query of the base address without its `?`, kept on every request: `api-version=2024-10-21`. */
  readonly query: string;
}

/** The config floor has already checked that the address parses and is http or https. */
export function endpointOf(host: Pick<Host, "id" | "baseUrl">): HostEndpoint {
  const url = new URL(host.baseUrl);
  const secure = url.protocol === "https:";
  assert(secure || url.protocol === "http:", `host ${host.id}: base address is neither http nor https`);
  assert(url.username === "" && url.password === "", `host ${host.id}: base address carries credentials`);
  return {
    origin: url.origin,
    secure,
    hostname: url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    authority: url.host,
    prefix: url.pathname.endsWith("/") ? url.pathname.slice(0, -1) : url.pathname,
    query: url.search.slice(1),
  };
}

/** The request target: prefix, path, and the queries of both. */
export function targetOf(endpoint: HostEndpoint, path: string): string {
  const target = endpoint.prefix + path;
  if (endpoint.query === "") return target;
  return `${target}${path.includes("?") ? "&" : "?"}${endpoint.query}`;
}
