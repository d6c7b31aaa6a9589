import type { KeyBlock } from "../../customers/keys/keyring.ts";
import type { CapShortfall, Shortfall } from "../../ledger/shortfall.ts";
import { operatorAt } from "../../units/contact.ts";
import { bookkeepingDown } from "../../units/errors/bookkeeping.ts";
import type { ErrorCode } from "../../units/errors/codes.ts";
import { type Refusal, refuse, sentence } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import { formatUsd, type NanoUsd } from "../../units/usd.ts";
import type { GenerationSettings } from "../deps.ts";
import { invalidKey } from "../refusals.ts";
import { capName } from "../shortfall.ts";

/**
 * The error that ends a stream whose hold can grow no further. It names the limit that stopped it, and what the
 * tokens delivered cost, because a client that pays by itself must not add credit for a cap or a revoked key.
 */
export interface StreamStop {
  readonly code: ErrorCode;
  refusal(charged: NanoUsd): Refusal;
}

/** `block` is the key's state where `short` says that the key may not spend. */
export function streamStop(
  short: Shortfall | null,
  block: KeyBlock | null,
  settings: StopSettings,
): StreamStop {
  const { code, message, details } = cause(short, block, settings);
  const refusal = (charged: NanoUsd) =>
    refuse(
      code,
      `The answer was stopped. ${sentence(message)} The tokens delivered cost ${formatUsd(charged)}.`,
      details,
    );
  return { code, refusal };
}

type StopSettings = Pick<GenerationSettings, "contact" | "dashboardUrl" | "sellsCredit">;

function cause(short: Shortfall | null, block: KeyBlock | null, settings: StopSettings): Refusal {
  if (block === "ended") return invalidKey(settings.dashboardUrl);
  if (block !== null) return suspension(block, settings.contact);
  switch (short?.what) {
    case "daily_limit_usd":
    case "monthly_limit_usd":
    case "budget":
    case "run":
      return refuse("budget_exhausted", capMessage(short, settings));
    case "balance":
      return refuse(
        "insufficient_credit",
        `The balance does not cover the rest of it: ${formatUsd(short.available)} is left, without what open requests hold. ${creditAdvice(settings)}`,
      );
    default:
      return bookkeepingDown();
  }
}

function capMessage(short: CapShortfall, { dashboardUrl }: StopSettings): string {
  const { what, limit, spent, held } = short;
  const advice =
    what === "run"
      ? "Start a new run, or let an owner raise the limit of this one."
      : `Raise the cap in the dashboard: ${dashboardUrl}`;
  return `The ${capName(short)} caps spending at ${formatUsd(limit)}: ${formatUsd(spent)} is used, and ${formatUsd(held)} is held by open requests, this one included. ${advice}`;
}

const creditAdvice = ({ sellsCredit, contact, dashboardUrl }: StopSettings): string =>
  sellsCredit
    ? `Add credit at ${dashboardUrl} and send the request again.`
    : `Credit is added by ${operatorAt(contact)}; then send the request again.`;
