import type { Route } from "../catalog/catalog.ts";
import type { RouteState } from "../routing/candidate.ts";
import { boundedCache } from "../units/bounded-cache.ts";
import type { KeyId } from "../units/id.ts";

/**
 * How much of an answer's ceiling is held before it begins. Agents name ceilings of 64,000 tokens and write a few
 * hundred: held whole, three of them fill a cap of $5. So a hold begins with what may be needed, and grows as the
 * answer does (generation/hold).
 *
 * What may be needed is the largest of three. What a host may have thought, unseen, by the time at which it must
 * have given its first token, at one pace for all hosts: what other customers' answers measured must not size this
 * hold. A share of the ceiling, which bounds how far holds can ever fall short of what hosts bill. And what this
 * key's answers of this model came to lately.
 */
export class ExpectedOutput {
  private readonly answers = boundedCache<string, RecentAnswers>(MAX_PAIRS);

  constructor(readonly growth: HoldGrowth = GROWTH) {}

  /** Output tokens to hold at once of `ceiling`; with no limits, the answer could come to `longest`. */
  atOnce(ceiling: number, longest: number, { rotationId, model, firstTokenMs }: ExpectedOutputQuery): number {
    const { tokensPerSecond, aheadTokens } = this.growth;
    const thought = tokensIn(firstTokenMs, tokensPerSecond) + aheadTokens;
    const least = Math.max(thought, Math.ceil(longest / MAX_TO_ONE));
    if (least >= ceiling) return ceiling;
    const lately = this.answers.get(pairOf(rotationId, model));
    return Math.min(ceiling, Math.max(least, lately?.expected ?? 0));
  }

  /** An answer of the model to the key's request came to so many tokens. */
  note(rotationId: KeyId, model: string, tokens: number): void {
    const pair = pairOf(rotationId, model);
    let lately = this.answers.get(pair);
    if (lately === undefined) this.answers.set(pair, (lately = new RecentAnswers()));
    lately.add(tokens);
  }

  /** Tokens a second that the route does not exceed unseen: twice what it was measured at over long stretches. */
  paceOf(route: Route, routeState: Pick<RouteState, "speed">): number {
    const measured = 2 * (routeState.speed(route)?.sustainedTokensPerSecond ?? 0);
    return Math.max(this.growth.tokensPerSecond, Math.min(measured, MAX_PACE));
  }
}

/** Whose request it is, for which model, and by when it has its first token. */
export interface ExpectedOutputQuery {
  readonly rotationId: KeyId;
  readonly model: string;
  readonly firstTokenMs: number;
}

/** How holds grow. */
export interface HoldGrowth {
  /** What any host may think unseen before its first token, and the least pace at which holds grow in silence. */
  readonly tokensPerSecond: number;
  /** Tokens that are held before they are needed, at least. */
  readonly aheadTokens: number;
  /** A hold grows by so many tokens at a time; where there is no room for that, by smaller steps, which use it up. */
  readonly stepTokens: number;
  readonly leastStepTokens: number;
}

const GROWTH: HoldGrowth = { tokensPerSecond: 250, aheadTokens: 512, stepTokens: 4_096, leastStepTokens: 64 };

export const tokensIn = (ms: number, pace: number): number => Math.ceil((ms * pace) / 1_000);

/** Tokens to hold before they are needed: those on the way, and what a host writes between two looks. */
export const aheadOf = (pace: number, { aheadTokens }: HoldGrowth): number =>
  Math.max(aheadTokens, tokensIn(CHECK_EVERY_MS, pace));

/** While nothing comes, a hold is looked at this often. */
export const CHECK_EVERY_MS = 2_000;

/**
 * A host that stalls and then sends what it wrote at once looks faster than any is. Where one does think faster than
 * this, unseen, the hold catches up as soon as the host says so.
 */
const MAX_PACE = 2_000;

/** An answer comes to at most this many times what is held of it. */
const MAX_TO_ONE = 8;

/** Keys and models whose answers are remembered; the idlest are forgotten first. A pair takes some 300 bytes. */
const MAX_PAIRS = 20_000;

const pairOf = (rotationId: KeyId, model: string): string => `${rotationId} ${model}`;

/** The last answers of a key by one model. */
class RecentAnswers {
  /** Zero until there are enough of them. */
  expected = 0;
  private readonly tokens = new Uint32Array(ANSWERS);
  private count = 0;

  add(tokens: number): void {
    this.tokens[this.count % ANSWERS] = Math.min(tokens, MAX_TOKENS);
    this.count += 1;
    if (this.count < MIN_ANSWERS) return;
    const known = this.tokens.slice(0, this.count).sort();
    this.expected = Math.ceil(known[Math.floor(known.length * QUANTILE)]! * MARGIN);
  }
}

const ANSWERS = 16;
const MIN_ANSWERS = 4;
/** One in eight may be longer, and grows. */
const QUANTILE = 0.875;
const MARGIN = 1.5;
const MAX_TOKENS = 2 ** 31;
