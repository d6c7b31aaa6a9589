/** What a transaction pays for each unit of gas, in wei. */
export interface GasPrice {
  readonly max: bigint;
  /** For who makes the block; null on chains without a base fee (before EIP-1559). */
  readonly tip: bigint | null;
}

/** What a new transaction should pay now, and what the present block asks of everybody. */
export interface CurrentPrice extends GasPrice {
  readonly base: bigint;
}

/** What a transaction has to pay to take the place of another: nodes ask for a tenth more, some for an eighth. */
export const raised = (previous: GasPrice, now: CurrentPrice): GasPrice => ({
  max: larger(now.max, anEighthMore(previous.max)),
  tip: previous.tip === null ? null : larger(now.tip ?? 0n, anEighthMore(previous.tip)),
});

/** No block takes it. */
export const isUnderpriced = ({ max }: GasPrice, { base }: CurrentPrice): boolean => max < base;

/** Whether paying more may help a transaction that was not taken: one that pays far more than others waits for another reason. */
export const mayBeRaised = ({ max }: GasPrice, now: CurrentPrice): boolean => max < MAX_OVERPAID * now.max;

const anEighthMore = (fee: bigint): bigint => fee + fee / 8n + 1n;
const larger = (one: bigint, other: bigint): bigint => (one > other ? one : other);

const MAX_OVERPAID = 4n;
