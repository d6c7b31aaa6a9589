import type { Hex } from "viem";
import type { GasAccountId, GasNonce } from "../../gas-line.ts";
import { MAX_QUEUED } from "../../gas-line.ts";
import { externalOf, type SignedPayment } from "./authorization.ts";
import { type GasDeps, GasLine } from "./gas-line.ts";
import { type GasCall, GasNode } from "./gas-node.ts";
import type { CurrentPrice } from "./gas-price.ts";
import { type Address, chainIdOf, type Token, type X402Network } from "./network.ts";
import type { GasTerms, SettleHint, Settler } from "./settler.ts";
import { transferCall } from "./transfer-call.ts";

/**
 * An account of the gateway that pays for gas. Each transfer takes a nonce in the store, with its signed transaction, before
 * it is broadcast: whatever ends meanwhile, what is signed can be broadcast again, and no two processes with the key sign for
 * the same nonce.
 */
export class GasAccount implements Settler {
  static async open(network: X402Network, gasKey: Hex, deps: GasDeps): Promise<GasAccount> {
    return new GasAccount(network, await GasNode.open(network, gasKey), deps);
  }

  private readonly id: GasAccountId;
  private readonly line: GasLine;
  /** Transfers of this process take their nonces one after another: each signs for its own. */
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly network: X402Network,
    private readonly node: GasNode,
    private readonly deps: GasDeps,
  ) {
    this.id = { chainId: chainIdOf(network), address: node.address };
    this.line = new GasLine(this.id, node, deps);
  }

  async settle(payment: SignedPayment, { form }: Token): Promise<SettleHint> {
    const { viem } = this.node;
    const call = transferCall(viem, form, payment);
    if (call === null) return { problem: "the token takes signatures of plain accounts only" };
    const transfer = { to: this.network.asset, data: viem.encodeFunctionData(call) };
    try {
      return await this.carryOut(externalOf(payment), transfer);
    } catch (error) {
      if (!(error instanceof viem.BaseError)) throw error;
      return { problem: error.shortMessage };
    }
  }

  /** Nobody else has its key, so this holds after a crash too, and for each transaction that took another's place. */
  async hasSent(sender: Address): Promise<boolean> {
    return sender === this.node.address;
  }

  async terms(): Promise<GasTerms> {
    return this.node.terms(await this.node.price());
  }

  /** Has nonces filled that wait for a block; resolves with how many there are. */
  tend(): Promise<number> {
    return this.line.tend();
  }

  private async carryOut(payment: string, transfer: GasCall): Promise<SettleHint> {
    const [mined, price] = await Promise.all([this.node.mined(), this.node.price()]);
    // A transaction of this payment may have been mined since the caller looked: a second one would only cost gas.
    if (await this.node.fails(transfer, price)) return { problem: "the transfer would fail now" };
    let from = mined;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const taking = this.turn.then(() => this.take(payment, transfer, from, price));
      this.turn = taking.catch(() => {});
      const row = await taking;
      if (row === null) return { problem: `${MAX_QUEUED} transfers wait for a block already` };
      const latest = row.signed.at(-1)!;
      const transaction = this.node.hashOf(latest);
      const refused = await this.node.broadcast(latest);
      if (refused === null) return { transaction };
      if (!refused.isUsed || (await this.node.hasAny(row.signed)))
        return { transaction, problem: refused.problem };
      // The node that was asked before is behind. The nonce is the payment's no more.
      await this.deps.store.replace(this.id, row, { ...row, payment: null });
      from = row.nonce + 1;
    }
    return { problem: "the node does not say which nonce is free" };
  }

  /** The row with which the payment stands in line; null where the line is full. */
  private async take(
    payment: string,
    transfer: GasCall,
    mined: number,
    price: CurrentPrice,
  ): Promise<GasNonce | null> {
    const { store, clock } = this.deps;
    let nonce = mined;
    for (;;) {
      const now = clock.now();
      const signed = [await this.node.sign(transfer, nonce, price)];
      const row = { nonce, payment, signed, createdAt: now, signedAt: now };
      const taken = await store.take(this.id, row, mined);
      if (taken.kind === "taken") return row;
      if (taken.kind === "known") return taken.row;
      if (taken.kind === "full") return null;
      // Another process may take that one too: it is asked for again, at most as often as there are nonces to wait for.
      nonce = taken.nonce;
    }
  }
}

/** Nonces that a node which is behind may believe to be free. */
const MAX_ATTEMPTS = 32;
