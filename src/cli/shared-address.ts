import type { OperatorsPayment } from "../api/payments.ts";
import type { Chain } from "../payments/rails/x402/chain.ts";
import type { X402Network } from "../payments/rails/x402/network.ts";
import { partyOf } from "../payments/rails/x402/redacted-parts.ts";
import { messageOf } from "./console.ts";
import { type Finding, ok, warning } from "./finding.ts";
import type { LocalGateway } from "./local-gateway.ts";

/**
 * Whether somebody else is paid at the address too. A payer can present one payment to two stores that share an address; the
 * one that did not carry it out holds it, but a facilitator that both use can mislead them.
 */
export async function checkAddress(
  at: X402Network,
  chain: Pick<Chain, "arrivals">,
  known: ReadonlySet<string> | null,
): Promise<Finding> {
  const { network, payTo } = at;
  const check = `pay_to on ${network}`;
  try {
    const arrived = await chain.arrivals(RECENT_BLOCKS);
    if (known === null)
      return ok(check, `${payTo}; its transfers were not compared, because no gateway answers here`);
    const foreign = arrived.filter((transaction) => !known.has(transaction)).length;
    const compared = `of ${arrived.length} transfers to it in the last ${RECENT_BLOCKS} blocks`;
    return foreign === 0
      ? ok(check, `${compared}, each is a payment of this gateway`)
      : warning(
          check,
          `${compared}, ${foreign} are no payments of this gateway`,
          "Give each store an address, and a gas_key, of its own: payments may otherwise be credited twice or held.",
        );
  } catch (error) {
    const why = partyOf(at).redact(messageOf(error));
    return warning(check, why, "Its transfers could not be compared with the payments.");
  }
}

/** Transactions of the latest payments of the gateway that runs here; null where none answers. */
export async function knownTransactions(gateway: LocalGateway): Promise<ReadonlySet<string> | null> {
  const found = new Set<string>();
  let before = "";
  try {
    for (let page = 0; page < MAX_PAGES; page++) {
      const response = await gateway(`/admin/payments?limit=200${before}`);
      if (!response.ok) return null;
      const { data, has_more } = (await response.json()) as { data: OperatorsPayment[]; has_more: boolean };
      for (const { transaction } of data) if (transaction !== null) found.add(transaction);
      if (!has_more) break;
      before = `&before=${data.at(-1)!.id}`;
    }
  } catch {
    return null;
  }
  return found;
}

/** An hour, on the chains where transfers are cheap; nodes answer for some thousands at once. */
const RECENT_BLOCKS = 2_000;
const MAX_PAGES = 10;
