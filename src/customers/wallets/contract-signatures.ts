import type { IssuedMessage, SignedMessage } from "../accounts/wallet-message.ts";

/** Asks a chain whether a contract takes a signature for its own: EIP-1271. */
export interface ContractSignatures {
  check(signed: SignedMessage & Pick<IssuedMessage, "address" | "chainId">): Promise<ContractAnswer>;
}

/** `unknown` where no address of the chain is configured. */
export type ContractAnswer = "valid" | "invalid" | "unreachable" | "unknown";

/**
 * Asks chains at the configured addresses, one for each chain, whether a contract takes a signature for its
 * own: EIP-1271. Contracts that are not deployed yet (EIP-6492) are not checked: the node would run calls that
 * the signer chose first. `rpc` follows reloads.
 */
export function contractSignatures(rpc: () => ReadonlyMap<number, string>): ContractSignatures {
  let inFlight = 0;
  return {
    async check(signed): Promise<ContractAnswer> {
      const url = rpc().get(signed.chainId);
      if (url === undefined) return "unknown";
      if (inFlight >= MAX_IN_FLIGHT) return "unreachable";
      inFlight += 1;
      try {
        return await isSigned(url, signed);
      } finally {
        inFlight -= 1;
      }
    },
  };
}

async function isSigned(
  url: string,
  { address, chainId, message, signature }: Parameters<ContractSignatures["check"]>[0],
): Promise<ContractAnswer> {
  // Most gateways never need it, and it is most of what the package weighs.
  const viem = await import("viem");
  const transport = viem.http(url, { timeout: RPC_TIMEOUT_MS, retryCount: 0 });
  const client = viem.createPublicClient({ transport });
  try {
    // A node that serves another chain would vouch for the owner of the address there.
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
/** Checks at once. Each is two calls at most, and anybody may cause a few an hour. */
const MAX_IN_FLIGHT = 16;
/** What EIP-1271 has a contract answer for a signature of its own. */
const VALID = "0x1626ba7e";
