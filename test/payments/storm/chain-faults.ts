import { createWalletClient, http } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import type { LocalChain, WaitingTransaction } from "../../fakes/chain/chain.ts";
import type { Random } from "../../sim/random.ts";

/** What happens to transactions of a gas account that nodes have accepted. */
export class ChainFaults {
  readonly counts = { dropped: 0, replaced: 0, raised: 0, reorgs: 0 };
  private readonly account: PrivateKeyAccount;

  constructor(
    private readonly chain: LocalChain,
    gasKey: `0x${string}`,
    private readonly random: Random,
  ) {
    this.account = privateKeyToAccount(gasKey);
  }

  /** Undoes the last blocks, but none that is final. */
  async reorganise(deepest: number): Promise<void> {
    await this.chain.reorg(1 + this.random.below(deepest));
    this.counts.reorgs += 1;
  }

  async disturb(): Promise<void> {
    const { chain, random, account, counts } = this;
    const waiting = await chain.waitingOf(account.address);
    if (random.chance(0.2)) {
      // What waits pays too little for the next block.
      await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 100n * GWEI });
      counts.raised += 1;
    }
    for (const one of waiting) {
      const fate = random.below(4);
      if (fate === 0) await this.drop(one);
      if (fate === 1) await this.replace(one);
    }
  }

  private async drop({ hash }: WaitingTransaction): Promise<void> {
    await this.chain.client.dropTransaction({ hash });
    this.counts.dropped += 1;
  }

  /** As the operator does it who cancels a transaction by hand. */
  private async replace({ nonce }: WaitingTransaction): Promise<void> {
    const wallet = createWalletClient({ account: this.account, transport: http(this.chain.rpc) });
    const sent = wallet.sendTransaction({
      chain: this.chain.client.chain,
      to: this.account.address,
      nonce,
      gas: 21_000n,
      maxFeePerGas: 1_000n * GWEI,
      maxPriorityFeePerGas: 500n * GWEI,
    });
    // A block may have taken the nonce meanwhile.
    await sent.then(
      () => {
        this.counts.replaced += 1;
      },
      () => {},
    );
  }
}

const GWEI = 10n ** 9n;
