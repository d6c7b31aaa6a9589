import { type Refusal, refuse } from "./refusal.ts";

/**
 * The store of keys and books cannot be reached, or did not answer in time. Whatever was asked may have
 * happened. No fault of the gateway's: it ends as `bookkeepingDown`.
 */
export class StoreUnreachable extends Error {
  override name = "StoreUnreachable";
}

/**
 * Other requests kept changing the same rows first, or too many wait for the store; nothing was written. The store works: a retry a moment later
 * succeeds. It ends as `contended`.
 */
export class StoreContended extends Error {
  override name = "StoreContended";
}

/** The store is there, but not for this version to use: a start has to end with what its operator can do. */
export class StoreUnusable extends Error {
  override name = "StoreUnusable";
}

/** The books cannot be written, or asked: serving would be acknowledging what may be lost. */
export const bookkeepingDown = (): Refusal =>
  refuse(
    "internal_error",
    `The gateway cannot record requests right now, so it serves none. Retry in ${RETRY_S} s.`,
    { retryAfterS: RETRY_S },
  );

const RETRY_S = 5;

export const contended = (): Refusal =>
  refuse(
    "rate_limited",
    `Too many requests change the same run, key or budget, or wait for the database, at once, so this one changed nothing. Retry in ${CONTENDED_RETRY_S} s.`,
    { retryAfterS: CONTENDED_RETRY_S },
  );

const CONTENDED_RETRY_S = 1;
