import { type Address, chainIdOf, type Token, type TransferForm, type X402Network } from "./network.ts";
import { transferCall, type Viem } from "./transfer-call.ts";

type PublicClient = ReturnType<Viem["createPublicClient"]>;

/**
 * The token as its contract describes itself. Rejects where payments in it could not be carried out: wallets would sign for
 * another EIP-712 domain than the contract checks, or the contract has no transfer by authorization.
 */
export async function readToken(viem: Viem, client: PublicClient, network: X402Network): Promise<Token> {
  const served = await client.getChainId();
  if (served !== chainIdOf(network))
    throw new Error(`the node serves chain ${served}, not ${network.network}`);
  const contract = { address: network.asset, abi: viem.parseAbi(ABI) } as const;
  const optional = <Value>(read: Promise<Value>): Promise<Value | null> =>
    read.catch((error: unknown) => {
      if (isContractsAnswer(viem, error)) return null;
      throw error;
    });
  const [declared, separator, decimals, form] = await Promise.all([
    optional(client.readContract({ ...contract, functionName: "eip712Domain" })),
    optional(client.readContract({ ...contract, functionName: "DOMAIN_SEPARATOR" })),
    client.readContract({ ...contract, functionName: "decimals" }),
    transferForm(viem, client, network.asset),
  ]);
  const { name, version } =
    declared === null
      ? {
          name: await client.readContract({ ...contract, functionName: "name" }),
          version: await client.readContract({ ...contract, functionName: "version" }),
        }
      : namedBy(declared, network);
  const facts = `${name || "a token without a name"}, version ${version || "unknown"}`;
  const domain = { name, version, chainId: chainIdOf(network), verifyingContract: network.asset };
  const isChecked = separator === null ? declared !== null : separator === viem.domainSeparator({ domain });
  if (!isChecked) throw new Error(`the token (${facts}) signs by another EIP-712 domain`);
  if (form === null) throw new Error(`the token (${facts}) has no transferWithAuthorization of EIP-3009`);
  return { name, version, decimals, form };
}

const ABI = [
  "function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function decimals() view returns (uint8)",
] as const;

/** EIP-5267. x402's offers have room for a name and a version, and clients take chain and contract for granted. */
function namedBy(
  [fields, name, version, chainId, contract]: readonly [string, string, string, bigint, string, ...unknown[]],
  network: X402Network,
): Pick<Token, "name" | "version"> {
  const isUsual =
    fields === NAME_VERSION_CHAIN_CONTRACT &&
    Number(chainId) === chainIdOf(network) &&
    contract.toLowerCase() === network.asset;
  if (!isUsual) throw new Error("the token signs by an EIP-712 domain that x402 cannot express");
  return { name, version };
}

const NAME_VERSION_CHAIN_CONTRACT = "0x0f";

/** `bytes` where the token knows both, because only that form takes a contract wallet's signature; null for neither. */
async function transferForm(viem: Viem, client: PublicClient, asset: Address): Promise<TransferForm | null> {
  for (const form of ["bytes", "vrs"] as const) if (await knows(viem, client, asset, form)) return form;
  return null;
}

/** A contract refuses an authorization that has run out with a reason, and an unknown function without one. */
async function knows(viem: Viem, client: PublicClient, asset: Address, form: TransferForm): Promise<boolean> {
  const call = transferCall(viem, form, {
    authorization: {
      from: asset,
      to: asset,
      value: "0",
      validAfter: "0",
      validBefore: "1",
      nonce: `0x${"0".repeat(64)}`,
    },
    signature: `0x${"0".repeat(130)}`,
  })!;
  try {
    await client.simulateContract({ address: asset, ...call });
    return false;
  } catch (error) {
    if (!isContractsAnswer(viem, error)) throw error;
    const reverted = error.walk((cause) => cause instanceof viem.ContractFunctionRevertedError);
    if (!(reverted instanceof viem.ContractFunctionRevertedError)) return false;
    const { raw, reason } = reverted;
    return raw === undefined ? reason !== undefined && reason !== "execution reverted" : raw !== "0x";
  }
}

/** The contract itself failed the call, or answered something else; otherwise the node could not be asked. */
function isContractsAnswer(viem: Viem, error: unknown): error is import("viem").BaseError {
  return (
    error instanceof viem.BaseError &&
    error.walk(
      (cause) =>
        cause instanceof viem.ContractFunctionRevertedError ||
        cause instanceof viem.ContractFunctionZeroDataError ||
        cause instanceof viem.AbiDecodingDataSizeTooSmallError,
    ) !== null
  );
}
