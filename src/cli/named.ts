import type { KeyAnswer } from "../api/keys.ts";
import { type Client, path } from "./client.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/**
 * Whole keys are accepted wherever an id is: of a key that leaked, nobody has more than the secret. It is sent in a
 * body, because paths are logged on the way.
 */
export async function keyIdOf(named: string, client: Client): Promise<string> {
  return named.startsWith("or-") ? (await keyOf(named, client)).id : named;
}

/** A balance, named by its id, by the id of one of its keys, or by such a key itself. */
export async function balanceIdOf(named: string, client: Client): Promise<string> {
  if (named.startsWith("or-")) return (await keyOf(named, client)).balance_id;
  if (!named.startsWith("key_")) return named;
  return (await client.get<KeyAnswer>(path`/admin/keys/${named}`)).balance_id;
}

/** Where a balance's keys or budgets are: the owner's, or those of the balance that the operator has to name. */
export async function ofBalance(
  balance: string | undefined,
  what: "keys" | "budgets",
  client: Client,
): Promise<string> {
  if (client.as === "v1") return `/v1/${what}`;
  if (balance !== undefined) return path`/admin/balances/${await balanceIdOf(balance, client)}/${what}`;
  throw new CommandFailure(
    EXIT.usage,
    `no balance was named, so there are no ${what}`,
    "Name one of `gateway balances`, or set GATEWAY_OWNER to act as an owner.",
  );
}

async function keyOf(secret: string, client: Client): Promise<KeyAnswer> {
  if (secret.startsWith("or-live-"))
    return client.post<KeyAnswer>(`/${client.as}/keys/find`, { key: secret });
  throw new CommandFailure(
    EXIT.usage,
    "this is a secret, but not an API key, which begins with or-live-",
    "A recovery secret that leaked is replaced with `gateway owner recovery`, a session is ended with `gateway owner end-session all`.",
  );
}
