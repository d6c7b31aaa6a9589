import type { TokenizerFamily } from "./families.ts";

/**
 * The vocabulary that an answer of a model is counted in. Exact for OpenAI's models and what shares their
 * vocabularies (gpt-oss); others publish none that is kept up for offline use, and are counted in o200k, which
 * is nearest to what they have in size.
 */
export const familyOf = (...names: readonly string[]): TokenizerFamily =>
  names.some((name) => CL100K.test(name)) ? "cl100k" : "o200k";

/** OpenAI's models before GPT-4o: GPT-4, its turbo, 32k and dated versions, and GPT-3.5. */
const CL100K = /(^|\/)gpt-(3\.5|35|4(-(turbo|32k|vision|\d{4}))?($|[:@]|(?<=turbo|32k|vision|\d{4})-))/;
