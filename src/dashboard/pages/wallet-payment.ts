import { accountOf, chainOf, hexOf, type Wallet } from "../wallet.ts";

/**
 * An offer that came with a 402 (x402, version 2), as far as it is needed to sign it. The wallet shows to whom how much
 * of what goes; nobody copies an address.
 */
export interface PaymentRequired {
  readonly resource?: unknown;
  readonly accepts: readonly SignableOffer[];
}

interface SignableOffer {
  readonly scheme: string;
  /** `eip155:` and the chain's id. */
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  /** In the token's smallest units, as text. */
  readonly amount: string;
  readonly maxTimeoutSeconds: number;
  /** The token's own name and version, which its signatures are for. */
  readonly extra: { readonly name: string; readonly version: string };
}

export const readOffer = (header: string): PaymentRequired => JSON.parse(fromBase64(header));

/** Has the wallet sign that so much may be moved, once and soon; resolves with the header `payment-signature`. */
export async function signOffer(wallet: Wallet, { resource, accepts }: PaymentRequired): Promise<string> {
  const accepted = accepts.find(({ scheme, network }) => scheme === "exact" && network.startsWith("eip155:"));
  if (accepted === undefined) throw new Error("The gateway offers nothing that a browser's wallet can pay.");
  const from = await accountOf(wallet);
  const chainId = Number(accepted.network.slice("eip155:".length));
  await useChain(wallet, chainId);
  const authorization = {
    from,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: "0",
    validBefore: String(Math.floor(Date.now() / 1_000) + accepted.maxTimeoutSeconds),
    nonce: hexOf(crypto.getRandomValues(new Uint8Array(32))),
  };
  const { name, version } = accepted.extra;
  const domain = { name, version, chainId, verifyingContract: accepted.asset };
  const typed = { types: TYPES, primaryType: "TransferWithAuthorization", domain, message: authorization };
  const signature = await wallet.request({
    method: "eth_signTypedData_v4",
    params: [from, JSON.stringify(typed)],
  });
  return toBase64(
    JSON.stringify({ x402Version: 2, resource, accepted, payload: { signature, authorization } }),
  );
}

/** Wallets sign only for the chain that they are on. */
async function useChain(wallet: Wallet, chainId: number): Promise<void> {
  if ((await chainOf(wallet)) === chainId) return;
  await wallet.request({
    method: "wallet_switchEthereumChain",
    params: [{ chainId: `0x${chainId.toString(16)}` }],
  });
}

/** EIP-3009, as typed data (EIP-712). */
const TYPES = {
  EIP712Domain: [
    { name: "name", type: "string" },
    { name: "version", type: "string" },
    { name: "chainId", type: "uint256" },
    { name: "verifyingContract", type: "address" },
  ],
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

const toBase64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const fromBase64 = (text: string): string =>
  new TextDecoder().decode(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)));
