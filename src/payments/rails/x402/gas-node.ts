import type { Hex, PrivateKeyAccount, PublicClient } from "viem";
import type { CurrentPrice, GasPrice } from "./gas-price.ts";
import { type Address, chainIdOf, type X402Network } from "./network.ts";
import type { GasTerms } from "./settler.ts";
import { OUT_OF_GAS, type Viem } from "./transfer-call.ts";

/** A call of a contract as a transaction makes it. */
export interface GasCall {
  readonly to: Address;
  readonly data: Hex;
}

/** What a gas account signs, and what it asks of its node. Methods that ask reject where the node cannot be asked. */
export class GasNode {
  static async open(network: X402Network, gasKey: Hex): Promise<GasNode> {
    const viem = await import("viem");
    const { privateKeyToAccount } = await import("viem/accounts");
    const client = viem.createPublicClient({
      transport: viem.http(network.rpc, { timeout: RPC_TIMEOUT_MS, retryCount: 0 }),
      cacheTime: 0,
    });
    return new GasNode(viem, client, privateKeyToAccount(gasKey), chainIdOf(network));
  }

  readonly address: Address;

  private constructor(
    readonly viem: Viem,
    private readonly client: PublicClient,
    private readonly account: PrivateKeyAccount,
    private readonly chainId: number,
  ) {
    this.address = account.address.toLowerCase() as Address;
  }

  /** How many of the account's transactions are in blocks. */
  mined(): Promise<number> {
    return this.client.getTransactionCount({ address: this.address, blockTag: "latest" });
  }

  /** How many are in final blocks. */
  final(): Promise<number> {
    return this.client.getTransactionCount({ address: this.address, blockTag: "finalized" });
  }

  async price(): Promise<CurrentPrice> {
    const { baseFeePerGas: base } = await this.client.getBlock({ blockTag: "latest" });
    if (base === null) return { max: await this.client.getGasPrice(), tip: null, base: 0n };
    const tip = await this.client.estimateMaxPriorityFeePerGas();
    return { max: base * ROOM_FOR_BASE + tip, tip, base };
  }

  terms({ max, tip }: GasPrice): GasTerms {
    const common = { account: this.address, gas: GAS };
    return tip === null
      ? { ...common, gasPrice: max }
      : { ...common, maxFeePerGas: max, maxPriorityFeePerGas: tip };
  }

  /** A transaction that makes the call; null: one that does nothing but fill its nonce. */
  sign(call: GasCall | null, nonce: number, { max, tip }: GasPrice): Promise<Hex> {
    const { chainId } = this;
    const common = { ...(call ?? { to: this.address }), nonce, chainId, gas: GAS };
    return tip === null
      ? this.account.signTransaction({ ...common, type: "legacy", gasPrice: max })
      : this.account.signTransaction({
          ...common,
          type: "eip1559",
          maxFeePerGas: max,
          maxPriorityFeePerGas: tip,
        });
  }

  /** What a signed transaction does and pays. */
  read(signed: Hex): { readonly call: GasCall | null; readonly price: GasPrice } {
    const { to, data, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = this.viem.parseTransaction(signed);
    return {
      call: data === undefined ? null : { to: to as Address, data },
      price:
        gasPrice === undefined
          ? { max: maxFeePerGas ?? 0n, tip: maxPriorityFeePerGas ?? 0n }
          : { max: gasPrice, tip: null },
    };
  }

  hashOf(signed: Hex): Hex {
    return this.viem.keccak256(signed);
  }

  /** Null where the node has it now; otherwise why it has not. */
  async broadcast(signed: Hex): Promise<BroadcastProblem | null> {
    try {
      await this.client.sendRawTransaction({ serializedTransaction: signed });
      return null;
    } catch (error) {
      const { viem } = this;
      if (!(error instanceof viem.BaseError)) throw error;
      if (ALREADY_KNOWN.test(error.message)) return null;
      const isUsed = error.walk((cause) => cause instanceof viem.NonceTooLowError) !== null;
      return { isUsed, problem: error.shortMessage };
    }
  }

  /** Whether the node has any of the transactions, in a block or waiting for one. */
  async hasAny(signed: readonly Hex[]): Promise<boolean> {
    const has = (one: Hex) =>
      this.client.getTransaction({ hash: this.hashOf(one) }).then(
        () => true,
        (error: unknown) => {
          if (error instanceof this.viem.TransactionNotFoundError) return false;
          throw error;
        },
      );
    return (await Promise.all(signed.map(has))).includes(true);
  }

  /** Whether the call would fail if the account sent it now. */
  async fails({ to, data }: GasCall, price: GasPrice): Promise<boolean> {
    const { viem, client } = this;
    return client.call({ ...this.terms(price), to, data }).then(
      () => false,
      (error: unknown) => {
        if (!(error instanceof viem.BaseError)) throw error;
        if (error.walk((one) => one instanceof viem.ExecutionRevertedError)) return true;
        if (OUT_OF_GAS.test(error.message)) return true;
        throw error;
      },
    );
  }
}

export interface BroadcastProblem {
  /** Another transaction has the nonce already. */
  readonly isUsed: boolean;
  readonly problem: string;
}

const ALREADY_KNOWN = /already known|already imported|already exists|known transaction/i;

/** A transfer takes some 90,000, and a contract that checks the signature more. */
const GAS = 300_000n;
/** The base fee rises by an eighth a block at most: it has doubled after six. */
const ROOM_FOR_BASE = 2n;
const RPC_TIMEOUT_MS = 5_000;
