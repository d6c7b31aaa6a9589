import { ConfigError } from "../config/problem.ts";
import { type httpApp, listen } from "../http/app.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { ListenAddress } from "../http/listen-address.ts";
import { listenMetrics } from "../http/metrics-listener.ts";

export function opened(
  app: ReturnType<typeof httpApp>,
  address: ListenAddress,
  messageBytes: number,
): Bun.Server<unknown> {
  try {
    return listen(app, address, messageBytes);
  } catch (error) {
    throw cannotListen(address, error);
  }
}

/** `taken` is the port of everything else: workers share ports, so the system would not refuse it. */
export function openedMetrics(deps: HttpDeps, address: ListenAddress, taken: number): Bun.Server<undefined> {
  try {
    if (address.port === taken) throw "it is the gateway's own port";
    return listenMetrics(deps, address);
  } catch (error) {
    throw cannotListen(address, error, "Set `metrics` to an address of this machine and a free port.");
  }
}

/** An address that is taken or not this machine's is the operator's to fix, like any other setting. */
export const cannotListen = (
  { hostname, port }: Pick<ListenAddress, "hostname" | "port">,
  error: unknown,
  next = "Set HOST to an address of this machine and PORT to a free port; PORT=0 picks one.",
): ConfigError =>
  new ConfigError(
    `cannot listen on ${hostname}:${port} (${(error as NodeJS.ErrnoException).code ?? error}). ${next}`,
  );

/** What the variable HOST says; this machine alone where it says nothing. */
export const hostOf = (text: string | undefined): string => text || "127.0.0.1";

/** What the variable PORT says; 8080 where it says nothing. */
export function portOf(text: string | undefined): number {
  if (text === undefined || text === "") return DEFAULT_PORT;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new ConfigError(`PORT is "${text}": expected a number from 0 to 65535.`);
  }
  return port;
}

const DEFAULT_PORT = 8080;
