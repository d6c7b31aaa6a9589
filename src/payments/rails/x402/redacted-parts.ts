import { OutsideParty, secretsIn } from "../../../units/outside-party.ts";
import { overriding } from "../../../units/overriding.ts";
import type { Chain } from "./chain.ts";
import type { X402Network } from "./network.ts";
import type { SettleHint, Settler } from "./settler.ts";

/**
 * A network's node and settler, whose words are redacted: addresses of hosted nodes are their keys, the packages that ask them
 * name these in every error, and customers read why a payment was refused.
 */
export function redactedParts({ chain, settler }: OpenParts, network: X402Network): OpenParts {
  const party = partyOf(network);
  const node = party.guarded(chain);
  const sender = party.guarded(settler);
  return {
    chain: overriding(node, {
      refusal: async (...sent) => {
        const refusal = await node.refusal(...sent);
        return refusal === null ? null : party.redact(refusal);
      },
    }),
    settler: overriding(sender, {
      settle: async (...sent) => {
        const hint: SettleHint = await sender.settle(...sent);
        return hint.problem === undefined ? hint : { ...hint, problem: party.redact(hint.problem) };
      },
    }),
  };
}

export interface OpenParts {
  readonly chain: Chain;
  readonly settler: Settler;
}

/** What the operator keeps from others about a network: its node's address, its facilitator's, and the gas key. */
export function partyOf({ rpc, settledBy }: X402Network): OutsideParty {
  const addresses = "facilitator" in settledBy ? [rpc, settledBy.facilitator] : [rpc];
  const gasKey = "gasKey" in settledBy ? [settledBy.gasKey, settledBy.gasKey.slice("0x".length)] : [];
  return new OutsideParty({
    called: "node",
    secrets: [...gasKey, ...addresses.flatMap((address) => secretsIn(address, { paths: true }))],
    addresses,
  });
}
