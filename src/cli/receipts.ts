import type { OwnedReceiptAnswer, ReceiptAnswer, RotatedKeyAnswer } from "../api/receipts.ts";
import { type JwkSet, type Verified, verifyCompact } from "../generation/signing/jws.ts";
import { adminClient, type OwnerOptions, ownerClient } from "./client.ts";
import { gatewayUrl, type OperationOptions } from "./connection.ts";
import { type CommandContext, members, readText, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { showList } from "./listing.ts";
import { whyUnanswered } from "./unanswered.ts";

/** `gateway receipt rcpt_…`: what became of the request that a user reports. */
export async function showReceipt(id: string, options: OwnerOptions, context: CommandContext): Promise<void> {
  const { client, as } = readerOf(options, context);
  const path = `/${as}/receipts/${encodeURIComponent(id)}`;
  const receipt = await client.get<ReceiptAnswer | OwnedReceiptAnswer>(path);
  show(context, options.json, receipt, members(receipt));
}

/** Receipts that match, newest first: an owner's, or everybody's. */
export async function listReceipts(
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
export async function verifyReceipt(
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
export async function rotateSigningKey(options: OperationOptions, context: CommandContext): Promise<void> {
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
