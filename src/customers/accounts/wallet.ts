import { randomBase58 } from "../../units/base58.ts";
import type { EpochMs } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { hashSecret, type SecretHash } from "../../units/secret-hash.ts";
import type { AccountDeps } from "./deps.ts";
import type { HexAddress, SignedMessage, WalletName } from "./wallet-message.ts";

/**
 * Signing in with a wallet: EIP-4361. The gateway writes the whole message and takes back only that message,
 * byte for byte, found by its hash. So the domain, the chain, the nonce and the expiry that were signed are
 * the gateway's own, and nothing has to be read out of a text that a stranger sent. viem is loaded with the
 * first wallet, because it is a fifth of what a start loads.
 */
export async function walletMessage(
  deps: AccountDeps,
  addressText: string,
  chainId: number,
): Promise<string | Refusal> {
  const address = await readAddress(addressText);
  if (address === null) {
    return invalidField(
      "address",
      "`address` must be 0x followed by 40 hex digits, with a valid EIP-55 checksum if it is in mixed case.",
    );
  }
  const expiresAt = (deps.clock.now() + MESSAGE_MS) as EpochMs;
  const message = await writeMessage(deps, address, chainId, expiresAt);
  if (refused(message)) return message;
  const kept = { hash: hashSecret(message), address, chainId, expiresAt };
  const change = await deps.store.change({}, () => ({ message: kept }));
  return refused(change) ? change : message;
}

const MESSAGE_MS = 10 * 60_000;
const NONCE_CHARACTERS = 22;

async function writeMessage(
  deps: AccountDeps,
  address: HexAddress,
  chainId: number,
  expiresAt: EpochMs,
): Promise<string | Refusal> {
  const { createSiweMessage, SiweInvalidMessageFieldError } = await import("viem/siwe");
  const { dashboardUrl } = deps.links();
  // Wallets compare the domain with the page that asks, which is the dashboard's.
  const { host } = new URL(dashboardUrl);
  try {
    return createSiweMessage({
      domain: host,
      address,
      statement: `Prove to ${host} that this wallet is yours. This costs nothing.`,
      uri: dashboardUrl,
      version: "1",
      chainId,
      nonce: randomBase58(NONCE_CHARACTERS, deps.random),
      issuedAt: new Date(deps.clock.now()),
      expirationTime: new Date(expiresAt),
    });
  } catch (error) {
    if (!(error instanceof SiweInvalidMessageFieldError)) throw error;
    // A host name without a dot, or an IPv6 address.
    return refuse(
      "invalid_request",
      `Wallets cannot sign in here, because they accept no messages from \`${host}\`. The operator can set \`dashboard_url\` to an address with a domain name.`,
    );
  }
}

/**
 * Checks a signature and names its wallet. Uses the message up only where a change later asks about its hash.
 */
export async function proveWallet(
  deps: AccountDeps,
  { message, signature }: SignedMessage,
): Promise<ProvedWallet | Refusal> {
  const kept = await deps.store.message(hashSecret(message));
  if (kept === null || kept.expiresAt <= deps.clock.now()) return spentMessage();
  const { hash, address, chainId } = kept;
  if (await signedByKeyPair(address, message, signature))
    return { hash, wallet: address as string as WalletName };
  const found = await deps.contracts.check({ address, chainId, message, signature });
  if (found === "valid") return { hash, wallet: `eip155:${chainId}:${address}` as WalletName };
  return found === "unreachable"
    ? invalidField(
        "signature",
        `The signature could not be checked: chain ${chainId} did not answer. Try again in a minute.`,
      )
    : invalidField("signature", `\`signature\` is not ${address}'s signature of this message.`);
}

interface ProvedWallet {
  readonly hash: SecretHash;
  readonly wallet: WalletName;
}

export const spentMessage = (): Refusal =>
  invalidField(
    "message",
    "The message is unknown to this gateway, already used, or expired. Get a new one with POST /v1/auth/wallet.",
  );

/** In the one form that it is written in, EIP-55. */
async function readAddress(text: string): Promise<HexAddress | null> {
  if (!ADDRESS.test(text)) return null;
  const { getAddress } = await import("viem/utils");
  const address = getAddress(text.toLowerCase() as HexAddress);
  const mixed = /[a-f]/.test(text.slice(2)) && /[A-F]/.test(text.slice(2));
  return mixed && text !== address ? null : address;
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

async function signedByKeyPair(
  address: HexAddress,
  message: string,
  signature: `0x${string}`,
): Promise<boolean> {
  const { verifyMessage } = await import("viem/utils");
  // Thrown for what has not the form of such a signature, as a contract's need not.
  return verifyMessage({ address, message, signature }).catch(() => false);
}
