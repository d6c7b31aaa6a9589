import type { EpochMs } from "../units/clock.ts";
import type { Claim } from "./account.ts";

/**
 * A claim waits this long for the owner of the address. It must end sometime: a claim for a mistyped address
 * would block its balance for ever, and one made for somebody else's address would lie in wait for their
 * first sign-in.
 */
export const CLAIM_DAYS = 7;

export const isPending = ({ at }: Claim, now: EpochMs): boolean => now < at + CLAIM_DAYS * 86_400_000;
