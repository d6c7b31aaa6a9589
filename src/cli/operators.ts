import { type Command, Option } from "@commander-js/extra-typings";
import type { ChangeAnswer } from "../api/changes.ts";
import type { OperatorAnswer, OperatorWithToken } from "../api/operators.ts";
import { CHANGE_ACTIONS } from "../units/change-actions.ts";
import { DAY_MS } from "../units/clock.ts";
import { OPERATOR_ROLES } from "../units/operator-roles.ts";
import { asEither, asOperator, type CommandResult, pagesAt, rowsAt } from "./actions.ts";
import {
  connected,
  daysOf,
  groupOf,
  limitOption,
  orUnlimited,
  owned,
  sinceOption,
  untilOption,
} from "./arguments.ts";
import { path } from "./client.ts";
import type { CommandContext } from "./console.ts";

export function addOperators(gateway: Command, context: CommandContext): void {
  const operators = groupOf(gateway, "operators", "Give others an admin token of their own, with a role.");
  connected(operators, "list", { isDefault: true })
    .description("List who operates the gateway; `gateway operators` is the same.")
    .action(
      asOperator(context, (client) =>
        rowsAt<OperatorAnswer>(client, "/admin/operators", {
          name: "name",
          role: "role",
          "kept in": "source",
          created: "created_at",
          expires: "expires_at",
        }),
      ),
    );
  connected(operators, "add")
    .description("Add an operator, and print the token once.")
    .argument("<name>", "lower-case letters, digits, `_`, `.` and `-`")
    .addOption(new Option("--role <role>", "what they may do").choices(OPERATOR_ROLES).makeOptionMandatory())
    .addOption(expiresOption())
    .action(
      asOperator(context, async (client, name, { role, expires }) => {
        const body = { name, role, expires_at: expiryIn(expires) };
        return withToken(await client.post<OperatorWithToken>("/admin/operators", body));
      }),
    );
  connected(operators, "rotate")
    .description("Give an operator another token; the present one ends at once.")
    .argument("<name>")
    .addOption(expiresOption())
    .action(
      asOperator(context, async (client, name, { expires }) => {
        const body = { expires_at: expiryIn(expires) };
        return withToken(await client.post<OperatorWithToken>(path`/admin/operators/${name}/rotate`, body));
      }),
    );
  connected(operators, "remove")
    .description("Remove an operator; the token is refused from the next request on.")
    .argument("<name>")
    .action(
      asOperator(context, async (client, name) => {
        const removed = await client.delete<{ name: string }>(path`/admin/operators/${name}`);
        return [removed, [`${removed.name} is removed: the token is refused from now on.`]];
      }),
    );
  addChanges(gateway, context);
}

const expiresOption = () =>
  new Option("--expires <days>", "how long the token works, like 30d; `none` for no end").argParser(
    orUnlimited(daysOf),
  );

/** Undefined is not sent. */
function expiryIn(days: number | "none" | undefined): string | null | undefined {
  if (days === undefined) return undefined;
  return days === "none" ? null : new Date(Date.now() + days * DAY_MS).toISOString();
}

function withToken(operator: OperatorWithToken): CommandResult {
  const { name, role, expires_at, token } = operator;
  const lines = [
    `${name} has the role ${role}${expires_at === null ? "" : `, until ${expires_at}`}.`,
    `token, shown this once: ${token}`,
    "It goes where the admin token does: GATEWAY_ADMIN_TOKEN for commands, or the page /admin.",
  ];
  return [operator, lines];
}

/** Everybody's changes, or an owner's own. */
function addChanges(gateway: Command, context: CommandContext): void {
  owned(gateway, "changes")
    .description("Show who changed what, newest first.")
    .option("--balance <id>", "only on this balance, bal_…")
    .option("--by <author>", "only by this operator, key, account or balance")
    .addOption(new Option("--action <action>", "only such changes").choices(CHANGE_ACTIONS))
    .option("--subject <id>", "only changes of the thing with this id or name")
    .addOption(sinceOption())
    .addOption(untilOption())
    .addOption(limitOption())
    .action(
      asEither(context, (client, { by, action, subject, balance, since, until, ...options }) =>
        pagesAt<ChangeAnswer>(client, context, options, {
          path: `/${client.as}/changes`,
          filters: {
            since: since?.toISOString(),
            until: until?.toISOString(),
            by,
            action,
            subject,
            balance_id: client.as === "admin" ? balance : undefined,
          },
          noun: "changes",
          columns: {
            at: "at",
            by: ({ by: author }) => author.name ?? author.id ?? author.kind,
            action: "action",
            subject: "subject",
            before: ({ before }) => fieldsText(before),
            after: ({ after }) => fieldsText(after),
            network: "network",
          },
        }),
      ),
    );
}

const fieldsText = (fields: ChangeAnswer["before"]): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
