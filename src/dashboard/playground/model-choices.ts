import type { EntryAnswer, PriceAnswer } from "../../api/catalog.ts";
import type { MeAnswer } from "../../api/me.ts";

export interface ModelChoice {
  readonly id: string;
  readonly name: string;
  /** Null where it costs nothing. */
  readonly price: PriceAnswer | null;
  readonly readsImages: boolean;
}

export const MAX_ANSWER_TOKENS = 1_024;

/**
 * What a key may call in a chat: `allowed` are its models, null for all. A model's free route has a name of its
 * own, which costs nothing.
 */
export function modelChoices(
  models: readonly EntryAnswer[],
  allowed: readonly string[] | null,
): readonly ModelChoice[] {
  const served = models
    .filter(({ available, surfaces }) => available && surfaces.includes("chat.completions"))
    .flatMap(({ id, name, free, price, input_modalities }) => {
      const readsImages = input_modalities.includes("image");
      return [
        ...(free ? [{ id: `${id}:free`, name: `${name} (free)`, price: null, readsImages }] : []),
        ...(price === null ? [] : [{ id, name, price: isNothing(price) ? null : price, readsImages }]),
      ];
    });
  if (allowed === null) return served;
  return served.filter(({ id }) => allowed.includes(id) || allowed.includes(id.replace(/:free$/, "")));
}

/** One whose worst case the credit covers, or a free one while free requests are left. */
export const canAnswer = ({ price }: ModelChoice, { available_usd, open_tier }: Means): boolean =>
  price === null ? open_tier.used < open_tier.limit : worstUsd(price) <= available_usd;

/** Null where none can answer now. What is paid for comes first. */
export function firstToAnswer(models: readonly ModelChoice[], me: Means): ModelChoice | null {
  const able = models.filter((model) => canAnswer(model, me));
  return able.find(({ price }) => price !== null) ?? able[0] ?? null;
}

type Means = Pick<MeAnswer, "available_usd" | "open_tier">;

/** A short question, and an answer as long as the playground lets it become. */
const worstUsd = ({ input, output }: PriceAnswer): number =>
  (input * SHORT_QUESTION_TOKENS + output * MAX_ANSWER_TOKENS) / 1_000_000;

const SHORT_QUESTION_TOKENS = 1_000;

const isNothing = ({ input, output }: PriceAnswer): boolean => input === 0 && output === 0;
