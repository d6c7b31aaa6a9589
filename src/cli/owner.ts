import type { List } from "../api/answers.ts";
import type { UndoneAnswer } from "../api/claims.ts";
import type { MeAnswer } from "../api/me.ts";
import type { DeletionAnswer, RecoveryAnswer } from "../api/ownership.ts";
import type { OpenSession } from "../api/sessions.ts";
import { type Client, type OwnerOptions, ownerClient } from "./client.ts";
import { type CommandContext, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { liveKeyLines, type RevokeKeysOption, revokeKeysIn } from "./live-keys.ts";
import { lowCreditLine } from "./operations.ts";

/** What owners do about their own credentials, with the recovery secret or a session. */
export async function replaceRecovery(options: OwnerOptions, context: CommandContext): Promise<void> {
  const made = await clientFor(options, context).post<RecoveryAnswer>("/v1/me/recovery");
  show(context, options.json, made, [
    `The recovery secret of ${made.balance_id}, which is not shown again; the old one has ended:`,
    made.recovery_secret,
    made.recovery_url,
  ]);
}

/** Below which credit the owner is notified. */
export async function setOwnLowCredit(
  low_credit_usd: number | null,
  options: OwnerOptions,
  context: CommandContext,
): Promise<void> {
  const me = await clientFor(options, context).patch<MeAnswer>("/v1/me", { low_credit_usd });
  show(context, options.json, me, [lowCreditLine(me.balance_id, low_credit_usd)]);
}

export async function undoClaim(
  options: OwnerOptions & RevokeKeysOption,
  context: CommandContext,
): Promise<void> {
  const undone = await clientFor(options, context).delete<UndoneAnswer>(
    "/v1/me/claim",
    revokeKeysIn(options),
  );
  show(context, options.json, undone, [
    `${undone.balance_id} belongs to no account, and is claimed for none.`,
    ...liveKeyLines(undone),
  ]);
}

export async function listSessions(options: OwnerOptions, context: CommandContext): Promise<void> {
  const { data } = await clientFor(options, context).get<List<OpenSession>>("/v1/auth/sessions");
  show(context, options.json, { data }, [
    ...table(
      ["id", "signed in", "until", ""],
      data.map(({ id, signed_in_at, expires_at, current }) => [
        id,
        signed_in_at,
        expires_at,
        current ? "this one" : "",
      ]),
    ),
  ]);
}

/** One by its id, or all. */
export async function endSession(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const client = clientFor(options, context);
  const done =
    id === "all"
      ? await client.delete<object>("/v1/auth/sessions")
      : await client.delete<object>(`/v1/auth/sessions/${encodeURIComponent(id)}`);
  show(context, options.json, done, [
    id === "all" ? "All sessions of the account have ended." : `${id} has ended.`,
  ]);
}

/** The id is typed, because nothing brings back what it names. */
export async function deleteAll(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const done = await clientFor(options, context).delete<DeletionAnswer>("/v1/me", { confirm: id });
  const { closed_balance_ids: closed, detached_balance_ids: detached } = done;
  show(context, options.json, done, [
    `${id} is deleted. Keys and recovery secrets have ended on: ${closed.join(", ") || "no balance"}.`,
    ...(detached.length === 0
      ? []
      : [`Given back to their first owners, because they were claimed lately: ${detached.join(", ")}.`]),
  ]);
}

function clientFor(options: OwnerOptions, context: CommandContext): Client {
  const client = ownerClient(options, context);
  if (client !== null) return client;
  throw new CommandFailure(
    EXIT.usage,
    "there is no owner's credential",
    "Set GATEWAY_OWNER to the recovery secret of a balance, or to a session.",
  );
}
