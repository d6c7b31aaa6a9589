import { BASE58_CLASS, randomBase58 } from "../../units/base58.ts";
import type { RandomBytes } from "../../units/random.ts";

/** 257 random bits each: a plain SHA-256 is enough to store them by. */
const CHARACTERS = 44;
const SESSION_PREFIX = "or-sess-";
const LINK_PREFIX = "or-link-";

const SESSION_FORM = new RegExp(`^${SESSION_PREFIX}${BASE58_CLASS}{${CHARACTERS}}$`);

export const newSession = (random: RandomBytes): string => SESSION_PREFIX + randomBase58(CHARACTERS, random);
export const isSession = (secret: string): boolean => SESSION_FORM.test(secret);

/** What a sign-in mail carries. */
export const newLinkToken = (random: RandomBytes): string => LINK_PREFIX + randomBase58(CHARACTERS, random);
