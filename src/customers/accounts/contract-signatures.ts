import type { IssuedMessage, SignedMessage } from "./wallet-message.ts";

/** Asks a chain whether a contract takes a signature for its own: EIP-1271. */
export interface ContractSignatures {
  check(signed: SignedMessage & Pick<IssuedMessage, "address" | "chainId">): Promise<ContractAnswer>;
}

/** `unknown` where no address of the chain is configured. */
export type ContractAnswer = "valid" | "invalid" | "unreachable" | "unknown";
