import type { Command } from "@commander-js/extra-typings";
import type { AuditAnswer } from "../api/admin.ts";
import { formatUsd } from "../units/usd.ts";
import { asOperator } from "./actions.ts";
import { connected } from "./arguments.ts";
import { unanswered } from "./balances.ts";
import { type RecomputedCharges, recomputeCharges } from "./charges.ts";
import { type CommandContext, counted, pairs } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { withProgress } from "./progress.ts";

/** Fails when the books do not add up, so that a scheduled run is noticed. */
export function addAudit(gateway: Command, context: CommandContext): void {
  connected(gateway, "audit")
    .description("Recompute every balance from its entries; exit code 1 if one does not add up.")
    .option("--charges", "also recompute what each receipt charged, from its tokens and rates")
    .action(
      asOperator(context, async (client, options) => {
        const books = await withProgress(context, (progress) => {
          progress(0, null, "recomputing every balance");
          return client.get<AuditAnswer>("/admin/ledger/audit");
        });
        const charges = options.charges
          ? await withProgress(context, (progress) => recomputeCharges(client, progress))
          : null;
        return [
          charges === null ? books : { ...books, charges },
          [...bookLines(books), ...(charges === null ? [] : chargeLines(charges))],
          whatIsOff(books, charges),
        ];
      }),
    );
}

const bookLines = (books: AuditAnswer): string[] => [
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
];

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

function whatIsOff(books: AuditAnswer, charges: RecomputedCharges | null): CommandFailure | null {
  const differing = charges?.differing.length ?? 0;
  if (books.ok && differing === 0) return null;
  const [what, where] = books.ok
    ? [`${counted(differing, "receipt")} charged something else than tokens at rates`, "receipts"]
    : [
        `the books are off by ${usd(books.drift_nano)} in ${counted(books.drifts.length, "account")}`,
        "accounts",
      ];
  const next = `Copy the data folder before anything else, then report the ${where} above.`;
  return new CommandFailure(EXIT.found, what, next);
}

/** "12.50 USD", exactly. */
const usd = (nano: string): string => `${formatUsd(BigInt(nano)).replace("$", "")} USD`;
