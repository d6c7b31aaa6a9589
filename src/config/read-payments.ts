import type { Address, X402Network } from "../rails/x402/network.ts";
import { type NanoUsd, nanoFromUsd } from "../units/usd.ts";
import { readAddress } from "./address.ts";
import type { PaymentsConfig } from "./config.ts";
import { DEFAULTS } from "./defaults.ts";
import type { Path, ReportProblem } from "./problem.ts";
import type { PaymentsFile } from "./schema.ts";
import { describe } from "./validate.ts";

/** The block `payments`, checked and complete; null where the file has none. */
export function readPayments(rows: PaymentsFile | undefined, report: ReportProblem): PaymentsConfig | null {
  if (rows === undefined) return null;
  const { x402 = [], stripe, sanctions = {}, inline = {} } = rows;
  if (x402.length === 0 && stripe === undefined)
    report(["payments"], "neither", "x402, stripe, or both: otherwise nothing can be paid");
  const { payments: defaults } = DEFAULTS;
  return {
    amounts: amounts(rows.amounts ?? {}, report),
    x402: x402.map((row, index) => network(row, ["payments", "x402", index], report)),
    stripe:
      stripe === undefined
        ? null
        : {
            secretKey: stripe.secret_key,
            webhookSecrets: [stripe.webhook_secret].flat(),
            fee: {
              percent: stripe.fee?.percent ?? defaults.stripeFee.percent,
              fixed: cents(
                stripe.fee?.fixed_usd,
                defaults.stripeFee.fixed,
                ["payments", "stripe", "fee", "fixed_usd"],
                report,
              ),
            },
            apiBase: readAddress(stripe.api_base, ["payments", "stripe", "api_base"], report),
          },
    sanctions: { list: sanctions.list ?? null, oracle: oracleOf(sanctions.oracle ?? false) },
    inlinePerHour:
      inline.enabled === false || x402.length === 0
        ? null
        : cents(
            inline.max_usd_per_hour,
            defaults.inlinePerHour,
            ["payments", "inline", "max_usd_per_hour"],
            report,
          ),
  };
}

function amounts(
  rows: NonNullable<PaymentsFile["amounts"]>,
  report: ReportProblem,
): PaymentsConfig["amounts"] {
  const defaults = DEFAULTS.payments.amounts;
  const at = (field: string): Path => ["payments", "amounts", field];
  const min = cents(rows.min_usd, defaults.min, at("min_usd"), report);
  const max = cents(rows.max_usd, Math.max(defaults.max, min) as NanoUsd, at("max_usd"), report);
  const suggested = cents(
    rows.suggested_usd,
    Math.min(Math.max(defaults.suggested, min), max) as NanoUsd,
    at("suggested_usd"),
    report,
  );
  const maxPerDay = cents(
    rows.max_usd_per_day,
    Math.max(defaults.maxPerDay, max) as NanoUsd,
    at("max_usd_per_day"),
    report,
  );
  if (min === 0) report(at("min_usd"), "0", "more than 0");
  if (max < min) report(at("max_usd"), describe(rows.max_usd), "at least min_usd");
  if (suggested < min || suggested > max)
    report(at("suggested_usd"), describe(rows.suggested_usd), "from min_usd to max_usd");
  if (maxPerDay < min) report(at("max_usd_per_day"), describe(rows.max_usd_per_day), "at least min_usd");
  return { min, suggested, max, maxPerDay };
}

type NetworkRow = NonNullable<PaymentsFile["x402"]>[number];

function network(row: NetworkRow, path: Path, report: ReportProblem): X402Network {
  const { payments: defaults } = DEFAULTS;
  if ((row.facilitator === undefined) === (row.gas_key === undefined))
    report(path, row.gas_key === undefined ? "neither" : "both", "either facilitator or gas_key");
  const facilitator = readAddress(row.facilitator, [...path, "facilitator"], report);
  return {
    network: row.network as X402Network["network"],
    asset: lower(row.asset),
    payTo: lower(row.pay_to),
    rpc: readAddress(row.rpc, [...path, "rpc"], report) ?? "",
    settledBy:
      row.gas_key === undefined
        ? { facilitator: facilitator ?? "" }
        : { gasKey: row.gas_key as `0x${string}` },
    confirmations: row.confirmations ?? defaults.confirmations,
    finalizedAbove: cents(
      row.finalized_above_usd,
      defaults.finalizedAbove,
      [...path, "finalized_above_usd"],
      report,
    ),
    wastedGasPerHour: row.wasted_gas_per_hour ?? defaults.wastedGasPerHour,
    waitMs: row.wait_ms ?? defaults.waitMs,
  };
}

const oracleOf = (oracle: boolean | string): boolean | Address =>
  typeof oracle === "string" ? lower(oracle) : oracle;

const lower = (address: string): Address => address.toLowerCase() as Address;

/** Cards know nothing smaller, and people neither. */
function cents(usd: number | undefined, fallback: NanoUsd, path: Path, report: ReportProblem): NanoUsd {
  if (usd === undefined) return fallback;
  const nano = nanoFromUsd(usd);
  if (nano !== null && nano % 10_000_000 === 0) return nano;
  report(path, describe(usd), "an amount in USD with at most two decimals");
  return fallback;
}
