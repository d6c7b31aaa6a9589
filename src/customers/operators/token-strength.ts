/** Why a start refuses an admin token; null where it does not. */
export const weaknessOf = (token: string): string | null =>
  token.length < MIN_TOKEN_CHARACTERS
    ? `must have ${MIN_TOKEN_CHARACTERS} characters or more, and has ${token.length}`
    : null;

/** Whether an admin token that a start accepts is made of words, years and rows, which guessers try first. */
export const isGuessable = (token: string): boolean => guessingBits(token) < MIN_TOKEN_BITS;

const MIN_TOKEN_CHARACTERS = 16;
/** At 100,000 guesses a second, 20,000 years. */
const MIN_TOKEN_BITS = 56;

export const BETTER_TOKEN =
  "Set a random one, such as `openssl rand -hex 32` prints, or none: the gateway then makes one.";

/**
 * How many bits a guesser has to find who knows how people make up secrets: from words, years, rows of characters and
 * repetitions. An estimate for the operator's own token, to be said at start; generous to what looks random.
 */
function guessingBits(token: string): number {
  const [, once] = /^(.{1,32}?)\1+$/s.exec(token) ?? [];
  const parts = (once ?? token).match(/[a-z]+|[A-Z][a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+/g) ?? [];
  return parts.reduce((sum, part) => sum + bitsOf(part), 0);
}

function bitsOf(part: string): number {
  if (/^(19|20)[0-9]{2}$/.test(part)) return YEAR_BITS;
  const single = /[A-Za-z]/.test(part) ? 4.7 : /[0-9]/.test(part) ? 3.3 : 5;
  const bits = surprises(part) * single;
  return isPronounceable(part) ? Math.min(bits, WORD_BITS * Math.ceil(part.length / WORD_LETTERS)) : bits;
}

/** Characters that do not just repeat the one before or go on from it, as in `aaa`, `abc`, `4321` and `qwer`. */
function surprises(part: string): number {
  let count = 0;
  for (let at = 0; at < part.length; at++) if (at === 0 || !isNext(part[at - 1]!, part[at]!)) count += 1;
  return count;
}

const isNext = (one: string, other: string): boolean =>
  Math.abs(other.charCodeAt(0) - one.charCodeAt(0)) <= 1 || KEYBOARD.includes((one + other).toLowerCase());

const KEYBOARD = "qwertyuiop asdfghjkl zxcvbnm";

/** As words of most languages are: vowels between few consonants. */
function isPronounceable(part: string): boolean {
  if (part.length < 3 || !/^[A-Za-z]+$/.test(part)) return false;
  const vowels = part.match(/[aeiouy]/gi)?.length ?? 0;
  return vowels >= part.length / 5 && vowels <= (part.length * 2) / 3 && !/[^aeiouy]{5}/i.test(part);
}

/** One of 16,000 words; a long run of letters is several. */
const WORD_BITS = 14;
const WORD_LETTERS = 6;
const YEAR_BITS = 7;
