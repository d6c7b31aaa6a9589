import type { Command } from "@commander-js/extra-typings";
import type { BalanceAnswer, ListedBalance } from "../api/admin.ts";
import type { KeyAnswer } from "../api/keys.ts";
import type { OwnedReceiptAnswer } from "../api/receipts.ts";
import { DAY_MS } from "../units/clock.ts";
import { csvLine } from "../units/csv.ts";
import { decimalUsd, type NanoUsd, nanoFromUsd } from "../units/usd.ts";
import { connected, moment } from "./arguments.ts";
import { adminClient, type Client, path } from "./client.ts";
import { type CommandContext, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { balanceIdOf } from "./named.ts";
import { type Progress, withProgress } from "./progress.ts";

/**
 * What each key used of each model, added up from receipts to the nano-dollar, for bills: of one balance, or
 * of all. Reads every receipt from `until` back to `since`, the present month's unless named.
 */
export function addUsage(gateway: Command, context: CommandContext): void {
  connected(gateway, "usage")
    .description("Sum up each key's use of each model from receipts, for billing.")
    .argument("[balance]", "id of a balance, bal_… (default: all balances)")
    .option("--since <time>", "a UTC day or a time (default: the first of the month)", moment)
    .option("--until <time>", "the end, exclusive (default: now)", moment)
    .option("--tag <name>", "a line for each value of a tag of `x-gateway-tags`, such as customer")
    .option("--csv", "as comma-separated values")
    .action(async (named, { since, until, tag, csv, json, ...options }) => {
      const range = rangeOf(since, until);
      const client = adminClient(options, context);
      const lines = await withProgress(context, async (progress) => {
        const book = new UsageBook(tag ?? null);
        for (const balance of await balancesOf(named, client, progress))
          await addBalance(balance, range, book, client, progress);
        return book.lines();
      });
      const cells = lines.map(({ cost_usd, ...line }) => [...Object.values(line), cost_usd]);
      const columns = tag === undefined ? COLUMNS : COLUMNS.toSpliced(AFTER_MODEL, 0, "tag");
      const shown = { since: range.since.toISOString(), until: range.until.toISOString(), data: lines };
      if (csv === true) context.out([columns, ...cells].map(csvLine).join(""));
      else show(context, json, shown, table(columns, cells));
    });
}

interface Range {
  readonly since: Date;
  readonly until: Date;
}

function rangeOf(named: Date | undefined, until = new Date()): Range {
  const since = named ?? new Date(Date.UTC(until.getUTCFullYear(), until.getUTCMonth()));
  if (since < until) return { since, until };
  const next = "Both are UTC unless they name a zone.";
  throw new CommandFailure(EXIT.usage, "--since must come before --until", next);
}

const COLUMNS = [
  "balance_id",
  "email",
  "wallet",
  "key_id",
  "key_name",
  "model",
  "requests",
  "failed",
  "input",
  "cache_read",
  "cache_write",
  "output",
  "cost_usd",
];

const AFTER_MODEL = COLUMNS.indexOf("model") + 1;

type Owned = Pick<BalanceAnswer, "id" | "email" | "wallet">;

/** The one that is named, or all. */
async function balancesOf(named: string | undefined, client: Client, progress: Progress): Promise<Owned[]> {
  if (named !== undefined)
    return [await client.get<BalanceAnswer>(path`/admin/balances/${await balanceIdOf(named, client)}`)];
  const balances: Owned[] = [];
  for await (const rows of client.pages<ListedBalance>("/admin/balances")) {
    for (const { id, email, wallet } of rows) balances.push({ id, email, wallet });
    progress(balances.length, null, "balances");
  }
  return balances;
}

async function addBalance(
  balance: Owned,
  { since, until }: Range,
  book: UsageBook,
  client: Client,
  progress: Progress,
): Promise<void> {
  book.owners.set(balance.id, balance);
  receipts: for await (const receipts of client.pages<OwnedReceiptAnswer>(
    path`/admin/balances/${balance.id}/receipts`,
  )) {
    for (const receipt of receipts) {
      const at = Date.parse(receipt.created_at);
      if (at >= since.getTime()) {
        if (at < until.getTime()) book.add(receipt);
      } else if (receipt.state !== "recovered" && at < since.getTime() - LATE_MS) break receipts;
    }
    progress(book.receipts, null, "receipts");
  }
  await nameKeys(balance.id, book, client);
}

/**
 * Receipts come in the order in which requests ended, the last one first. What began so long before `since`
 * has behind it only what began before `since` too; a recovered receipt was written by a later start and
 * tells nothing of its neighbours.
 */
const LATE_MS = DAY_MS;

/** Names keys that still exist: keys that ended long ago may be removed, while their receipts are kept. */
async function nameKeys(balance: string, book: UsageBook, client: Client): Promise<void> {
  const owned = book.keysOf(balance);
  if (owned.size === 0) return;
  for await (const keys of client.pages<KeyAnswer>(path`/admin/balances/${balance}/keys`)) {
    for (const { id, name } of keys) if (owned.delete(id)) book.keyNames.set(id, name);
    if (owned.size === 0) return;
  }
}

class UsageBook {
  receipts = 0;
  readonly owners = new Map<string, Owned>();
  /** Null for a key without a name. */
  readonly keyNames = new Map<string, string | null>();
  private readonly sums = new Map<string, UsageTotal>();

  constructor(private readonly tag: string | null) {}

  add(receipt: OwnedReceiptAnswer): void {
    const { balance_id, key_id, model, model_requested, state, tokens, cost_usd, tags = {} } = receipt;
    this.receipts += 1;
    const served = model ?? model_requested ?? "";
    const tag = this.tag === null ? {} : { tag: Object.hasOwn(tags, this.tag) ? tags[this.tag]! : null };
    const name = JSON.stringify([balance_id, key_id, served, tag.tag]);
    const sum = this.sums.getOrInsertComputed(name, () => emptySum(balance_id, key_id, served, tag));
    sum.requests += 1;
    if (state === "failed") sum.failed += 1;
    sum.input += tokens.input;
    sum.cache_read += tokens.cache_read;
    sum.cache_write += tokens.cache_write;
    sum.output += tokens.output;
    sum.nano += nanoFromUsd(cost_usd) ?? 0;
  }

  /** By balance, then key, then model. */
  lines() {
    return [...this.sums.values()]
      .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
      .map(({ balance_id, key_id, nano, ...line }) => ({
        balance_id,
        email: this.owners.get(balance_id)?.email ?? null,
        wallet: this.owners.get(balance_id)?.wallet ?? null,
        key_id,
        key_name: this.keyNames.get(key_id) ?? null,
        ...line,
        cost_usd: decimalUsd(nano as NanoUsd),
      }));
  }

  keysOf(balance: string): Set<string> {
    const sums = [...this.sums.values()].filter(({ balance_id }) => balance_id === balance);
    return new Set(sums.map(({ key_id }) => key_id));
  }
}

const emptySum = (balance_id: string, key_id: string, model: string, tag: { tag?: string | null }) => ({
  balance_id,
  key_id,
  model,
  ...tag,
  requests: 0,
  failed: 0,
  input: 0,
  cache_read: 0,
  cache_write: 0,
  output: 0,
  nano: 0,
});
type UsageTotal = ReturnType<typeof emptySum>;

const nameOf = ({ balance_id, key_id, model, tag }: UsageTotal): string =>
  `${balance_id} ${key_id} ${model} ${tag ?? ""}`;
