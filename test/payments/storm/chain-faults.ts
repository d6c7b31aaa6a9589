import { createWalletClient, http } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import type { LocalChain, WaitingTransaction } from "../../fakes/chain/chain.ts";
import type { Random } from "../../sim/random.ts";

/** What happens to transactions of a gas account that nodes have accepted. */
export class ChainFaults {
  readonly counts = { dropped: 0, replaced: 0, fees: 0, reorgs: 0 };
  private readonly account: PrivateKeyAccount;
  private baseFee = GWEI;

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

  /** Fees stay as high as they are: what pays too little is in no block. */
  async mine(): Promise<void> {
    await this.chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: this.baseFee });
    await this.chain.mine();
  }

  /** When all is over, blocks ask for more than anybody has offered. */
  settle(): void {
    this.baseFee = 2n * BASE_FEES.at(-1)!;
  }

  async disturb(): Promise<void> {
    const { chain, random, account, counts } = this;
    const waiting = await chain.waitingOf(account.address);
    if (random.chance(0.2)) {
      this.baseFee = random.pick(BASE_FEES);
      counts.fees += 1;
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
const BASE_FEES = [GWEI, 5n * GWEI, 25n * GWEI, 100n * GWEI];
