import type { Authorization, SignedPayment } from "../../src/payments/rails/x402/authorization.ts";
import { externalOf } from "../../src/payments/rails/x402/authorization.ts";
import type { Chain, Movement } from "../../src/payments/rails/x402/chain.ts";
import type { Address, X402Network } from "../../src/payments/rails/x402/network.ts";
import type { SettleHint } from "../../src/payments/rails/x402/settler.ts";
import type { Clock } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import type { Random } from "./random.ts";

/**
 * A chain whose last blocks are replaced now and then, with and without what was in them, a node that fails, and a
 * settler that lies or forgets.
 */
export class SimulatedChain {
  private readonly blocks: { time: number; mined: Mined[] }[] = [];
  private mempool: { authorization: Authorization; mined: Mined }[] = [];
  /** Ever asked for, to be asked for again. */
  private readonly sent = new Map<string, SignedPayment>();
  private readonly poor = new Set<string>();
  private readonly settled = new Set<string>();
  /** Transfers wait long for a block. */
  private isCrowded = false;
  private isCalm = false;
  reorgs = 0;

  constructor(
    private readonly random: Random,
    private readonly time: Pick<Clock, "now">,
  ) {
    for (let index = 0; index <= FINAL_BLOCKS + BEHIND; index++) this.mine();
  }

  /** Nothing fails from then on. */
  calm(): void {
    this.isCalm = true;
  }

  /** Transfers that their payers sent. */
  byPayers(): ReadonlySet<string> {
    const mined = this.blocks.flatMap((block) => block.mined);
    return new Set(mined.flatMap(({ sender, external }) => (sender === PAYER ? [external] : [])));
  }

  /** Whether the settler's transaction was ever in a block, also one that was replaced. */
  wasSettled(external: string): boolean {
    return this.settled.has(external);
  }

  /** What each transfer has brought. */
  moved(): Map<string, number> {
    const moved = new Map<string, number>();
    for (const { mined } of this.blocks)
      for (const { external, value } of mined)
        moved.set(external, (moved.get(external) ?? 0) + Number(value) * 1_000);
    return moved;
  }

  settle(signed: SignedPayment): Promise<SettleHint> {
    const transaction = this.isCalm || this.random.chance(0.8) ? this.send(signed, SETTLER) : "0xlie";
    return Promise.resolve(
      this.random.chance(0.3) ? { problem: "no answer", isAnswerLost: true } : { transaction },
    );
  }

  send({ authorization, accepted }: SignedPayment, sender: Address): string {
    const external = externalOf({ authorization, accepted, signature: "0x" });
    const transaction = `${sender}/${external}`;
    this.sent.set(transaction, { authorization, accepted, signature: "0x" });
    if (
      !this.poor.has(external) &&
      !this.isUsed(external) &&
      !this.mempool.some(({ mined }) => mined.external === external)
    )
      this.mempool.push({
        authorization,
        mined: { external, value: authorization.value, transaction, sender },
      });
    return transaction;
  }

  mine(time = Math.floor(this.time.now() / 1_000)): void {
    const mined: Mined[] = [];
    const left: typeof this.mempool = [];
    if (this.random.chance(0.05)) this.isCrowded = !this.isCrowded;
    for (const one of this.mempool) {
      const endS = Number(one.authorization.validBefore);
      // A branch that replaces this one may have had it in a block from before its end.
      if (endS + (DEEPEST_REORG * BLOCK_MS) / 1_000 <= time || this.isUsed(one.mined.external)) continue;
      if (endS > time && this.random.chance(this.isCrowded ? 0.1 : 0.9)) mined.push(one.mined);
      else left.push(one);
    }
    for (const { sender, external } of mined) if (sender === SETTLER) this.settled.add(external);
    this.mempool = left;
    this.blocks.push({ time, mined });
  }

  /** The transactions of the last blocks are gone; only some wait for a block again. */
  reorganise(): void {
    this.reorgs += 1;
    const depth = 1 + this.random.below(DEEPEST_REORG);
    const dropped = this.blocks.splice(-depth);
    for (const { mined } of dropped) {
      for (const one of mined) {
        // Some have spent their money elsewhere meanwhile.
        if (this.random.chance(0.2)) this.poor.add(one.external);
        else if (this.random.chance(0.3)) this.send(this.sent.get(one.transaction)!, one.sender);
      }
    }
    for (const { time } of dropped) this.mine(time);
  }

  private isUsed(external: string, upTo = this.blocks.length): boolean {
    for (let index = upTo - 1; index >= Math.max(0, upTo - 400); index--)
      if (this.blocks[index]!.mined.some((one) => one.external === external)) return true;
    return false;
  }

  node(): Chain {
    const failing = async () => {
      if (!this.isCalm && this.random.chance(0.02)) throw new Error("the node is away");
    };
    const nameOf = (authorization: Authorization) =>
      [NETWORK.network, NETWORK.asset, authorization.from, authorization.nonce].join("/");
    /** One of several nodes behind the address may lag. */
    const known = () => this.blocks.length - (!this.isCalm && this.random.chance(0.05) ? BEHIND : 0);
    return {
      token: async () => TOKEN,
      head: async () => {
        await failing();
        const latest = known() - 1;
        const finalized = Math.max(0, latest - FINAL_BLOCKS);
        return {
          latest,
          time: this.blocks[latest]!.time,
          finalized,
          finalizedTime: this.blocks[finalized]!.time,
        };
      },
      movement: async (authorization): Promise<Movement> => {
        await failing();
        const external = nameOf(authorization);
        const blocks = known();
        for (let block = blocks - 1; block >= Math.max(0, blocks - 400); block--) {
          const found = this.blocks[block]!.mined.find((one) => one.external === external);
          if (found !== undefined)
            return {
              kind: "moved",
              transaction: found.transaction,
              sender: found.sender,
              block,
              to: NETWORK.payTo,
              value: found.value,
            };
        }
        return { kind: "unused" };
      },
      unusedAt: async (authorization, block) => {
        if (block >= known()) throw new Error("the node does not have the block");
        return !this.isUsed(nameOf(authorization), block + 1);
      },
      refusal: async ({ authorization }) => {
        await failing();
        const external = nameOf(authorization);
        return this.isUsed(external) ? "used" : this.poor.has(external) ? "too little money" : null;
      },
      fate: async (transaction) =>
        this.mempool.some(({ mined }) => mined.transaction === transaction) ? "waiting" : "unknown",
      wastedBy: async () => 0,
      isContract: async () => false,
      isSanctioned: async () => false,
      gasOf: async () => 1n,
      arrivals: async () => [],
    };
  }
}

interface Mined {
  readonly external: string;
  readonly value: string;
  readonly transaction: string;
  readonly sender: Address;
}

/** The account that the settler sends from, and one of payers who do so themselves. */
export const SETTLER: Address = `0x${"c".repeat(40)}`;
export const PAYER: Address = `0x${"d".repeat(40)}`;

export const BLOCK_MS = 2_000;
const FINAL_BLOCKS = 10;
const DEEPEST_REORG = 8;
/** More than become final while a transfer may still be made. */
const BEHIND = 200;
export const NETWORK: X402Network = {
  network: "eip155:1",
  asset: `0x${"a".repeat(40)}`,
  payTo: `0x${"b".repeat(40)}`,
  rpc: "",
  settledBy: { facilitator: "" },
  confirmations: 2,
  finalizedAbove: 30_000_000_000 as NanoUsd,
  wastedGasPerHour: 3_000_000,
  waitMs: 10_000,
};
const TOKEN = { name: "T", version: "1", decimals: 6, form: "bytes" } as const;
