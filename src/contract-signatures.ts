import type { ContractAnswer, ContractSignatures } from "./accounts/wallet.ts";

/**
 * Asks chains about signatures of contract wallets (EIP-1271, and EIP-6492 for contracts that are not deployed yet) at the
 * configured addresses, one for each chain. `rpc` answers anew after a reload.
 */
export function contractSignatures(rpc: () => ReadonlyMap<number, string>): ContractSignatures {
  return {
    async check({ address, chainId, message, signature }): Promise<ContractAnswer> {
      const url = rpc().get(chainId);
      if (url === undefined) return "unknown";
      // Most gateways never need it, and it is most of what the package weighs.
      const { createPublicClient, http } = await import("viem");
      const client = createPublicClient({ transport: http(url, { timeout: RPC_TIMEOUT_MS, retryCount: 0 }) });
      try {
        // A node that serves another chain would vouch for whoever owns the address there.
        if ((await client.getChainId()) !== chainId) return "unreachable";
        return (await client.verifyMessage({ address, message, signature })) ? "valid" : "invalid";
      } catch {
        return "unreachable";
      }
    },
  };
}

const RPC_TIMEOUT_MS = 5_000;
