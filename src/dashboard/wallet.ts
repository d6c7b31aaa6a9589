import type { WalletMessage } from "../api/accounts.ts";
import { Api } from "./api.ts";

/** A wallet in the browser: EIP-1193. */
export interface Wallet {
  request(call: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>;
}

export interface Signed {
  readonly message: string;
  readonly signature: string;
}

/** Null where the browser has none. */
export const browserWallet = (): Wallet | null => (globalThis as { ethereum?: Wallet }).ethereum ?? null;

/**
 * Has the wallet sign the gateway's own message (EIP-4361), which proves whose wallet it is and moves
 * nothing.
 */
export async function signWithWallet(wallet: Wallet): Promise<Signed> {
  const address = await accountOf(wallet);
  const chain_id = await chainOf(wallet);
  const { message } = await new Api(null).post<WalletMessage>("v1/auth/wallet", { address, chain_id });
  const signature = await wallet.request({
    method: "personal_sign",
    params: [hexOf(new TextEncoder().encode(message)), address],
  });
  return { message, signature: String(signature) };
}

export async function accountOf(wallet: Wallet): Promise<string> {
  const [address] = (await wallet.request({ method: "eth_requestAccounts" })) as string[];
  if (address === undefined) throw new Error("The wallet shared no account.");
  return address;
}

export const chainOf = async (wallet: Wallet): Promise<number> =>
  Number(await wallet.request({ method: "eth_chainId" }));

/** Not `toHex`, which browsers have had only since 2025. */
export const hexOf = (bytes: Uint8Array): string =>
  `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
