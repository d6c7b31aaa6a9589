import { type Refusal, refuse } from "./refusal.ts";

/**
 * The store of keys and books cannot be reached, or did not answer in time. Whatever was asked may have
 * happened. No fault of the gateway's: it ends as `bookkeepingDown`.
 */
export class StoreUnreachable extends Error {
  override name = "StoreUnreachable";
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
