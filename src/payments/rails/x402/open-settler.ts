import type { Clock } from "../../../units/clock.ts";
import { atMost } from "../../../units/clock.ts";
import { GasAccount } from "./gas-account.ts";
import type { GasDeps } from "./gas-line.ts";
import type { Address, X402Network } from "./network.ts";
import type { SettleHint, Settler } from "./settler.ts";

export function openSettler(
  network: X402Network,
  deps: GasDeps & { readonly clock: Pick<Clock, "after"> },
): Promise<Settler> {
  const { settledBy } = network;
  return "gasKey" in settledBy
    ? GasAccount.open(network, settledBy.gasKey, deps)
    : Promise.resolve(facilitator(settledBy.facilitator, network, deps.clock));
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
      const settling = fetch(`${address}/settle`, {
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
          ? { problem: errorReason.slice(0, MAX_PROBLEM_CHARS) }
          : lost(`${response.status}`);
      });
      const hint = await atMost(
        clock,
        waitMs,
        settling.catch((error: unknown) => lost(String(error).slice(0, MAX_PROBLEM_CHARS))),
      );
      leaving.abort();
      return hint ?? lost("no answer in time");
    },
    // What it says that it did not do, or did by another transaction, somebody else did: perhaps the same service for
    // another store. After a lost answer, only the account that sent the transaction shows which.
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
const MAX_PROBLEM_CHARS = 200;
