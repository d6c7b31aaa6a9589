import type { PaymentsConfig } from "../config/payment-settings.ts";
import { openChain } from "../payments/rails/x402/chain.ts";
import type { X402Network } from "../payments/rails/x402/network.ts";
import { partyOf } from "../payments/rails/x402/redacted-parts.ts";
import { oracleOf, readSanctionsList } from "../payments/rails/x402/sanctions.ts";
import { DAY_MS, systemClock } from "../units/clock.ts";
import { messageOf } from "./console.ts";
import { type Finding, failing, ok, okIf, warning } from "./finding.ts";
import type { LocalGateway } from "./local-gateway.ts";
import { checkAddress } from "./shared-address.ts";

/**
 * What payments need beyond this machine, as far as it can be seen without paying. `known`: transactions of the gateway that
 * runs here.
 */
export async function checkPayments(
  payments: PaymentsConfig | null,
  known: () => Promise<ReadonlySet<string> | null> = async () => null,
): Promise<Finding[]> {
  if (payments === null) return [];
  const transactions = payments.x402.length === 0 ? null : await known();
  const networks = await Promise.all(
    payments.x402.map((network) => checkNetwork(network, payments, transactions)),
  );
  const { stripe } = payments;
  const unlike = stripe?.webhookSecrets.filter((secret) => !secret.startsWith("whsec_")) ?? [];
  return [
    ...networks.flat(),
    ...(await checkList(payments)),
    ...(stripe === null
      ? []
      : [
          unlike.length === 0
            ? ok("webhook secret", `${stripe.webhookSecrets.length} of Stripe's form`)
            : failing(
                "webhook secret",
                "it does not begin with whsec_",
                "Copy the signing secret of the webhook's endpoint from Stripe.",
              ),
        ]),
  ];
}

/** What a running gateway says of payments that reach no block. */
export async function checkPaymentsUnderWay(gateway: LocalGateway): Promise<Finding[]> {
  const text = await gateway("/metrics").then(
    (response) => response.text(),
    () => "",
  );
  const [oldestS, queued] = [OLDEST, QUEUED].map((metric) => metric.exec(text)?.[1]);
  if (oldestS === undefined || queued === undefined) return [];
  const facts = `the oldest that is in no block was sent ${Number(oldestS).toFixed(0)} s ago; ${queued} transactions of the gas account wait`;
  return [
    okIf(
      Number(oldestS) < MAX_WAITED_S,
      "payments under way",
      facts,
      "Check whether the node of `rpc` follows the chain and the gas account has gas; the gateway sends them again by itself.",
    ),
  ];
}

const OLDEST = /^gateway_payments_oldest_submitted_seconds(?:\{[^}]*\})? (\S+)$/m;
const QUEUED = /^gateway_gas_queued_nonces(?:\{[^}]*\})? (\S+)$/m;
const MAX_WAITED_S = 120;

async function checkNetwork(
  network: X402Network,
  { sanctions }: PaymentsConfig,
  known: ReadonlySet<string> | null,
): Promise<Finding[]> {
  const check = `payments on ${network.network}`;
  try {
    const chain = await openChain(network);
    const token = await chain.token();
    const { time } = await chain.head();
    const awayS = Math.abs(time - systemClock.now() / 1_000);
    const oracle = oracleOf(sanctions, network);
    if (oracle !== null) await chain.isSanctioned(oracle, network.payTo);
    const facts = `${token.name}, version ${token.version}, ${token.decimals} decimals`;
    return [
      ok(check, `the node answers; the token is ${facts}`),
      awayS < MAX_AWAY_S
        ? ok("clock", `within ${awayS.toFixed(0)} s of the newest block's`)
        : warning(
            "clock",
            `${awayS.toFixed(0)} s from the newest block's`,
            "Authorizations would be taken for expired: set the clock, or find out why the node is behind.",
          ),
      await checkAddress(network, chain, known),
      ...("gasKey" in network.settledBy ? [await checkGas(network)] : []),
    ];
  } catch (error) {
    return [
      failing(
        check,
        partyOf(network).redact(messageOf(error)),
        "Check `rpc`, `network`, `asset` and `sanctions.oracle`: until then nothing can be paid there.",
      ),
    ];
  }
}

async function checkGas(network: X402Network): Promise<Finding> {
  const { privateKeyToAddress } = await import("viem/accounts");
  const { gasKey } = network.settledBy as { gasKey: `0x${string}` };
  const address = privateKeyToAddress(gasKey);
  const left = Number(await (await openChain(network)).gasOf(address)) / 1e18;
  const detail = `${left} left at ${address}`;
  const next = "Send gas to this address: without it no payment is carried out.";
  return okIf(left > MIN_GAS, "gas", detail, next);
}

async function checkList({ sanctions }: PaymentsConfig): Promise<Finding[]> {
  if (sanctions.list === null) return [];
  const check = "sanctions list";
  try {
    const { addresses, changedAt } = await readSanctionsList(sanctions.list);
    const days = Math.max(0, systemClock.now() - changedAt) / DAY_MS;
    const detail = `${addresses.size} addresses, changed ${days.toFixed(1)} days ago`;
    return [
      okIf(days < MAX_DAYS, check, detail, "Load a newer one: it is read again when the file changes."),
    ];
  } catch (error) {
    return [
      failing(
        check,
        `${sanctions.list}: ${messageOf(error)}`,
        "Until it can be read, nobody's payment is taken. Each line needs an address; `#` begins a comment.",
      ),
    ];
  }
}

const MAX_AWAY_S = 120;
/** A few hundred transfers, on the chains where they are cheap. */
const MIN_GAS = 0.0005;
const MAX_DAYS = 7;
