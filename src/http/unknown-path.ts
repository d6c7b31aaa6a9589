import { type Refusal, refuse } from "../errors/refusal.ts";
import { type Endpoint, pathOf } from "./endpoint.ts";

/** Why no endpoint was found: another method would do, or the surface is not served. */
export function unknownPath(request: Request, endpoints: readonly Endpoint[]): Misdirected {
  const path = pathOf(request);
  const methods = methodsAt(path, endpoints);
  if (methods.includes(request.method)) {
    // Found by its resolved path, and the router goes by the path as it was sent.
    const message = `${shown(path)} is served only where the request spells it so, without \`..\` or a fragment.`;
    return { why: refuse("unsupported_endpoint", message), headers: {} };
  }
  if (methods.length > 0) {
    const allowed = methods.join(", ");
    const message = `${shown(path)} does not take ${request.method}; it takes ${allowed}.`;
    return { why: refuse("invalid_request", message), headers: { allow: allowed } };
  }
  if (methodsAt(`/v1${path}`, endpoints).includes(request.method)) {
    const message = `${shown(path)} is not served, but ${shown(`/v1${path}`)} is: let the client's base URL end in \`/v1\`.`;
    return { why: refuse("unsupported_endpoint", message), headers: {} };
  }
  const message = `${shown(path)} is not served. Text generation is at /v1/chat/completions, /v1/responses and /v1/messages.`;
  return { why: refuse("unsupported_endpoint", message), headers: {} };
}

export interface Misdirected {
  readonly why: Refusal;
  readonly headers: Readonly<Record<string, string>>;
}

const methodsAt = (path: string, endpoints: readonly Endpoint[]): string[] => [
  ...new Set(endpoints.filter((endpoint) => matches(endpoint.path, path)).map(({ method }) => method)),
];

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split("/");
  const given = path.split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => part.startsWith(":") || part === given[index])
  );
}

const MAX_SHOWN = 100;

const shown = (path: string): string =>
  `\`${path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path}\``;
