import type { Model } from "../catalog/catalog.ts";
import {
  type ByRetention,
  type Price,
  type Rates,
  RETENTIONS,
  ratesAt,
  writesWithin,
} from "../catalog/price.ts";
import { NO_TOKENS, type Tokens } from "../catalog/tokens.ts";
import type { GenerationRequest, Usage } from "../surfaces/surface.ts";
import type { AnswerText, TextMoment, Written } from "../tokens/answer-text.ts";
import type { ConversationSize } from "./prompt-sizes.ts";

/**
 * The tokens that an answer is billed for, once it is over. What the host reports is evidence, not truth: each
 * part is believed within the bounds of the request, and otherwise counted, exactly, which takes a moment. Where
 * it cannot be counted in time, the estimate that ran next to the stream stands.
 *
 * The prompt may have as many tokens as its text has bytes, with what hosts put around it. The answer may have
 * as many as its ceiling, and not less than half of what its text comes to, because vocabularies differ by less than
 * that. Some hosts think beyond the ceiling: such thoughts are billed up to it, as nothing more was held for them.
 */
export function billedTokens(
  answer: EndedAnswer,
  billed: BilledRequest,
  count: Counts,
): BilledTokens | Promise<BilledTokens> {
  if (answer.isFree) return { tokens: NO_TOKENS, from: "host" };
  const prompt = believedPrompt(answer.usage, billed);
  const output = answer.isLeft ? null : believedOutput(answer, billed);
  return prompt !== null && output !== null
    ? { tokens: completed({ ...prompt, ...output }, billed.request), from: "host" }
    : countedTokens(answer, prompt, output, billed, count);
}

/** Whether the prompt need not be counted any more, as messages hosts tell its size at the beginning. */
export const isPromptReported = (usage: Usage | null, billed: BilledRequest): boolean =>
  believedPrompt(usage, billed) !== null;

/** Keeps for the conversation's next turn how many tokens the host reported for this prompt. */
export function notePrompt(size: ConversationSize, usage: Usage | null, served: BilledRequest): void {
  const prompt = believedPrompt(usage, served);
  if (prompt !== null) size.has(prompt.input + prompt.cacheRead + prompt.cacheWrite);
}

export interface EndedAnswer {
  readonly usage: Usage | null;
  /** What was written of it; of one whose client left, what that was given. */
  readonly text: Pick<AnswerText, "estimate" | "estimateSinceReport" | "all" | "sinceReport"> &
    Partial<Pick<AnswerText, "since">>;
  readonly isLeft: boolean;
  /** It was declined by a host that charges nothing for that. */
  readonly isFree: boolean;
}

interface BilledRequest {
  readonly request: GenerationRequest;
  readonly model: Pick<Model, "contextLength" | "maxOutputTokens">;
}

/** Exact counts, which may take a while; null when there is too much to do. */
export interface Counts {
  answer(texts: readonly string[]): Promise<number | null>;
  /** Tokens of the prompt's text. */
  prompt(): Promise<number | null>;
}

export interface BilledTokens {
  readonly tokens: Tokens;
  readonly from: "host" | "counted";
}

type PromptTokensBilled = Pick<
  Tokens,
  "input" | "cacheRead" | "cacheWrite" | "audioInput" | "cacheWrites" | "longestPrompt"
>;
type OutputTokensBilled = Pick<Tokens, "output" | "audioOutput" | "reasoning">;

async function countedTokens(
  answer: EndedAnswer,
  prompt: PromptTokensBilled | null,
  output: OutputTokensBilled | null,
  billed: BilledRequest,
  count: Counts,
): Promise<BilledTokens> {
  const [read, written] = await Promise.all([
    prompt ?? countedPrompt(billed, count),
    output === null ? judgedOutput(answer, billed, count) : { ...output, isReported: true },
  ]);
  const { isReported, ...wrote } = written;
  const tokens = completed({ ...NO_TOKENS, ...read, ...wrote }, billed.request);
  return { tokens, from: prompt !== null && isReported ? "host" : "counted" };
}

/** What a host says that one of several models used; null where that cannot be true. */
export function believedPart(usage: Usage, billed: BilledRequest): Tokens | null {
  const prompt = believedPrompt(usage, billed);
  const hasPrompt = usage.input + usage.cacheRead + usage.cacheWrite > 0;
  if ((prompt === null && hasPrompt) || usage.output > mostOutput(usage, billed)) return null;
  return completed({ ...NO_TOKENS, ...prompt, ...outputOf(usage, usage.output, billed) }, billed.request);
}

/** The prompt as the host reports it, or else counted. */
export const promptTokens = async (
  usage: Usage | null,
  billed: BilledRequest,
  count: Counts,
): Promise<PromptTokensBilled> => {
  const read = believedPrompt(usage, billed) ?? (await countedPrompt(billed, count));
  return completed({ ...NO_TOKENS, ...read }, billed.request);
};

/** Tokens written between two moments; null: the end. A whole answer came at its end. */
export async function countedBetween(
  text: EndedAnswer["text"],
  from: TextMoment,
  to: TextMoment | null,
  count: Counts,
): Promise<number> {
  const end = Math.min(to?.estimate ?? text.estimate, text.estimate);
  const estimate = Math.max(0, end - from.estimate);
  if (estimate === 0) return 0;
  return exactly(text.since === undefined ? text.all() : text.since(from, to ?? undefined), estimate, count);
}

/** What the host said of the prompt, without what cannot be true of it; null when nothing is left. */
function believedPrompt(usage: Usage | null, { request, model }: BilledRequest): PromptTokensBilled | null {
  if (usage === null) return null;
  const { promptBound, promptHasFiles, promptUnseen } = request;
  const bound =
    (promptUnseen ? model.contextLength * SERVED_READINGS : promptHasFiles ? model.contextLength : 0) +
    promptBound +
    FRAMING_TOKENS;
  const believed = (tokens: number) => (tokens <= bound ? tokens : 0);
  const [input, cacheRead, cacheWrite] = [usage.input, usage.cacheRead, usage.cacheWrite].map(believed);
  const sum = input! + cacheRead! + cacheWrite!;
  if (sum === 0 || sum > bound) return null;
  const { audioInput, cacheWrites, longestPrompt } = usage;
  return {
    input: input!,
    cacheRead: cacheRead!,
    cacheWrite: cacheWrite!,
    ...(audioInput === undefined ? {} : { audioInput: Math.min(audioInput, input!) }),
    ...(cacheWrites === undefined ? {} : { cacheWrites: writesWithin(cacheWrites, cacheWrite!) }),
    ...(longestPrompt === undefined ? {} : { longestPrompt }),
  };
}

/** What the host said of the answer, where there is no doubt; null where it has to be counted to know. */
function believedOutput({ usage, text }: EndedAnswer, billed: BilledRequest): OutputTokensBilled | null {
  if (usage === null) return null;
  if (usage.output === 0) return text.estimate === 0 ? NO_OUTPUT : null;
  if (text.estimateSinceReport > 0 || usage.output > mostOutput(usage, billed)) return null;
  if (isTooLittle(usage.output, text.estimate)) return null;
  return outputOf(usage, usage.output, billed);
}

/** The same where it is in doubt, or the client left before its end. */
async function judgedOutput(
  answer: EndedAnswer,
  billed: BilledRequest,
  count: Counts,
): Promise<JudgedOutput> {
  const { usage, text, isLeft } = answer;
  const delivered = await exactly(text.all(), text.estimate, count);
  const counted = { ...NO_OUTPUT, output: Math.min(delivered, allowed(billed)), isReported: false };
  if (usage === null || usage.output === 0) return counted;
  const rest = text.estimateSinceReport;
  const reported = usage.output + (rest === 0 ? 0 : await exactly(text.sinceReport(), rest, count));
  if (reported > mostOutput(usage, billed) || isTooLittle(reported, delivered)) return counted;
  const most = isLeft ? delivered + usage.reasoning : reported;
  return { ...outputOf(usage, Math.min(reported, most), billed), isReported: rest === 0 && reported <= most };
}

interface JudgedOutput extends OutputTokensBilled {
  /** It is the host's number. */
  readonly isReported: boolean;
}

/** Whether a host says less than anything can come to that was written. */
export const isTooLittle = (reported: number, written: number): boolean =>
  reported * VOCABULARIES_DIFFER < written;

/** Thoughts beyond the ceiling are left out: the hold does not cover them, and they may be no more than a claim. */
function outputOf(usage: Usage, reported: number, billed: BilledRequest): OutputTokensBilled {
  const { reasoning, audioOutput } = usage;
  const output = Math.min(reported, ceilingOf(billed));
  return {
    output,
    reasoning: Math.max(0, Math.min(reasoning, reported) - (reported - output)),
    ...(audioOutput === undefined ? {} : { audioOutput: Math.min(audioOutput, output) }),
  };
}

/** Thoughts are not under every host's ceiling; more of them than the model writes at all are none. */
const mostOutput = ({ reasoning }: Usage, billed: BilledRequest): number =>
  ceilingOf(billed) + Math.min(reasoning, billed.model.maxOutputTokens * billed.request.choices);

function ceilingOf({ request, model }: BilledRequest): number {
  const { maxOutputTokens: longest } = model;
  return Math.min(request.maxOutputTokens ?? longest, longest) * request.choices;
}

/** Text counts in another vocabulary than the host's: the client is charged for no more than it allowed. */
const allowed = ({ request }: BilledRequest): number =>
  (request.maxOutputTokens ?? Number.POSITIVE_INFINITY) * request.choices;

async function exactly({ texts, unkept }: Written, estimate: number, count: Counts): Promise<number> {
  const counted = texts.length === 0 ? 0 : await count.answer(texts);
  return counted === null ? Math.ceil(estimate) : counted + unkept;
}

/** Images and files stay at what they are held at: only the text can be counted. */
async function countedPrompt({ request }: BilledRequest, count: Counts): Promise<PromptTokensBilled> {
  const { promptEstimate, promptTextEstimate } = request;
  const text = (await count.prompt()) ?? promptTextEstimate;
  return { ...NO_TOKENS, input: text + promptEstimate - promptTextEstimate };
}

/**
 * Tokens whose kind a host does not report count as the most expensive kind that the request has. Audio
 * tokens are believed only for requests that contain audio.
 */
export function completed(usage: Tokens, request: GenerationRequest): Tokens {
  const { promptRetentions, promptWithoutAudio, answersInAudio } = request;
  const { input, cacheWrite, audioInput: reportedInput, audioOutput: spoken = 0, cacheWrites: kept } = usage;
  const cacheWrites = kept ?? longestOf(promptRetentions, cacheWrite);
  const audioInput =
    promptWithoutAudio === null ? 0 : (reportedInput ?? Math.max(0, input - promptWithoutAudio));
  const audioOutput = answersInAudio ? spoken : 0;
  const isComplete = audioInput === (reportedInput ?? 0) && audioOutput === spoken && cacheWrites === kept;
  return isComplete
    ? usage
    : { ...usage, audioInput, audioOutput, ...(cacheWrites === undefined ? {} : { cacheWrites }) };
}

/** All that was written, with the longest retention that the request names. */
function longestOf(named: ByRetention<unknown>, cacheWrite: number): ByRetention<number> | undefined {
  const longest = RETENTIONS.findLast((one) => named[one] !== undefined);
  return longest === undefined || cacheWrite === 0 ? undefined : { [longest]: cacheWrite };
}

const NO_OUTPUT: OutputTokensBilled = { output: 0, reasoning: 0 };

/**
 * What hosts put around a prompt, and count: Anthropic's words on tools, up to 700 tokens; xAI's own prompt before
 * a conversation that has none, 650; gpt-oss's, 70.
 */
const FRAMING_TOKENS = 1_024;

/** The rates of the step that a prompt of at most so many tokens can reach, with what a host puts around it. */
export const reachedRates = (price: Price, mostTokens: number): Rates =>
  ratesAt(price, mostTokens + FRAMING_TOKENS);
/** A host that searches reads the prompt again for each result, and counts it as often. */
const SERVED_READINGS = 16;
const VOCABULARIES_DIFFER = 2;
