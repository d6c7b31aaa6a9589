import type { OwnedReceiptAnswer, RotatedKeyAnswer } from "../api/receipts.ts";
import { type JwkSet, type Verified, verifyCompact } from "../generation/signing/jws.ts";
import { adminClient } from "./client.ts";
import { gatewayUrl, type OperationOptions } from "./connection.ts";
import { type CommandContext, members, readText, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { whyUnanswered } from "./unanswered.ts";

/** `gateway receipt rcpt_…`: what became of the request that a user reports. */
export async function showReceipt(
  id: string,
  options: OperationOptions,
  context: CommandContext,
): Promise<void> {
  const path = `/admin/receipts/${encodeURIComponent(id)}`;
  const receipt = await adminClient(options, context).get<OwnedReceiptAnswer>(path);
  show(context, options.json, receipt, members(receipt));
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
