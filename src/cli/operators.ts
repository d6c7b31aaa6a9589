import type { List } from "../api/answers.ts";
import type { ChangeAnswer } from "../api/changes.ts";
import type { OperatorAnswer, OperatorWithToken } from "../api/operators.ts";
import { adminClient, type OwnerOptions, ownerClient } from "./client.ts";
import type { OperationOptions } from "./connection.ts";
import { type CommandContext, show, table } from "./console.ts";
import { showList } from "./listing.ts";

export async function listOperators(options: OperationOptions, context: CommandContext): Promise<void> {
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

export async function addOperator(
  name: string,
  { role, expires, ...options }: ExpiryOption & { readonly role: string },
  context: CommandContext,
): Promise<void> {
  const body = { name, role, ...expiryIn(expires) };
  const added = await adminClient(options, context).post<OperatorWithToken>("/admin/operators", body);
  showToken(added, options, context);
}

export async function rotateOperator(
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

export async function removeOperator(
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

const DAY_MS = 86_400_000;

export interface ChangesOptions extends OwnerOptions {
  readonly limit: number;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  readonly by?: string | undefined;
  readonly action?: string | undefined;
  readonly subject?: string | undefined;
}

/** Everybody's, or an owner's own. */
export async function listChanges(options: ChangesOptions, context: CommandContext): Promise<void> {
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
