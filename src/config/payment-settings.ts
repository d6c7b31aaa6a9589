import { type TString, Type } from "@sinclair/typebox";
import type { PaymentAmounts } from "../payments/amounts.ts";
import type { StripeConfig } from "../payments/rails/stripe/stripe-config.ts";
import type { Address, X402Network } from "../payments/rails/x402/network.ts";
import type { SanctionsConfig } from "../payments/rails/x402/sanctions.ts";
import { NANO_PER_USD, type NanoUsd } from "../units/usd.ts";
import { cents, count, ms, nodeAddress, plain, secret, secrets, text, webAddress, yesOrNo } from "./kinds.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import { joined, listOf, mapOf, required, type SettingKind, section, setting } from "./setting.ts";

const dollars = (amount: number): NanoUsd => (amount * NANO_PER_USD) as NanoUsd;
const ADDRESS = "^0x[0-9a-fA-F]{40}$";
/** In lower case, so that equal ones are equal. */
const lower = (written: string): Address => written.toLowerCase() as Address;
const address = (): SettingKind<TString, Address> => ({
  schema: text("0x and 40 hexadecimal digits", ADDRESS).schema,
  read: lower,
  show: (written) => written,
});

const AMOUNTS = joined(
  mapOf({
    min_usd: setting(cents(), dollars(1), { doc: "the smallest payment" }),
    suggested_usd: setting(cents(), dollars(5), { doc: "the suggested payment" }),
    max_usd: setting(cents(), dollars(500), { doc: "the largest payment" }),
    max_usd_per_day: setting(cents(), dollars(1_000), {
      doc: "the most paid into one balance in a day",
    }),
  }),
  joinAmounts,
  (amounts) => amounts,
);

/** Defaults give way to what the file says about the other amounts. */
function joinAmounts(
  amounts: PaymentAmounts,
  rows: {
    readonly min_usd?: number;
    readonly suggested_usd?: number;
    readonly max_usd?: number;
    readonly max_usd_per_day?: number;
  },
  path: Path,
  report: ReportProblem,
): PaymentAmounts {
  const greater = (a: NanoUsd, b: NanoUsd) => Math.max(a, b) as NanoUsd;
  const { min } = amounts;
  const max = rows.max_usd === undefined ? greater(amounts.max, min) : amounts.max;
  const between = Math.min(greater(amounts.suggested, min), max) as NanoUsd;
  const suggested = rows.suggested_usd === undefined ? between : amounts.suggested;
  const maxPerDay = rows.max_usd_per_day === undefined ? greater(amounts.maxPerDay, max) : amounts.maxPerDay;
  const wrong = (field: keyof typeof rows, expected: string) =>
    report([...path, field], describe(rows[field]), expected);
  if (min === 0) wrong("min_usd", "more than 0");
  if (max < min) wrong("max_usd", "at least min_usd");
  if (suggested < min || suggested > max) wrong("suggested_usd", "from min_usd to max_usd");
  if (maxPerDay < min) wrong("max_usd_per_day", "at least min_usd");
  return { min, suggested, max, maxPerDay };
}

const NETWORK = joined(
  mapOf(
    {
      network: required(
        text("eip155: and a chain id, such as eip155:8453", "^eip155:[1-9][0-9]{0,9}$"),
        "CAIP-2: `eip155:` and the chain's id",
      ),
      asset: required(address(), "a token with EIP-3009, whose unit is a dollar"),
      pay_to: required(address(), "your address, of this store alone; the gateway needs no key to it"),
      rpc: required(nodeAddress(), "a node that you trust: nothing is credited that it does not show"),
      facilitator: setting(nodeAddress(), undefined, {
        doc: "a service that sends the transfers",
        otherwise: "this or `gas_key`",
      }),
      gas_key: setting(secret("0x and 64 hexadecimal digits", "^0x[0-9a-fA-F]{64}$"), undefined, {
        doc: "the key of an account that holds only gas: the gateway sends transfers itself",
        otherwise: "this or `facilitator`",
      }),
      confirmations: setting(count(1, 10_000), 1, { doc: "blocks until a payment is credited" }),
      finalized_above_usd: setting(cents(), dollars(100), {
        doc: "from this amount on, the block has to be final",
      }),
      // Ten transfers with all of the gas that they are sent with.
      wasted_gas_per_hour: setting(count(0), 3_000_000, {
        doc: "with `gas_key`: once failed transfers waste this much gas, contract wallets are refused",
      }),
      wait_ms: setting(ms(1), 15_000, { doc: "how long a request waits for its payment" }),
    },
    "a network: { network, asset, pay_to, rpc, facilitator or gas_key, … }",
  ),
  ({ network, facilitator, gasKey, ...rest }, rows, path, report): X402Network => {
    if ((rows.facilitator === undefined) === (rows.gas_key === undefined))
      report(path, rows.gas_key === undefined ? "neither" : "both", "either facilitator or gas_key");
    return {
      ...rest,
      network: network as X402Network["network"],
      settledBy:
        gasKey === undefined ? { facilitator: facilitator ?? "" } : { gasKey: gasKey as `0x${string}` },
    };
  },
  ({ settledBy, ...rest }) => ({ ...rest, ...settledBy }),
);

const FEE = section(
  mapOf({
    percent: setting(
      plain(Type.Number({ minimum: 0, maximum: 50, expected: "a number from 0 to 50" })),
      2.9,
      {
        doc: "charged on top of the credit",
      },
    ),
    fixed_usd: setting(cents(), dollars(0.3), { doc: "charged on top, whatever the amount" }),
  }),
);

const STRIPE = joined(
  mapOf(
    {
      secret_key: required(secret(), "Stripe's secret key"),
      webhook_secret: required(secrets(), "one, or a list while one replaces another"),
      fee: FEE,
      api_base: setting(webAddress(), null, {
        doc: "another address for Stripe's API",
        otherwise: "Stripe's",
      }),
    },
    "a map: { secret_key, webhook_secret, fee }",
  ),
  ({ webhookSecret, ...rest }): StripeConfig => ({ ...rest, webhookSecrets: webhookSecret }),
  ({ webhookSecrets: webhookSecret, ...rest }) => ({ ...rest, webhookSecret }),
);

const oracle = () => ({
  schema: Type.Union([Type.Boolean(), address().schema], {
    expected: "true, false, or the address of a contract",
  }),
  read: (written: boolean | string) => (typeof written === "string" ? lower(written) : written),
  show: (value: boolean | Address) => value,
});

export interface PaymentsConfig {
  readonly amounts: PaymentAmounts;
  readonly x402: readonly X402Network[];
  readonly stripe: StripeConfig | null;
  readonly sanctions: SanctionsConfig;
  /** The most that requests of one key for answers may pay within an hour; null: they pay nothing. */
  readonly inlinePerHour: NanoUsd | null;
}

/** The block `payments`: how customers pay for credit themselves. */
export const PAYMENTS = joined(
  mapOf({
    amounts: section(AMOUNTS),
    x402: setting(listOf(NETWORK, "a list of at least one network"), [] as readonly X402Network[], {
      doc: "",
    }),
    stripe: setting(STRIPE, null, { doc: "" }),
    sanctions: section(
      mapOf({
        list: setting(text("the path of a file with one address in a line"), null, {
          doc: "a file of addresses, one per line, that may not pay",
          otherwise: "none",
        }),
        oracle: setting(oracle(), false, {
          doc: "`true`: ask the oracle of Chainalysis; or the address of another contract",
        }),
      }),
    ),
    inline: section(
      mapOf({
        enabled: setting(yesOrNo(), true, { doc: "requests for answers may pay by x402" }),
        max_usd_per_hour: setting(cents(), dollars(20), {
          doc: "the most that one key's requests pay in an hour",
        }),
      }),
    ),
  }),
  ({ inline, ...rest }, _rows, path, report): PaymentsConfig => {
    const { x402, stripe } = rest;
    if (x402.length === 0 && stripe === null)
      report(path, "neither", "x402, stripe, or both: otherwise nothing can be paid");
    return { ...rest, inlinePerHour: inline.enabled && x402.length > 0 ? inline.maxPerHour : null };
  },
  ({ inlinePerHour, ...rest }) => ({
    ...rest,
    inline: { enabled: inlinePerHour !== null, maxPerHour: inlinePerHour as NanoUsd },
  }),
);
