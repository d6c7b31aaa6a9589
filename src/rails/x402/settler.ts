import type { Clock } from "../../units/clock.ts";
import { atMost } from "../../units/clock.ts";
import type { SignedPayment } from "./authorization.ts";
import { type Address, chainIdOf, type Token, type X402Network } from "./network.ts";
import { transferCall } from "./transfer-call.ts";

/** Has a signed transfer carried out. What it answers is a hint, and what it does not answer says nothing. */
export interface Settler {
  settle(payment: SignedPayment, token: Token): Promise<SettleHint>;
  /**
   * Whether a transaction that this account sent may be the settler's for a payment that it was asked for. `isAnswerLost`:
   * it was asked, and what it did is not known. Null while that cannot be found out.
   */
  hasSent(sender: Address, isAnswerLost: boolean): Promise<boolean | null>;
}

/** By which transaction; or why not, as far as that is told. */
export type SettleHint =
  | { readonly transaction: string }
  /** `isAnswerLost`: it may have been carried out all the same. */
  | { readonly problem: string; readonly isAnswerLost?: true };

export function openSettler(network: X402Network, clock: Pick<Clock, "after">): Promise<Settler> {
  const { settledBy } = network;
  return "gasKey" in settledBy
    ? gasAccount(network, settledBy.gasKey)
    : Promise.resolve(facilitator(settledBy.facilitator, network, clock));
}

/** A service that speaks x402's `POST /settle`. */
function facilitator(address: string, { waitMs }: X402Network, clock: Pick<Clock, "after">): Settler {
  return {
    async settle({ accepted, authorization, signature }, { name, version }) {
      const paymentRequirements = { ...accepted, maxTimeoutSeconds: 300, extra: { name, version } };
      const paymentPayload = {
        x402Version: 2,
        accepted: paymentRequirements,
        payload: { authorization, signature },
      };
      const leaving = new AbortController();
      const asked = fetch(`${address}/settle`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements }),
        signal: leaving.signal,
        redirect: "error",
      }).then(async (response) => {
        const answer = (await response.json()) as { transaction?: unknown; errorReason?: unknown };
        const { transaction, errorReason } = answer;
        if (typeof transaction === "string" && HASH.test(transaction)) return { transaction };
        return typeof errorReason === "string"
          ? { problem: errorReason.slice(0, MOST_TOLD) }
          : lost(`${response.status}`);
      });
      const hint = await atMost(
        clock,
        waitMs,
        asked.catch((error: unknown) => lost(String(error).slice(0, MOST_TOLD))),
      );
      leaving.abort();
      return hint ?? lost("no answer in time");
    },
    // What it says that it did not do, or did by another transaction, somebody else did: perhaps the same service for
    // another store. Of a lost answer, the account that sent the transaction is all that is left to tell by.
    hasSent: async (sender, isAnswerLost) => isAnswerLost && signerIsListed(address, sender, waitMs),
  };
}

const lost = (problem: string): SettleHint => ({ problem, isAnswerLost: true });

/** x402's `GET /supported` lists the accounts that a facilitator sends from, by families of chains. */
async function signerIsListed(address: string, sender: Address, waitMs: number): Promise<boolean | null> {
  try {
    const response = await fetch(`${address}/supported`, {
      signal: AbortSignal.timeout(waitMs),
      redirect: "error",
    });
    if (response.status >= 500) return null;
    return response.ok && (await response.text()).toLowerCase().includes(`"${sender}"`);
  } catch {
    return null;
  }
}

const HASH = /^0x[0-9a-f]{64}$/i;
const MOST_TOLD = 200;

/** An account that pays for gas. Transfers that are sent at once get nonces one after another. */
async function gasAccount(network: X402Network, gasKey: `0x${string}`): Promise<Settler> {
  const viem = await import("viem");
  const { nonceManager, privateKeyToAccount } = await import("viem/accounts");
  const account = privateKeyToAccount(gasKey, { nonceManager });
  const chainId = chainIdOf(network);
  const chain = viem.defineChain({
    id: chainId,
    name: network.network,
    nativeCurrency: { name: "gas", symbol: "GAS", decimals: 18 },
    rpcUrls: { default: { http: [network.rpc] } },
  });
  const client = viem.createWalletClient({
    account,
    chain,
    transport: viem.http(network.rpc, { timeout: RPC_TIMEOUT_MS, retryCount: 0 }),
  });
  return {
    async settle(payment, { form }) {
      const call = transferCall(viem, form, payment);
      if (call === null) return { problem: "the token takes signatures of plain accounts only" };
      try {
        return { transaction: await client.writeContract({ address: network.asset, gas: GAS, ...call }) };
      } catch (error) {
        // The package has the nonce free again, if it had taken one.
        return { problem: error instanceof viem.BaseError ? error.shortMessage : "it could not be sent" };
      }
    },
    // Nobody else has its key, so this holds after a crash too, and for each transaction that took another's place.
    hasSent: async (sender) => sender === account.address.toLowerCase(),
  };
}

/** A transfer takes some 90,000, and a contract that checks the signature more. Named, so that nothing is asked between the nonce and the sending. */
const GAS = 300_000n;
const RPC_TIMEOUT_MS = 5_000;
