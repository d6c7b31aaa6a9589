import { BASE58_CLASS, randomBase58 } from "../../units/base58.ts";
import type { RandomBytes } from "../../units/random.ts";

/**
 * Bearer secrets. Both kinds carry more than 180 random bits, so a plain SHA-256 is enough to store them by:
 * there is nothing to guess, and a slow hash would only slow every request down.
 */
const KEY_PREFIX = "or-live-";
const RECOVERY_PREFIX = "or-rec-";

const KEY_CHARACTERS = 32;
const RECOVERY_CHARACTERS = 44;
const SHOWN_CHARACTERS = 12;

const KEY_FORM = new RegExp(`^${KEY_PREFIX}${BASE58_CLASS}{${KEY_CHARACTERS}}$`);
const RECOVERY_FORM = new RegExp(`^${RECOVERY_PREFIX}${BASE58_CLASS}{${RECOVERY_CHARACTERS}}$`);

export const newApiKey = (random: RandomBytes): string => KEY_PREFIX + randomBase58(KEY_CHARACTERS, random);

export const newRecoverySecret = (random: RandomBytes): string =>
  RECOVERY_PREFIX + randomBase58(RECOVERY_CHARACTERS, random);

export const isApiKey = (secret: string): boolean => KEY_FORM.test(secret);
export const isRecoverySecret = (secret: string): boolean => RECOVERY_FORM.test(secret);

/** The part of a key that is stored and shown, for people to tell their keys apart by. */
export const shownPrefix = (secret: string): string => secret.slice(0, SHOWN_CHARACTERS);
export const isShownPrefix = (secret: string): boolean =>
  secret.startsWith(KEY_PREFIX) && secret.length === SHOWN_CHARACTERS;
