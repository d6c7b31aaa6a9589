/**
 * How long a prompt is, and how long it may be, as a host's sentence says it. Only the host knows both: it counts with
 * the model's own tokenizer, and may serve the model with less context than its makers do.
 */
export function contextLengths(sentence: string): ContextLengths | null {
  for (const pattern of PAIRS) {
    const found = pattern.exec(sentence)?.groups;
    if (found === undefined) continue;
    const [tokens, most] = [numberOf(found.tokens!) + numberOf(found.more ?? "0"), numberOf(found.most!)];
    if (tokens > most) return { tokens, most };
  }
  const most = MOST.map((pattern) => pattern.exec(sentence)?.groups?.most).find(
    (found) => found !== undefined,
  );
  return most === undefined ? null : { tokens: null, most: numberOf(most) };
}

export interface ContextLengths {
  /** Null where the host says the bound alone. */
  readonly tokens: number | null;
  readonly most: number;
}

const numberOf = (digits: string): number => Number(digits.replaceAll(",", ""));

/** Up to ten million, with or without commas. */
const TOKENS = String.raw`(?<tokens>\d[\d,]{0,10})`;
const MORE = String.raw`(?<more>\d[\d,]{0,10})`;
const MAX_TOKENS = String.raw`(?<most>\d[\d,]{0,10})`;
const pattern = (text: string): RegExp =>
  new RegExp(text.replace("TOKENS", TOKENS).replace("MORE", MORE).replace("MOST", MAX_TOKENS), "i");

const PAIRS: readonly RegExp[] = [
  // Anthropic: the prompt; the prompt with its ceiling.
  pattern("TOKENS tokens > MOST"),
  pattern("TOKENS \\+ MORE > MOST"),
  // OpenAI, Azure, vLLM, xAI, Groq: “…, however you requested 5360 tokens”, “… your messages resulted in …”.
  pattern("maximum (?:context|prompt|model) length is MOST(?: tokens)?.{0,60}?\\D TOKENS(?: input)? tokens"),
  // Gemini.
  pattern("input token count \\(?TOKENS\\)? exceeds.{0,60}? \\(?MOST\\)?"),
  // SGLang; llama.cpp.
  pattern("\\(TOKENS tokens\\) (?:is longer than|exceeds).{0,60}?\\(MOST tokens"),
  // Together.
  pattern("must be <= MOST\\. Given: TOKENS `inputs` tokens and MORE"),
  // Moonshot.
  pattern("token limit: MOST \\(requested: TOKENS\\)"),
  // Mistral.
  pattern("contains TOKENS tokens.{0,60}? MOST maximum context"),
];

const MOST: readonly RegExp[] = [
  pattern("maximum (?:context|prompt|model) length (?:is|of) MOST"),
  pattern("token limit: MOST"),
  pattern("must be <= MOST"),
  pattern("input length should be \\[\\d+, ?MOST\\]"),
  pattern("maximum number of tokens allowed \\(?MOST"),
];
