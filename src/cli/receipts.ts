import { Argument, type Command, Option } from "@commander-js/extra-typings";
import {
  LISTED_STATES,
  type OwnedReceiptAnswer,
  type ReceiptAnswer,
  type RotatedKeyAnswer,
} from "../api/receipts.ts";
import { PERIODS, type Period } from "../api/usage.ts";
import { type JwkSet, type Verified, verifyCompact } from "../generation/signing/jws.ts";
import { ERROR_CODES } from "../units/errors/codes.ts";
import {
  amountUsd,
  connected,
  jsonOption,
  limitOption,
  moment,
  ownerOption,
  urlOption,
} from "./arguments.ts";
import { adminClient, type OwnerOptions, ownerClient } from "./client.ts";
import { gatewayUrl, type OperationOptions } from "./connection.ts";
import { whyUnanswered } from "./connection-errors.ts";
import { type CommandContext, members, readText, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { showList } from "./listing.ts";
import { MARGINS_BY, showMargins } from "./margins.ts";
import { showSpending } from "./spending.ts";
import { showUsage } from "./usage.ts";

export function addReceipts(gateway: Command, context: CommandContext): void {
  const receipts = gateway
    .command("receipt")
    .description("Show the receipt of a request, or verify a signed one.") as Command;
  connected(receipts, "show", { isDefault: true })
    .description("Show the receipt of a request; `gateway receipt rcpt_…` is the same.")
    .argument("<receipt>", "rcpt_…, from the header x-gateway-receipt")
    .addOption(ownerOption())
    .action((id, options) => showReceipt(id, options, context));
  receipts
    .command("verify")
    .description("Verify a signed receipt; exit code 1 if it is not what the gateway signed.")
    .argument(
      "<file>",
      "the answer of GET /v1/receipts/{id} with Accept: application/jose; - for standard input",
    )
    .option("--jwks <address or file>", "the issuer's keys (default: /.well-known/jwks.json of the gateway)")
    .addOption(urlOption())
    .addOption(jsonOption())
    .action((file, options) => verifyReceipt(file, options, context));
  connected(receipts, "rotate-key")
    .description("Sign receipts with a new key; earlier keys still verify what they signed.")
    .action((options) => rotateSigningKey(options, context));
  connected(gateway, "receipts")
    .description("List receipts, newest first, of everybody, of a balance, or of --owner.")
    .addOption(ownerOption())
    .option("--balance <id>", "only of this balance, bal_…")
    .option("--key <id>", "only of this key, key_…")
    .option("--model <id>", "only those that this model served")
    .option("--host <id>", "only those that this host served")
    .addOption(new Option("--state <state>", "only in this state").choices(LISTED_STATES))
    .addOption(new Option("--error <code>", "only those that ended with this error").choices(ERROR_CODES))
    .option("--min-cost-usd <usd>", "only those that cost at least this", amountUsd)
    .option("--since <time>", "a UTC day or a time", moment)
    .option("--until <time>", "the end, exclusive", moment)
    .addOption(limitOption())
    .action((options) => listReceipts(options, context));
  connected(gateway, "spending")
    .description("List the keys that spent most, of everybody or of --owner.")
    .addArgument(new Argument("[period]", "the period; days are UTC").choices(PERIODS).default("week"))
    .addOption(ownerOption())
    .addOption(limitOption())
    .action((period, options) => showSpending(period as Period, options, context));
  connected(gateway, "usage")
    .description("Sum up each key's use of each model from receipts, for billing.")
    .argument("[balance]", "id of a balance, bal_… (default: all balances)")
    .option("--since <time>", "a UTC day or a time (default: the first of the month)", moment)
    .option("--until <time>", "the end, exclusive (default: now)", moment)
    .option("--tag <name>", "a line for each value of a tag of `x-gateway-tags`, such as customer")
    .option("--csv", "as comma-separated values")
    .action((balance, options) => showUsage(balance, options, context));
  connected(gateway, "margins")
    .description("Show what was charged less what hosts charge you, the lowest margin first.")
    .addOption(new Option("--by <what>", "of which each has a line").choices(MARGINS_BY).default("model"))
    .addOption(new Option("--period <period>", "up to now").choices(PERIODS).default("week"))
    .action((options) => showMargins(options, context));
}

/** `gateway receipt rcpt_…`: what became of the request that a user reports. */
async function showReceipt(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const { client, as } = readerOf(options, context);
  const path = `/${as}/receipts/${encodeURIComponent(id)}`;
  const receipt = await client.get<ReceiptAnswer | OwnedReceiptAnswer>(path);
  show(context, options.json, receipt, members(receipt));
}

/** Receipts that match, newest first: an owner's, or everybody's. */
async function listReceipts(
  { balance, key, minCostUsd, since, until, ...options }: ReceiptOptions,
  context: CommandContext,
): Promise<void> {
  const { client, as } = readerOf({ ...options, balance }, context);
  const { model, host, state, error } = options;
  const filters = {
    balance_id: as === "admin" ? balance : undefined,
    key_id: key,
    model,
    host,
    state,
    error,
    min_cost_usd: minCostUsd?.toString(),
    since: since?.toISOString(),
    until: until?.toISOString(),
  };
  const listing = {
    path: `/${as}/receipts`,
    filters,
    noun: "receipts",
    head: ["id", "created", "key", "model", "host", "state", "error", "cost USD", "first token ms"],
    cells: (row: ReceiptAnswer) => [
      row.id,
      row.created_at,
      row.key_id,
      row.model ?? row.model_requested,
      row.host,
      row.state,
      row.error_code,
      row.cost_usd,
      row.first_token_ms,
    ],
  };
  await showList<ReceiptAnswer>(listing, client, options, context);
}

interface ReceiptOptions extends OwnerOptions {
  readonly limit: number;
  readonly key?: string | undefined;
  readonly model?: string | undefined;
  readonly host?: string | undefined;
  readonly state?: string | undefined;
  readonly error?: string | undefined;
  readonly minCostUsd?: number | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
}

/** The owner that was named, or the operator. */
function readerOf(options: OwnerOptions, context: CommandContext) {
  const owner = ownerClient(options, context);
  return owner === null
    ? ({ client: adminClient(options, context), as: "admin" } as const)
    : ({ client: owner, as: "v1" } as const);
}

/**
 * Verifies a signed receipt, by the keys that the caller names: those that the receipt itself points to would
 * verify whatever their owner signed.
 */
async function verifyReceipt(
  file: string,
  options: Pick<OperationOptions, "url" | "json"> & { readonly jwks?: string | undefined },
  context: CommandContext,
): Promise<void> {
  const keysAt = options.jwks ?? `${gatewayUrl(options, context)}/.well-known/jwks.json`;
  const keys = parsedKeys(
    /^https?:\/\//.test(keysAt) ? await fetched(keysAt, context) : readText(keysAt),
    keysAt,
  );
  const verified = verifyCompact((file === "-" ? await context.input() : readText(file)).trim(), keys);
  if (typeof verified === "string")
    throw new CommandFailure(EXIT.found, `the receipt is not valid: ${verified}`);
  show(context, options.json, { valid: true, ...verified }, [
    validLine(verified, keysAt),
    ...members(verified.payload),
  ]);
}

const validLine = ({ kid }: Verified, keysAt: string): string =>
  `valid: signed with the key ${kid} of ${keysAt}`;

/** A new key signs from now on. */
async function rotateSigningKey(options: OperationOptions, context: CommandContext): Promise<void> {
  const key = await adminClient(options, context).post<RotatedKeyAnswer>("/admin/signing-keys");
  show(context, options.json, key, [
    `Receipts are signed with the key ${key.kid} from now on.`,
    "What earlier keys signed can still be verified.",
  ]);
}

async function fetched(url: string, context: CommandContext): Promise<string> {
  try {
    const response = await context.fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
    if (response.ok) return await response.text();
    throw new Error(`it answered ${response.status}`);
  } catch (error) {
    throw new CommandFailure(
      EXIT.unreachable,
      `no keys from ${url}: ${whyUnanswered(error)}`,
      "Receipts are signed where the configuration says receipts: { sign: true }; --jwks names the keys' address or a file.",
    );
  }
}

const ANSWER_MS = 30_000;

function parsedKeys(text: string, from: string): JwkSet {
  try {
    const { keys } = JSON.parse(text);
    if (Array.isArray(keys)) return { keys };
  } catch {
    // Printed below.
  }
  throw new CommandFailure(EXIT.usage, `${from} holds no JSON Web Key Set: {"keys": […]}`);
}
