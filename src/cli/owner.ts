import type { Command } from "@commander-js/extra-typings";
import type { List } from "../api/answers.ts";
import type { UndoneAnswer } from "../api/claims.ts";
import type { MeAnswer } from "../api/me.ts";
import type { DeletionAnswer, RecoveryAnswer } from "../api/ownership.ts";
import type { OpenSession } from "../api/sessions.ts";
import { allowHttpOption, jsonOption, lowCreditArgument, ownerOption, urlOption } from "./arguments.ts";
import { type Client, type OwnerOptions, ownerClient } from "./client.ts";
import { type CommandContext, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { liveKeyLines, type RevokeKeysOption, revokeKeysIn } from "./live-keys.ts";
import { lowCreditLine } from "./operations.ts";

export function addOwner(gateway: Command, context: CommandContext): void {
  const owners = gateway
    .command("owner")
    .description(
      "Act as an owner, with the recovery secret or a session, such as to end what leaked.",
    ) as Command;
  const owned = (name: string) =>
    owners
      .command(name)
      .addOption(urlOption())
      .addOption(ownerOption())
      .option("--balance <id>", "with a session: which of the account's balances")
      .addOption(allowHttpOption())
      .addOption(jsonOption());
  owned("recovery")
    .description("Replace the recovery secret of the balance; the new one is shown once.")
    .action((options) => replaceRecovery(options, context));
  owned("low-credit")
    .description("Set the credit below which the owner is notified, by mail and webhook.")
    .addArgument(lowCreditArgument())
    .action((usd, options) => setOwnLowCredit(usd, options, context));
  owned("undo-claim")
    .description("Withdraw a pending claim of the balance, or undo one within 7 days; recovery secret only.")
    .option("--revoke-keys", "end every key of the balance, not only those created through the claim")
    .action((options) => undoClaim(options, context));
  owned("sessions")
    .description("List the account's sessions; with a session only.")
    .action((options) => listSessions(options, context));
  owned("end-session")
    .description("End a session of the account, or all; with a session only.")
    .argument("<session>", "sess_…, or all")
    .action((id, options) => endSession(id, options, context));
  owned("delete")
    .description("Delete the account for good; or, with the recovery secret, a balance without an account.")
    .argument("<id>", "to confirm: acct_… of the session, or bal_… of the recovery secret")
    .action((id, options) => deleteAll(id, options, context));
}

/** What owners do about their own credentials, with the recovery secret or a session. */
async function replaceRecovery(options: OwnerOptions, context: CommandContext): Promise<void> {
  const made = await clientFor(options, context).post<RecoveryAnswer>("/v1/me/recovery");
  show(context, options.json, made, [
    `The recovery secret of ${made.balance_id}, which is not shown again; the old one has ended:`,
    made.recovery_secret,
    made.recovery_url,
  ]);
}

/** Below which credit the owner is notified. */
async function setOwnLowCredit(
  low_credit_usd: number | null,
  options: OwnerOptions,
  context: CommandContext,
): Promise<void> {
  const me = await clientFor(options, context).patch<MeAnswer>("/v1/me", { low_credit_usd });
  show(context, options.json, me, [lowCreditLine(me.balance_id, low_credit_usd)]);
}

async function undoClaim(options: OwnerOptions & RevokeKeysOption, context: CommandContext): Promise<void> {
  const undone = await clientFor(options, context).delete<UndoneAnswer>(
    "/v1/me/claim",
    revokeKeysIn(options),
  );
  show(context, options.json, undone, [
    `${undone.balance_id} belongs to no account, and is claimed for none.`,
    ...liveKeyLines(undone),
  ]);
}

async function listSessions(options: OwnerOptions, context: CommandContext): Promise<void> {
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
async function endSession(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
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
async function deleteAll(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
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
