import type { Authorization } from "./authorization.ts";
import type { Address, Token, X402Network } from "./network.ts";
import type { GasTerms } from "./settler.ts";
import { readToken } from "./token.ts";
import { type AuthorizedTransfer, OUT_OF_GAS, transferCall, type Viem } from "./transfer-call.ts";

/** See `ViemChain`, which asks the operator's own node. */
export type Chain = Pick<ViemChain, keyof ViemChain>;

export interface ChainHead {
  readonly latest: number;
  /** Seconds since 1970 of the latest block. */
  readonly time: number;
  readonly finalized: number;
  readonly finalizedTime: number;
}

export type Movement =
  | { readonly kind: "unused" }
  /** It can never be used any more. */
  | { readonly kind: "canceled" }
  /** The node says that it is used, and does not know by what yet. */
  | { readonly kind: "unseen" }
  | {
      readonly kind: "moved";
      readonly transaction: string;
      /** The account that sent the transaction, which need not be the payer. */
      readonly sender: Address;
      readonly block: number;
      /** Where to, and how much, in units of the token. */
      readonly to: Address;
      readonly value: string;
    };

const AUTHORIZATION_USED = "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)";
const AUTHORIZATION_CANCELED =
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)";

const TOKEN_ABI = [
  "function authorizationState(address, bytes32) view returns (bool)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
] as const;

/** A chain behind a node's JSON-RPC. */
export async function openChain(network: X402Network): Promise<Chain> {
  // Most of what the package weighs, and only those who are paid by it need it.
  const viem = await import("viem");
  const client = viem.createPublicClient({
    transport: viem.http(network.rpc, { timeout: RPC_TIMEOUT_MS, retryCount: 1 }),
    cacheTime: 0,
  });
  return new ViemChain(viem, client, network);
}

/**
 * What a chain says, asked of the operator's own node. It is the truth about every payment; whatever anybody else answers
 * is a hint. Methods reject where the node cannot be asked.
 */
class ViemChain {
  private readonly abi;
  private readonly contract;

  constructor(
    private readonly viem: Viem,
    private readonly client: ReturnType<Viem["createPublicClient"]>,
    private readonly network: X402Network,
  ) {
    this.abi = viem.parseAbi(TOKEN_ABI);
    this.contract = { address: network.asset, abi: this.abi } as const;
  }

  /** Rejects where the node serves another chain, and where payments in the token could not be carried out. */
  token(): Promise<Token> {
    return readToken(this.viem, this.client, this.network);
  }

  async head(): Promise<ChainHead> {
    const [latest, finalized] = await Promise.all([
      this.client.getBlock({ blockTag: "latest" }),
      this.client.getBlock({ blockTag: "finalized" }),
    ]);
    return {
      latest: Number(latest.number),
      time: Number(latest.timestamp),
      finalized: Number(finalized.number),
      finalizedTime: Number(finalized.timestamp),
    };
  }

  /** What has become of the authorization, looked for from that block on. */
  async movement(authorization: Authorization, fromBlock: number): Promise<Movement> {
    if (!(await this.isUsed(authorization))) return { kind: "unused" };
    const { viem, client, network, abi } = this;
    const { from: authorizer, nonce } = authorization;
    const range = {
      address: network.asset,
      args: { authorizer, nonce },
      fromBlock: BigInt(fromBlock),
      toBlock: "latest",
      strict: true,
    } as const;
    const [log] = await client.getLogs({ ...range, event: viem.parseAbiItem(AUTHORIZATION_USED) });
    if (log === undefined) {
      const canceled = await client.getLogs({ ...range, event: viem.parseAbiItem(AUTHORIZATION_CANCELED) });
      return { kind: canceled.length > 0 ? "canceled" : "unseen" };
    }
    const receipt = await client.getTransactionReceipt({ hash: log.transactionHash });
    // The token tells of the transfer right after the authorization that it was made by.
    const transfer = viem
      .parseEventLogs({ abi, logs: receipt.logs, eventName: "Transfer" })
      .find(({ address, logIndex }) => address.toLowerCase() === network.asset && logIndex > log.logIndex);
    if (transfer === undefined) return { kind: "unseen" };
    const { to, value } = transfer.args;
    return {
      kind: "moved",
      transaction: log.transactionHash,
      sender: receipt.from.toLowerCase() as Address,
      block: Number(log.blockNumber),
      to: to.toLowerCase() as Address,
      value: String(value),
    };
  }

  /** Whether nobody had used it by that block; rejects where a node does not have it yet. */
  async unusedAt(authorization: Authorization, block: number): Promise<boolean> {
    return !(await this.isUsed(authorization, BigInt(block)));
  }

  /** Why the transfer would fail if it were sent now, by those terms where they are known; null if it would not. */
  async refusal(
    transfer: AuthorizedTransfer,
    { form }: Token,
    terms: GasTerms | null,
  ): Promise<string | null> {
    const { viem, client, network } = this;
    const call = transferCall(viem, form, transfer);
    if (call === null) return "the token takes signatures of plain accounts only";
    try {
      await client.simulateContract({ address: network.asset, ...call, ...terms });
      return null;
    } catch (error) {
      if (!(error instanceof viem.BaseError)) throw error;
      const reverted = error.walk((cause) => cause instanceof viem.ContractFunctionRevertedError);
      if (reverted !== null)
        return (reverted as { reason?: string }).reason ?? "the token refuses the transfer";
      if (OUT_OF_GAS.test(error.message)) return "it needs more gas than transfers are sent with";
      if (error.walk((cause) => cause instanceof viem.InsufficientFundsError) !== null)
        return "the account of this gateway that pays for gas is short of it";
      throw error;
    }
  }

  /** Whether the transaction still waits for a block, or is in one. */
  async fate(transaction: string): Promise<"waiting" | "mined" | "unknown"> {
    const hash = transaction as `0x${string}`;
    const found = await this.client.getTransaction({ hash }).catch((error: unknown) => {
      if (error instanceof this.viem.TransactionNotFoundError) return null;
      throw error;
    });
    if (found === null) return "unknown";
    return found.blockNumber === null ? "waiting" : "mined";
  }

  /**
   * Gas that the transaction used in vain; 0 if it was not reverted, or because the authorization had been used by then: by
   * another transaction of the gateway, or by the payer, who paid gas for that.
   */
  async wastedBy(transaction: string, authorization: Authorization): Promise<number> {
    const receipt = await this.client.getTransactionReceipt({ hash: transaction as `0x${string}` });
    const isWasted =
      receipt.status === "reverted" && (await this.unusedAt(authorization, Number(receipt.blockNumber)));
    return isWasted ? Number(receipt.gasUsed) : 0;
  }

  /** Whether code decides for the address about signatures: a contract wallet, or an account that delegates to one. */
  async isContract(address: Address): Promise<boolean> {
    const code = await this.client.getCode({ address });
    return code !== undefined && code !== "0x";
  }

  isSanctioned(oracle: Address, payer: Address): Promise<boolean> {
    const abi = this.viem.parseAbi(["function isSanctioned(address) view returns (bool)"]);
    return this.client.readContract({ address: oracle, abi, functionName: "isSanctioned", args: [payer] });
  }

  /** Transactions of the last blocks that brought some of the token to `payTo`. */
  async arrivals(blocks: number): Promise<string[]> {
    const { viem, client, network } = this;
    const latest = await client.getBlockNumber();
    const logs = await client.getLogs({
      address: network.asset,
      event: viem.parseAbiItem(TOKEN_ABI[1]),
      args: { to: network.payTo },
      fromBlock: latest > blocks ? latest - BigInt(blocks) : 0n,
      toBlock: latest,
    });
    return [...new Set(logs.map(({ transactionHash }) => transactionHash))];
  }

  /** The account's balance, in wei. */
  gasOf(address: Address): Promise<bigint> {
    return this.client.getBalance({ address });
  }

  private isUsed({ from, nonce }: Authorization, blockNumber?: bigint): Promise<boolean> {
    return this.client.readContract({
      ...this.contract,
      functionName: "authorizationState",
      args: [from, nonce],
      ...(blockNumber === undefined ? {} : { blockNumber }),
    });
  }
}

const RPC_TIMEOUT_MS = 5_000;
