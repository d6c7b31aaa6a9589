import type {
  AuditAnswer,
  CreditedAnswer,
  DebitedAnswer,
  DetachedAnswer,
  HostAnswer,
  ListedBalance,
  ReloadAnswer,
  SuspensionAnswer,
} from "../api/admin.ts";
import type { List } from "../api/answers.ts";
import { limitInForce } from "../api/host-limit.ts";
import { adminClient, type Client } from "./client.ts";
import type { OperationOptions } from "./connection.ts";
import { andMore, type CommandContext, counted, pairs, printable, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { liveKeyLines, type RevokeKeysOption, revokeKeysIn } from "./live-keys.ts";
import { withProgress } from "./progress.ts";

/** The operator's commands that are one operation of the running gateway each. */
export async function credit(
  target: string,
  usd: number,
  options: CreditOptions,
  place: CommandContext,
): Promise<void> {
  const done = await once<CreditedAnswer>("credit", target, usd, options, place);
  const { balance_id, amount_usd, credited_at, idempotency_key } = done;
  show(place, options.json, done, [
    `${balance_id} was credited ${amount_usd} USD at ${credited_at}.`,
    `idempotency key: ${idempotency_key}`,
  ]);
}

/** Takes credit back. */
export async function debit(
  target: string,
  usd: number | "all",
  options: CreditOptions,
  place: CommandContext,
): Promise<void> {
  const done = await once<DebitedAnswer>("debit", target, usd, options, place);
  const { balance_id, amount_usd, debited_at, idempotency_key } = done;
  show(place, options.json, done, [
    `${amount_usd} USD were taken back from ${balance_id} at ${debited_at}.`,
    `idempotency key: ${idempotency_key}`,
  ]);
}

/** Whoever gets no answer is told how to ask again without doing it twice. */
async function once<Done>(
  what: "credit" | "debit",
  target: string,
  usd: number | "all",
  options: CreditOptions,
  place: CommandContext,
): Promise<Done> {
  const kind = target.startsWith("bal_") ? "balance_id" : target.startsWith("key_") ? "key_id" : null;
  if (kind === null) {
    throw new CommandFailure(
      EXIT.usage,
      `"${target}" is neither a balance (bal_…) nor a key (key_…)`,
      "`gateway balances` lists balances.",
    );
  }
  const { note, idempotencyKey = crypto.randomUUID() } = options;
  const body = { [kind]: target, amount_usd: usd, idempotency_key: idempotencyKey, note };
  const client = adminClient(options, place);
  return client.post<Done>(`/admin/${what}s`, body).catch((error: unknown) => {
    if (!(error instanceof CommandFailure) || !error.inDoubt) throw error;
    const again = `gateway ${what} ${target} ${usd} --idempotency-key ${idempotencyKey}`;
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

export async function setSuspension(
  id: string,
  reason: string | null,
  { by, note, ...options }: OperationOptions & { readonly by?: string; readonly note?: string },
  place: CommandContext,
  decision: "suspend" | "unsuspend" = "suspend",
): Promise<void> {
  const client = adminClient(options, place);
  const path = `/admin/accounts/${encodeURIComponent(id)}/${decision}`;
  const done = await client.post<SuspensionAnswer>(path, { reason: reason ?? undefined, by, note });
  const balances = done.balance_ids.join(", ");
  show(place, options.json, done, [
    done.suspended === null
      ? `${balances}: no longer suspended.`
      : `${balances}: suspended for ${done.suspended} from the next request on.`,
  ]);
}

export async function detach(
  account: string,
  balance: string,
  options: OperationOptions & RevokeKeysOption,
  place: CommandContext,
): Promise<void> {
  const path = `/admin/accounts/${encodeURIComponent(account)}/detach`;
  const body = { balance_id: balance, ...revokeKeysIn(options) };
  const done = await adminClient(options, place).post<DetachedAnswer>(path, body);
  show(place, options.json, done, [
    `${balance} belongs to no account: the recovery secret that it was claimed with opens it again.`,
    ...liveKeyLines(done),
  ]);
}

/** Fails when the books do not add up, so that a scheduled run is noticed. */
export async function audit(options: OperationOptions, place: CommandContext): Promise<void> {
  const client = adminClient(options, place);
  const books = await withProgress(place, (progress) => {
    progress(0, null, "recomputing every balance");
    return client.get<AuditAnswer>("/admin/ledger/audit");
  });
  show(place, options.json, books, [
    ...pairs([
      ["credits", usd(books.credits_nano)],
      ["charges", usd(books.charges_nano)],
      ["held", usd(books.held_nano)],
      ["available", usd(books.available_nano)],
      ["written off", usd(books.write_offs_nano)],
      ["losses", usd(books.losses_nano)],
      ["drift", usd(books.drift_nano)],
    ]),
    ...onePart([books]),
    ...books.drifts.map(({ account, drift_nano }) => `  ${account} is off by ${usd(drift_nano)}`),
  ]);
  if (books.ok) return;
  throw new CommandFailure(
    EXIT.found,
    `the books are off by ${usd(books.drift_nano)} in ${counted(books.drifts.length, "account")}`,
    "Copy the data folder before anything else, then report the accounts above.",
  );
}

/** "12.5 USD" of nano-dollars written as text, exactly. */
function usd(nano: string): string {
  const value = BigInt(nano);
  const [sign, magnitude] = value < 0n ? ["-", -value] : ["", value];
  const decimals = String(magnitude % NANO)
    .padStart(9, "0")
    .replace(/0{1,7}$/, "");
  return `${sign}${magnitude / NANO}.${decimals} USD`;
}

const NANO = 1_000_000_000n;

export async function listBalances(
  options: OperationOptions & { readonly limit: number; readonly below?: number | undefined },
  place: CommandContext,
): Promise<void> {
  const client = adminClient(options, place);
  const { below, limit } = options;
  const { rows, more } = await withProgress(place, (progress) => {
    const onPage = (count: number) => progress(count, null, "balances");
    return below === undefined
      ? client.all<ListedBalance>("/admin/balances", limit, onPage)
      : lowBalances(client, below, limit, onPage);
  });
  show(place, options.json, { data: rows, has_more: more }, [
    ...table(
      ["id", "account", "balance USD", "available", "held", "keys", "suspended", "created"],
      rows.map((row) => [
        row.id,
        row.account_id,
        row.balance_usd,
        row.available_usd,
        row.held_usd,
        row.live_keys,
        row.suspended,
        row.created_at,
      ]),
    ),
    ...onePart(rows),
    ...andMore(more, options),
  ]);
}

/** Where another process could not say what its open requests hold. */
const onePart = (shown: readonly Pick<ListedBalance, "held_at">[]): string[] =>
  shown.some(({ held_at }) => held_at === "this_process")
    ? ["Held and available count the open requests of one process only: another did not answer."]
    : [];

/** Those that were credited and have so little left. */
async function lowBalances(client: Client, below: number, most: number, onPage: (rows: number) => void) {
  const low: ListedBalance[] = [];
  let read = 0;
  for await (const page of client.pages<ListedBalance>("/admin/balances")) {
    low.push(...page.filter((row) => row.credited_usd > 0 && row.available_usd < below));
    onPage((read += page.length));
    if (low.length > most) break;
  }
  return { rows: low.slice(0, most), more: low.length > most };
}

/** A file with a mistake is refused whole; what the gateway says of it is the failure's message. */
export async function reload(options: OperationOptions, place: CommandContext): Promise<void> {
  const done = await adminClient(options, place).post<ReloadAnswer>("/admin/reload");
  const waiting = done.needs_restart.map((field) => `\`${field}\` was changed, and needs a restart.`);
  show(place, options.json, done, ["The configuration was read again and is in force.", ...waiting]);
}

export async function listHosts(options: OperationOptions, place: CommandContext): Promise<void> {
  const { data } = await adminClient(options, place).get<List<HostAnswer>>("/admin/hosts");
  show(place, options.json, data, [
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
        host.has_api_key ? "yes" : "no",
        host.base_url,
      ]),
    ),
    ...data.flatMap(failures),
  ]);
}

/** Of each of its models that has failed, how often and why it did last. */
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

function mostAtOnce(host: HostAnswer): string {
  const limit = limitInForce(host);
  if (limit === null) return "no limit";
  return host.cut_workers > 0 ? `${limit}, overloaded lately` : `${limit}`;
}

function usableRoutes({ routes }: HostAnswer): string {
  const usable = routes.filter((route) => route.usable && route.resting_workers === 0).length;
  return usable === routes.length ? `${usable}` : `${usable} of ${routes.length}`;
}
