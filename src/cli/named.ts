import type { KeyAnswer } from "../api/keys.ts";
import type { Client } from "./client.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/**
 * Whole keys are accepted wherever an id is: of a key that leaked, nobody has more than the secret. It is sent in a
 * body, because paths are logged on the way.
 */
export async function keyIdOf(named: string, client: Client, as: "admin" | "v1" = "admin"): Promise<string> {
  return named.startsWith("or-") ? (await keyOf(named, client, as)).id : named;
}

/** A balance, named by its id, by the id of one of its keys, or by such a key itself. */
export async function balanceIdOf(named: string, client: Client): Promise<string> {
  if (named.startsWith("or-")) return (await keyOf(named, client, "admin")).balance_id;
  if (!named.startsWith("key_")) return named;
  return (await client.get<KeyAnswer>(`/admin/keys/${encodeURIComponent(named)}`)).balance_id;
}

async function keyOf(secret: string, client: Client, as: "admin" | "v1"): Promise<KeyAnswer> {
  if (secret.startsWith("or-live-")) return client.post<KeyAnswer>(`/${as}/keys/find`, { key: secret });
  throw new CommandFailure(
    EXIT.usage,
    "this is a secret, but not an API key, which begins with or-live-",
    "A recovery secret that leaked is replaced with `gateway owner recovery`, a session is ended with `gateway owner end-session all`.",
  );
}
