import type { ContractAnswer, ContractSignatures } from "../accounts/contract-signatures.ts";

/**
 * Asks chains at the configured addresses, one for each chain, whether a contract takes a signature for its
 * own: EIP-1271. Contracts that are not deployed yet (EIP-6492) are not asked: the node would run calls that
 * the signer chose first. `rpc` answers anew after a reload.
 */
export function contractSignatures(rpc: () => ReadonlyMap<number, string>): ContractSignatures {
  let asked = 0;
  return {
    async check(signed): Promise<ContractAnswer> {
      const url = rpc().get(signed.chainId);
      if (url === undefined) return "unknown";
      if (asked >= MAX_ASKED) return "unreachable";
      asked += 1;
      try {
        return await ask(url, signed);
      } finally {
        asked -= 1;
      }
    },
  };
}

async function ask(
  url: string,
  { address, chainId, message, signature }: Parameters<ContractSignatures["check"]>[0],
): Promise<ContractAnswer> {
  // Most gateways never need it, and it is most of what the package weighs.
  const viem = await import("viem");
  const transport = viem.http(url, { timeout: RPC_TIMEOUT_MS, retryCount: 0 });
  const client = viem.createPublicClient({ transport });
  try {
    // A node that serves another chain would vouch for whoever owns the address there.
    if ((await client.getChainId()) !== chainId) return "unreachable";
    const answer = await client.readContract({
      address,
      abi: viem.parseAbi(EIP_1271),
      functionName: "isValidSignature",
      args: [viem.hashMessage(message), signature],
    });
    return answer === VALID ? "valid" : "invalid";
  } catch (error) {
    const refusing = [viem.ContractFunctionRevertedError, viem.ContractFunctionZeroDataError];
    const refused =
      error instanceof viem.BaseError &&
      error.walk((cause) => refusing.some((kind) => cause instanceof kind)) !== null;
    return refused ? "invalid" : "unreachable";
  }
}

const EIP_1271 = ["function isValidSignature(bytes32, bytes) view returns (bytes4)"] as const;
const RPC_TIMEOUT_MS = 5_000;
/** Questions at once. Each is two calls at most, and anybody may have a few asked an hour. */
const MAX_ASKED = 16;
/** What EIP-1271 has a contract answer for a signature of its own. */
const VALID = "0x1626ba7e";
