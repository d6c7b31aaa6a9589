import { type Command, Option } from "@commander-js/extra-typings";
import {
  LISTED_STATES,
  type OwnedReceiptAnswer,
  type ReceiptAnswer,
  type RotatedKeyAnswer,
} from "../api/receipts.ts";
import { type JwkSet, verifyCompact } from "../generation/signing/jws.ts";
import { ERROR_CODES } from "../units/errors/codes.ts";
import { asEither, asOperator, pagesAt } from "./actions.ts";
import {
  amountUsd,
  connected,
  groupOf,
  jsonOption,
  limitOption,
  owned,
  sinceOption,
  untilOption,
  urlOption,
} from "./arguments.ts";
import { path } from "./client.ts";
import { type ConnectionOptions, gatewayUrl } from "./connection.ts";
import { whyUnanswered } from "./connection-errors.ts";
import { type CommandContext, members, readText, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

export function addReceipts(gateway: Command, context: CommandContext): void {
  const receipts = groupOf(gateway, "receipt", "Show the receipt of a request, or verify a signed one.");
  owned(receipts, "show", { isDefault: true })
    .description("Show the receipt of a request; `gateway receipt rcpt_…` is the same.")
    .argument("<receipt>", "rcpt_…, from the header x-gateway-receipt")
    .action(
      asEither(context, async (client, id) => {
        const at = path`/${client.as}/receipts/${id}`;
        const receipt = await client.get<ReceiptAnswer | OwnedReceiptAnswer>(at);
        return [receipt, members(receipt)];
      }),
    );
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
    .action(
      asOperator(context, async (client) => {
        const key = await client.post<RotatedKeyAnswer>("/admin/signing-keys");
        const lines = [
          `Receipts are signed with the key ${key.kid} from now on.`,
          "What earlier keys signed can still be verified.",
        ];
        return [key, lines];
      }),
    );
  addList(gateway, context);
}

/** Receipts that match, newest first: an owner's, or everybody's. */
function addList(gateway: Command, context: CommandContext): void {
  owned(gateway, "receipts")
    .description("List receipts, newest first, of everybody, of a balance, or of --owner.")
    .option("--balance <id>", "only of this balance, bal_…")
    .option("--key <id>", "only of this key, key_…")
    .option("--model <id>", "only those that this model served")
    .option("--host <id>", "only those that this host served")
    .addOption(new Option("--state <state>", "only in this state").choices(LISTED_STATES))
    .addOption(new Option("--error <code>", "only those that ended with this error").choices(ERROR_CODES))
    .option("--min-cost-usd <usd>", "only those that cost at least this", amountUsd)
    .addOption(sinceOption())
    .addOption(untilOption())
    .addOption(limitOption())
    .action(
      asEither(context, (client, options) =>
        pagesAt<ReceiptAnswer>(client, context, options, {
          path: `/${client.as}/receipts`,
          filters: {
            balance_id: client.as === "admin" ? options.balance : undefined,
            key_id: options.key,
            model: options.model,
            host: options.host,
            state: options.state,
            error: options.error,
            min_cost_usd: options.minCostUsd?.toString(),
            since: options.since?.toISOString(),
            until: options.until?.toISOString(),
          },
          noun: "receipts",
          columns: COLUMNS,
        }),
      ),
    );
}

const COLUMNS = {
  id: "id",
  created: "created_at",
  key: "key_id",
  model: ({ model, model_requested }: ReceiptAnswer) => model ?? model_requested,
  host: "host",
  state: "state",
  error: "error_code",
  "cost USD": "cost_usd",
  "first token ms": "first_token_ms",
} as const;

/**
 * Verifies a signed receipt, by the keys that the caller names: those that the receipt itself points to would
 * verify whatever their owner signed.
 */
async function verifyReceipt(
  file: string,
  options: ConnectionOptions & { readonly json: boolean; readonly jwks?: string | undefined },
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
    `valid: signed with the key ${verified.kid} of ${keysAt}`,
    ...members(verified.payload),
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
