import { BASE58_CLASS, randomBase58 } from "../../units/base58.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { Refusal } from "../../units/errors/refusal.ts";
import type { OperatorRole } from "../../units/operator-roles.ts";
import type { RandomBytes } from "../../units/random.ts";
import type { SecretHash } from "../../units/secret-hash.ts";

/** Somebody who operates the gateway with a token of their own. */
export interface Operator {
  readonly name: string;
  readonly role: OperatorRole;
  readonly expiresAt: EpochMs | null;
}

/** One that is kept in the store, not in the configuration. */
export interface StoredOperator extends Operator {
  readonly tokenHash: SecretHash;
  readonly createdAt: EpochMs;
}

/** As requests are answered with, wherever the token is kept; environment: the first admin token. */
export interface KnownOperator extends Operator {
  readonly source: "store" | "configuration" | "environment";
  readonly createdAt: EpochMs | null;
}

/** Read for each request, so that a removed operator is refused from the next one on, by every process. */
export interface OperatorStore {
  withToken(hash: SecretHash): Promise<StoredOperator | null>;
  list(): Promise<readonly StoredOperator[]>;
  /** `decide` is given those that there are, and may be run more than once; what it returns is written, or removed. */
  change(
    name: string,
    decide: (known: StoredOperator | null, others: number) => StoredOperator | "remove" | Refusal,
  ): Promise<StoredOperator | "remove" | Refusal>;
}

/** 257 random bits: a plain SHA-256 is enough to store them by. */
const PREFIX = "or-op-";
const CHARACTERS = 44;
const FORM = new RegExp(`^${PREFIX}${BASE58_CLASS}{${CHARACTERS}}$`);

export const newOperatorToken = (random: RandomBytes): string => PREFIX + randomBase58(CHARACTERS, random);
export const isOperatorToken = (token: string): boolean => FORM.test(token);

/** The list is read whole, and shown on one page. */
export const MAX_OPERATORS = 200;
