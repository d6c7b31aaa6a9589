import { lookup } from "node:dns/promises";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";

/**
 * Why PostgreSQL does not let a gateway in, as a sentence for its operator, without the password. The start and
 * `doctor` both say it. Null for an error of another kind.
 */
export async function connectionMistake(url: string, error: unknown): Promise<string | null> {
  const { hostname, port, username, pathname } = new URL(url);
  const server = `PostgreSQL at ${hostname}:${port || 5432}`;
  const { errno, message = "" } = (error ?? {}) as { errno?: unknown; message?: string };
  switch (errno) {
    case "3D000":
      return `${server} has no database ${decodeURIComponent(pathname.slice(1)) || username}: create it, or correct \`store\`.`;
    case "28P01":
    case "28000":
      return `${server} does not let the user ${decodeURIComponent(username)} in: ${message}. Correct user, password or sslmode of \`store\`, or pg_hba.conf of the server.`;
    case "42501":
      return `${server} forbids what the gateway needs: ${message}. Let the user ${decodeURIComponent(username)} create tables in the database.`;
  }
  if (!(error instanceof StoreUnreachable)) return null;
  const name = hostname.replace(/^\[|\]$/g, "");
  const isKnown = await lookup(name).then(
    () => true,
    () => false,
  );
  if (!isKnown) return `No address is known of the host ${name} (DNS), which \`store\` names.`;
  const { cause } = error as { cause?: { code?: string; message?: string } };
  if (cause?.code === "ERR_POSTGRES_CONNECTION_REFUSED")
    return `Nothing accepts a connection at ${name}:${port || 5432}, which \`store\` names: start PostgreSQL there, or correct host and port.`;
  return `${server} does not serve: ${cause?.message ?? message}.`;
}
