import { Argument, type Command, Option } from "@commander-js/extra-typings";
import {
  type AuditAnswer,
  BALANCE_STATES,
  type BalanceAnswer,
  type CreditedAnswer,
  type DebitedAnswer,
  type DetachedAnswer,
  type HostAnswer,
  type ListedBalance,
  type ReloadAnswer,
  type SuspensionAnswer,
} from "../api/admin.ts";
import type { List } from "../api/answers.ts";
import { limitInForce } from "../api/host-limit.ts";
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import { amountUsd, connected, limitOption, lowCreditArgument, noteOption } from "./arguments.ts";
import { type RecomputedCharges, recomputeCharges } from "./charges.ts";
import { adminClient } from "./client.ts";
import type { OperationOptions } from "./connection.ts";
import { type CommandContext, counted, pairs, printable, show, table } from "./console.ts";
import { showAccount } from "./customers.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { showList } from "./listing.ts";
import { liveKeyLines, type RevokeKeysOption, revokeKeysIn } from "./live-keys.ts";
import { balanceIdOf, keyIdOf } from "./named.ts";
import { withProgress } from "./progress.ts";

export function addMoney(gateway: Command, context: CommandContext): void {
  connected(gateway, "balances")
    .description("List balances, newest first.")
    .addOption(limitOption())
    .addOption(
      new Option("--below <usd>", "only those with less than this left of their credit").argParser(amountUsd),
    )
    .addOption(new Option("--state <state>", "only such balances").choices(BALANCE_STATES))
    .action((options) => listBalances(options, context));
  connected(gateway, "price-list")
    .description("Set the price list that applies to the keys of a balance.")
    .argument("<balance>", "bal_…, or a key of the balance")
    .argument("<name>", "name of a list of `price_lists`, or none for the models' own prices")
    .action((id, name, options) => setPriceList(id, name, options, context));
  connected(gateway, "low-credit")
    .description("Set the credit below which a balance's owner is notified; owners use `owner low-credit`.")
    .argument("<balance>", "bal_…, or a key of the balance")
    .addArgument(lowCreditArgument())
    .action((id, usd, options) => setLowCredit(id, usd, options, context));
  connected(gateway, "account")
    .description("Show an account with its balances.")
    .argument("<account>", "acct_…, an email address or a wallet")
    .action((who, options) => showAccount(who, options, context));
  connected(gateway, "credit")
    .description("Add prepaid credit, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_… or whole")
    .addArgument(new Argument("<usd>", "amount in USD").argParser(amountUsd))
    .option("--note <text>", "kept with the credit")
    .option("--idempotency-key <text>", "a credit repeated with the same key is made only once")
    .action((target, usd, options) => credit(target, usd, options, context));
  connected(gateway, "debit")
    .description("Take back credit that is neither spent nor held, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_… or whole")
    .addArgument(
      new Argument("<usd>", "amount in USD, or all that is available").argParser((text) =>
        text === "all" ? text : amountUsd(text),
      ),
    )
    .option("--note <text>", "kept with the debit; the owner sees it")
    .option("--idempotency-key <text>", "a debit repeated with the same key is made only once")
    .action((target, usd, options) => debit(target, usd, options, context));
}

export function addSuspensions(gateway: Command, context: CommandContext): void {
  connected(gateway, "suspend")
    .description("Suspend an account or balance: every generation is refused.")
    .argument("<id>", "acct_…, bal_…, or a key of the balance")
    .addOption(
      new Option("--reason <reason>", "the reason, which the owner can read")
        .choices(SUSPENSION_REASONS)
        .makeOptionMandatory(),
    )
    .addOption(byOption())
    .addOption(noteOption())
    .action((id, options) => setSuspension(id, options.reason, options, context));
  connected(gateway, "unsuspend")
    .description("Lift a suspension.")
    .argument("<id>", "acct_…, bal_…, or a key of the balance")
    .addOption(
      new Option("--reason <reason>", "lift only the suspension with this reason").choices(
        SUSPENSION_REASONS,
      ),
    )
    .addOption(byOption())
    .addOption(noteOption())
    .action((id, options) => setSuspension(id, options.reason ?? null, options, context, "unsuspend"));
  connected(gateway, "detach")
    .description("Take a claimed balance out of an account; its recovery secret then opens it again.")
    .argument("<account>", "acct_…")
    .argument("<balance>", "bal_…")
    .option("--revoke-keys", "end every key of the balance, not only those created through the claim")
    .action((account, balance, options) => detach(account, balance, options, context));
}

const byOption = () => new Option("--by <name>", "who decided it, for the record (default: admin)");

/** The operator's commands that are one operation of the running gateway each. */
async function credit(
  target: string,
  usd: number,
  options: CreditOptions,
  context: CommandContext,
): Promise<void> {
  const done = await once<CreditedAnswer>("credit", target, usd, options, context);
  const { balance_id, amount_usd, credited_at, idempotency_key } = done;
  show(context, options.json, done, [
    `${balance_id} was credited ${amount_usd} USD at ${credited_at}.`,
    `idempotency key: ${idempotency_key}`,
  ]);
}

/** Takes credit back. */
async function debit(
  target: string,
  usd: number | "all",
  options: CreditOptions,
  context: CommandContext,
): Promise<void> {
  const done = await once<DebitedAnswer>("debit", target, usd, options, context);
  const { balance_id, amount_usd, debited_at, idempotency_key } = done;
  show(context, options.json, done, [
    `${amount_usd} USD were taken back from ${balance_id} at ${debited_at}.`,
    `idempotency key: ${idempotency_key}`,
  ]);
}

/** Without an answer, the message says how to retry without doing it twice. */
async function once<Done>(
  what: "credit" | "debit",
  target: string,
  usd: number | "all",
  options: CreditOptions,
  context: CommandContext,
): Promise<Done> {
  if (!/^(bal_|key_|or-)/.test(target)) {
    throw new CommandFailure(
      EXIT.usage,
      `"${target}" is neither a balance (bal_…) nor a key (key_…)`,
      "`gateway balances` lists balances.",
    );
  }
  const client = adminClient(options, context);
  const id = await keyIdOf(target, client);
  const { note, idempotencyKey = crypto.randomUUID() } = options;
  const kind = id.startsWith("bal_") ? "balance_id" : "key_id";
  const body = { [kind]: id, amount_usd: usd, idempotency_key: idempotencyKey, note };
  return client.post<Done>(`/admin/${what}s`, body).catch((error: unknown) => {
    if (!(error instanceof CommandFailure) || !error.inDoubt) throw error;
    const again = `gateway ${what} ${id} ${usd} --idempotency-key ${idempotencyKey}`;
    throw new CommandFailure(
      error.exitCode,
      error.message,
      `${IN_DOUBT[what]} To be sure, repeat it with its idempotency key, which does it only once: ${again}`,
    );
  });
}

const IN_DOUBT = { credit: "The credit may have been made.", debit: "It may have been taken back." };

interface CreditOptions extends OperationOptions {
  readonly note?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

async function setSuspension(
  id: string,
  reason: string | null,
  { by, note, ...options }: OperationOptions & { readonly by?: string; readonly note?: string },
  context: CommandContext,
  decision: "suspend" | "unsuspend" = "suspend",
): Promise<void> {
  const client = adminClient(options, context);
  const path = `/admin/accounts/${encodeURIComponent(await balanceIdOf(id, client))}/${decision}`;
  const done = await client.post<SuspensionAnswer>(path, { reason: reason ?? undefined, by, note });
  const balances = done.balance_ids.join(", ");
  show(context, options.json, done, [
    done.suspended === null
      ? `${balances}: no longer suspended.`
      : `${balances}: suspended for ${done.suspended} from the next request on.`,
  ]);
}

async function detach(
  account: string,
  balance: string,
  options: OperationOptions & RevokeKeysOption,
  context: CommandContext,
): Promise<void> {
  const path = `/admin/accounts/${encodeURIComponent(account)}/detach`;
  const body = { balance_id: balance, ...revokeKeysIn(options) };
  const done = await adminClient(options, context).post<DetachedAnswer>(path, body);
  show(context, options.json, done, [
    `${balance} belongs to no account: the recovery secret that it was claimed with opens it again.`,
    ...liveKeyLines(done),
  ]);
}

/** Fails when the books do not add up, so that a scheduled run is noticed. */
export async function audit(
  options: OperationOptions & { readonly charges?: boolean | undefined },
  context: CommandContext,
): Promise<void> {
  const client = adminClient(options, context);
  const books = await withProgress(context, (progress) => {
    progress(0, null, "recomputing every balance");
    return client.get<AuditAnswer>("/admin/ledger/audit");
  });
  const charges = options.charges
    ? await withProgress(context, (progress) => recomputeCharges(client, progress))
    : null;
  show(context, options.json, charges === null ? books : { ...books, charges }, [
    ...pairs([
      ["credits", usd(books.credits_nano)],
      ["charges", usd(books.charges_nano)],
      ["held", usd(books.held_nano)],
      ["available", usd(books.available_nano)],
      ["written off", usd(books.write_offs_nano)],
      ["losses", usd(books.losses_nano)],
      ["drift", usd(books.drift_nano)],
    ]),
    ...unanswered([books]),
    ...books.drifts.map(({ account, drift_nano }) => `  ${account} is off by ${usd(drift_nano)}`),
    ...(charges === null ? [] : chargeLines(charges)),
  ]);
  if (books.ok && charges !== null && charges.differing.length > 0)
    throw new CommandFailure(
      EXIT.found,
      `${counted(charges.differing.length, "receipt")} charged something else than tokens at rates`,
      "Copy the data folder before anything else, then report the receipts above.",
    );
  if (books.ok) return;
  throw new CommandFailure(
    EXIT.found,
    `the books are off by ${usd(books.drift_nano)} in ${counted(books.drifts.length, "account")}`,
    "Copy the data folder before anything else, then report the accounts above.",
  );
}

/** "12.5 USD" of nano-dollars written as text, exactly. */
function chargeLines({ receipts, differing }: RecomputedCharges): string[] {
  const outcome = differing.length === 0 ? "all equal" : `${differing.length} differ`;
  return [
    `charges of ${counted(receipts, "receipt")}, recomputed from tokens and rates: ${outcome}`,
    ...differing.map(
      ({ receipt, charged_nano, recomputed_nano }) =>
        `  ${receipt} charged ${usd(charged_nano)}, recomputed ${usd(recomputed_nano)}`,
    ),
  ];
}

function usd(nano: string): string {
  const value = BigInt(nano);
  const [sign, magnitude] = value < 0n ? ["-", -value] : ["", value];
  const decimals = String(magnitude % NANO)
    .padStart(9, "0")
    .replace(/0{1,7}$/, "");
  return `${sign}${magnitude / NANO}.${decimals} USD`;
}

const NANO = 1_000_000_000n;

async function listBalances(
  options: OperationOptions & {
    readonly limit: number;
    readonly below?: number | undefined;
    readonly state?: string | undefined;
  },
  context: CommandContext,
): Promise<void> {
  const { below, state } = options;
  const listing = {
    path: "/admin/balances",
    filters: { below_usd: below?.toString(), state },
    noun: "balances",
    head: ["id", "account", "balance USD", "available", "held", "keys", "price list", "suspended", "created"],
    cells: (row: ListedBalance) => [
      row.id,
      row.account_id,
      row.balance_usd,
      row.available_usd,
      row.held_usd,
      row.live_keys,
      row.price_list,
      row.suspended,
      row.created_at,
    ],
    notes: unanswered,
  };
  await showList<ListedBalance>(listing, adminClient(options, context), options, context);
}

/** What requests of the balance are charged by from now on. */
async function setPriceList(
  target: string,
  name: string,
  options: OperationOptions,
  context: CommandContext,
): Promise<void> {
  const client = adminClient(options, context);
  const id = await balanceIdOf(target, client);
  const price_list = name === "none" ? null : name;
  const balance = await client.patch<BalanceAnswer>(`/admin/balances/${encodeURIComponent(id)}`, {
    price_list,
  });
  const by = price_list === null ? "the models' own prices" : `the price list ${price_list}`;
  show(context, options.json, balance, [`Requests of ${id} are charged by ${by} from now on.`]);
}

/** Below which credit the owner of a balance is notified. */
async function setLowCredit(
  target: string,
  low_credit_usd: number | null,
  options: OperationOptions,
  context: CommandContext,
): Promise<void> {
  const client = adminClient(options, context);
  const id = await balanceIdOf(target, client);
  const path = `/admin/balances/${encodeURIComponent(id)}`;
  const balance = await client.patch<BalanceAnswer>(path, { low_credit_usd });
  show(context, options.json, balance, [lowCreditLine(id, low_credit_usd)]);
}

export const lowCreditLine = (balance: string, below: number | null): string =>
  below === null
    ? `The gateway's own low_credit_usd holds for ${balance}.`
    : below === 0
      ? `The owner of ${balance} is not notified that credit is low.`
      : `The owner of ${balance} is notified when its credit falls below ${below} USD.`;

/** Where a process could not say what its open requests hold. */
const unanswered = (shown: readonly Pick<ListedBalance, "held_at">[]): string[] =>
  shown.some(({ held_at }) => held_at === "all_processes_at_most")
    ? ["A process did not answer: all that it may still spend counts as held."]
    : [];

/** A file with a mistake is refused whole; what the gateway says of it is the failure's message. */
export async function reload(options: OperationOptions, context: CommandContext): Promise<void> {
  const done = await adminClient(options, context).post<ReloadAnswer>("/admin/reload");
  const waiting = done.needs_restart.map((field) => `\`${field}\` was changed, and needs a restart.`);
  show(context, options.json, done, ["The configuration was read again and is in force.", ...waiting]);
}

export async function listHosts(options: OperationOptions, context: CommandContext): Promise<void> {
  const { data } = await adminClient(options, context).get<List<HostAnswer>>("/admin/hosts");
  show(context, options.json, data, [
    ...table(
      ["host", "state", "in flight", "limit", "waiting", "routes", "speaks", "key", "address"],
      data.map((host) => [
        host.id,
        host.state,
        host.in_flight,
        mostAtOnce(host),
        host.waiting,
        usableRoutes(host),
        host.speaks.join(", "),
        keysOf(host),
        host.base_url,
      ]),
    ),
    ...data.flatMap(failures),
    ...data.flatMap(unusableKeys),
  ]);
}

/** For each of its models that has failed: how often, and the last reason. */
function failures({ id, routes }: HostAnswer): string[] {
  const models = new Map(routes.map((route) => [route.host_model, route]));
  return [...models.values()].flatMap(({ host_model, served, failed, last_failure }) =>
    last_failure === null
      ? []
      : [
          `${id}, ${printable(host_model)}: ${failed} of ${served + failed} failed, last at ${last_failure.at}: ${printable(last_failure.detail)}`,
        ],
  );
}

function keysOf({ has_api_key, keys }: HostAnswer): string {
  if (keys.length === 0) return has_api_key ? "yes" : "no";
  return `${keys.filter(({ state }) => state === "usable").length} of ${keys.length} usable`;
}

function unusableKeys({ id, keys }: HostAnswer): string[] {
  return keys.flatMap(({ name, state, refused }) =>
    state === "usable"
      ? []
      : [
          refused === null
            ? `${id}, key ${printable(name)}: resting, at a limit of the host`
            : `${id}, key ${printable(name)}: refused by the host at ${refused.at}: ${printable(refused.detail)}`,
        ],
  );
}

function mostAtOnce(host: HostAnswer): string {
  const limit = limitInForce(host);
  if (limit === null) return "no limit";
  return host.cut_workers > 0 ? `${limit}, overloaded lately` : `${limit}`;
}

function usableRoutes({ routes }: HostAnswer): string {
  const usable = routes.filter((route) => route.usable && route.resting_workers === 0).length;
  return usable === routes.length ? `${usable}` : `${usable} of ${routes.length}`;
}
