import { type Command, Option } from "@commander-js/extra-typings";
import type { List } from "../api/answers.ts";
import type { ChangeAnswer } from "../api/changes.ts";
import type { OperatorAnswer, OperatorWithToken } from "../api/operators.ts";
import { CHANGE_ACTIONS } from "../units/change-actions.ts";
import { DAY_MS } from "../units/clock.ts";
import { OPERATOR_ROLES } from "../units/operator-roles.ts";
import { connected, daysOf, limitOption, moment, orUnlimited, ownerOption } from "./arguments.ts";
import { adminClient, type OwnerOptions, ownerClient } from "./client.ts";
import type { OperationOptions } from "./connection.ts";
import { type CommandContext, show, table } from "./console.ts";
import { showList } from "./listing.ts";

export function addOperators(gateway: Command, context: CommandContext): void {
  const operators = gateway
    .command("operators")
    .description("Give others an admin token of their own, with a role.") as Command;
  connected(operators, "list", { isDefault: true })
    .description("List who operates the gateway; `gateway operators` is the same.")
    .action((options) => listOperators(options, context));
  connected(operators, "add")
    .description("Add an operator, and print the token once.")
    .argument("<name>", "lower-case letters, digits, `_`, `.` and `-`")
    .addOption(new Option("--role <role>", "what they may do").choices(OPERATOR_ROLES).makeOptionMandatory())
    .addOption(expiresOption())
    .action((name, options) => addOperator(name, options, context));
  connected(operators, "rotate")
    .description("Give an operator another token; the present one ends at once.")
    .argument("<name>")
    .addOption(expiresOption())
    .action((name, options) => rotateOperator(name, options, context));
  connected(operators, "remove")
    .description("Remove an operator; the token is refused from the next request on.")
    .argument("<name>")
    .action((name, options) => removeOperator(name, options, context));
  connected(gateway, "changes")
    .description("Show who changed what, newest first.")
    .option("--balance <id>", "only on this balance, bal_…")
    .addOption(ownerOption())
    .option("--by <author>", "only by this operator, key, account or balance")
    .addOption(new Option("--action <action>", "only such changes").choices(CHANGE_ACTIONS))
    .option("--subject <id>", "only changes of the thing with this id or name")
    .option("--since <time>", "a UTC day or a time", moment)
    .option("--until <time>", "the end, exclusive", moment)
    .addOption(limitOption())
    .action((options) => listChanges(options, context));
}

const expiresOption = () =>
  new Option("--expires <days>", "how long the token works, like 30d; `none` for no end").argParser(
    orUnlimited(daysOf),
  );

async function listOperators(options: OperationOptions, context: CommandContext): Promise<void> {
  const { data } = await adminClient(options, context).get<List<OperatorAnswer>>("/admin/operators");
  show(context, options.json, { data }, [
    ...table(
      ["name", "role", "kept in", "created", "expires"],
      data.map((one) => [one.name, one.role, one.source, one.created_at, one.expires_at]),
    ),
  ]);
}

interface ExpiryOption extends OperationOptions {
  /** Days; "none" for no end. */
  readonly expires?: number | "none" | undefined;
}

async function addOperator(
  name: string,
  { role, expires, ...options }: ExpiryOption & { readonly role: string },
  context: CommandContext,
): Promise<void> {
  const body = { name, role, ...expiryIn(expires) };
  const added = await adminClient(options, context).post<OperatorWithToken>("/admin/operators", body);
  showToken(added, options, context);
}

async function rotateOperator(
  name: string,
  { expires, ...options }: ExpiryOption,
  context: CommandContext,
): Promise<void> {
  const path = `/admin/operators/${encodeURIComponent(name)}/rotate`;
  showToken(
    await adminClient(options, context).post<OperatorWithToken>(path, expiryIn(expires)),
    options,
    context,
  );
}

async function removeOperator(
  name: string,
  options: OperationOptions,
  context: CommandContext,
): Promise<void> {
  const removed = await adminClient(options, context).delete<{ name: string }>(
    `/admin/operators/${encodeURIComponent(name)}`,
  );
  show(context, options.json, removed, [`${removed.name} is removed: the token is refused from now on.`]);
}

function showToken(operator: OperatorWithToken, { json }: OperationOptions, context: CommandContext): void {
  const { name, role, expires_at, token } = operator;
  show(context, json, operator, [
    `${name} has the role ${role}${expires_at === null ? "" : `, until ${expires_at}`}.`,
    `token, shown this once: ${token}`,
    "It goes where the admin token does: GATEWAY_ADMIN_TOKEN for commands, or the page /admin.",
  ]);
}

const expiryIn = (days: number | "none" | undefined): { readonly expires_at?: string | null } =>
  days === undefined
    ? {}
    : { expires_at: days === "none" ? null : new Date(Date.now() + days * DAY_MS).toISOString() };

interface ChangesOptions extends OwnerOptions {
  readonly limit: number;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  readonly by?: string | undefined;
  readonly action?: string | undefined;
  readonly subject?: string | undefined;
}

/** Everybody's, or an owner's own. */
async function listChanges(options: ChangesOptions, context: CommandContext): Promise<void> {
  const owner = ownerClient(options, context);
  const { since, until, by, action, subject, balance } = options;
  const filters = {
    since: since?.toISOString(),
    until: until?.toISOString(),
    by,
    action,
    subject,
    balance_id: owner === null ? balance : undefined,
  };
  const listing = {
    path: owner === null ? "/admin/changes" : "/v1/changes",
    filters,
    noun: "changes",
    head: ["at", "by", "action", "subject", "before", "after", "network"],
    cells: (row: ChangeAnswer) => [
      row.at,
      row.by.name ?? row.by.id ?? row.by.kind,
      row.action,
      row.subject,
      fieldsText(row.before),
      fieldsText(row.after),
      row.network,
    ],
  };
  await showList(listing, owner ?? adminClient(options, context), options, context);
}

const fieldsText = (fields: ChangeAnswer["before"]): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
