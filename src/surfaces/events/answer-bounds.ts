/**
 * What an answer may consist of, whatever its host sends: tool calls, blocks and choices are remembered until it ends,
 * and need no tokens of text. A client's ceiling bounds tokens, so it bounds bytes.
 */
export class AnswerParts {
  private count = 0;

  /** One more begins. Throws `TooManyParts`, which the judge of the answer takes for a failure of its host. */
  begin(): void {
    this.count += 1;
    if (this.count > MAX_PARTS) throw new TooManyParts();
  }
}

export class TooManyParts extends Error {
  constructor() {
    super(TOO_MANY_PARTS);
  }
}

/** Bytes of a host's answer of so many tokens at most: an event each, with the likelihoods of twenty others. */
export const mostAnswerBytes = (tokens: number): number => BYTES_BESIDES + tokens * BYTES_A_TOKEN;

export const MAX_PARTS = 1_024;
/** For receipts. */
export const TOO_MANY_PARTS = `the answer has more than ${MAX_PARTS} tool calls, blocks or choices`;
/** Images, thoughts that hosts do not count, signs of life. */
const BYTES_BESIDES = 16 * 1024 * 1024;
const BYTES_A_TOKEN = 16 * 1024;
