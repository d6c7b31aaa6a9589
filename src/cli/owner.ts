import type { Command } from "@commander-js/extra-typings";
import type { DeletionAnswer, OpenSession, RecoveryAnswer } from "../api/accounts.ts";
import type { UndoneAnswer } from "../api/claims.ts";
import type { MeAnswer } from "../api/me.ts";
import { asOwner, rowsAt } from "./actions.ts";
import {
  allowHttpOption,
  groupOf,
  jsonOption,
  lowCreditArgument,
  ownerOption,
  revokeKeysOption,
  urlOption,
} from "./arguments.ts";
import { lowCreditLine } from "./balances.ts";
import { path } from "./client.ts";
import type { CommandContext } from "./console.ts";
import { liveKeyLines } from "./live-keys.ts";

/** What owners do about their own credentials, with the recovery secret or a session. */
export function addOwner(gateway: Command, context: CommandContext): void {
  const owner = groupOf(
    gateway,
    "owner",
    "Act as an owner, with the recovery secret or a session, such as to end what leaked.",
  );
  addRecovery(owner, context);
  addSessions(owner, context);
}

const command = (owner: Command, name: string) =>
  owner
    .command(name)
    .addOption(urlOption())
    .addOption(ownerOption())
    .option("--balance <id>", "with a session: which of the account's balances")
    .addOption(allowHttpOption())
    .addOption(jsonOption());

function addRecovery(owner: Command, context: CommandContext): void {
  command(owner, "recovery")
    .description("Replace the recovery secret of the balance; the new one is shown once.")
    .action(
      asOwner(context, async (client) => {
        const made = await client.post<RecoveryAnswer>("/v1/me/recovery");
        const { balance_id, recovery_secret, recovery_url } = made;
        const line = `The recovery secret of ${balance_id}, which is not shown again; the old one has ended:`;
        return [made, [line, recovery_secret, recovery_url]];
      }),
    );
  command(owner, "low-credit")
    .description("Set the credit below which the owner is notified, by mail and webhook.")
    .addArgument(lowCreditArgument())
    .action(
      asOwner(context, async (client, low_credit_usd) => {
        const me = await client.patch<MeAnswer>("/v1/me", { low_credit_usd });
        return [me, [lowCreditLine(me.balance_id, low_credit_usd)]];
      }),
    );
  command(owner, "undo-claim")
    .description("Withdraw a pending claim of the balance, or undo one within 7 days; recovery secret only.")
    .addOption(revokeKeysOption())
    .action(
      asOwner(context, async (client, { revokeKeys }) => {
        const undone = await client.delete<UndoneAnswer>("/v1/me/claim", { revoke_keys: revokeKeys });
        const line = `${undone.balance_id} belongs to no account, and is claimed for none.`;
        return [undone, [line, ...liveKeyLines(undone)]];
      }),
    );
}

function addSessions(owner: Command, context: CommandContext): void {
  command(owner, "sessions")
    .description("List the account's sessions; with a session only.")
    .action(
      asOwner(context, (client) =>
        rowsAt<OpenSession>(client, "/v1/auth/sessions", {
          id: "id",
          "signed in": "signed_in_at",
          until: "expires_at",
          "": ({ current }) => (current ? "this one" : ""),
        }),
      ),
    );
  command(owner, "end-session")
    .description("End a session of the account, or all; with a session only.")
    .argument("<session>", "sess_…, or all")
    .action(
      asOwner(context, async (client, id) => {
        const all = id === "all";
        const done = await client.delete<object>(all ? "/v1/auth/sessions" : path`/v1/auth/sessions/${id}`);
        return [done, [all ? "All sessions of the account have ended." : `${id} has ended.`]];
      }),
    );
  command(owner, "delete")
    .description("Delete the account for good; or, with the recovery secret, a balance without an account.")
    // It is typed, because nothing brings back what it names.
    .argument("<id>", "to confirm: acct_… of the session, or bal_… of the recovery secret")
    .action(
      asOwner(context, async (client, id) => {
        const done = await client.delete<DeletionAnswer>("/v1/me", { confirm: id });
        const { closed_balance_ids: closed, detached_balance_ids: detached } = done;
        const ended = closed.join(", ") || "no balance";
        const lines = [
          `${id} is deleted. Keys and recovery secrets have ended on: ${ended}.`,
          ...(detached.length === 0
            ? []
            : [
                `Given back to their first owners, because they were claimed lately: ${detached.join(", ")}.`,
              ]),
        ];
        return [done, lines];
      }),
    );
}
