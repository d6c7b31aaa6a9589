import type { SurfaceName } from "../../src/catalog/catalog.ts";
import {
  chatError,
  chatText,
  eventText,
  type HostAnswer,
  messagesError,
  messagesText,
  responsesError,
  responsesText,
  type SseEvent,
} from "../fakes/transcripts.ts";
import { ChatOrder } from "../surfaces/chat-order.ts";
import type { Frame, Loose } from "../surfaces/event-order.ts";
import { MessagesOrder } from "../surfaces/messages-order.ts";
import { ResponsesOrder } from "../surfaces/responses-order.ts";

/** What hosts write and clients read, in each language; nothing of this is the gateway's. */
interface Language {
  /** A host's answer. */
  answer(words: readonly string[], used: Used): HostAnswer;
  /** An event of a stream that tells a word, and nothing else does. */
  isWord(data: string): boolean;
  /** Events that end a stream badly. */
  error(message: string): readonly SseEvent[];
  /** A client's request. */
  requestBody(about: About): object;
  /** The text of one event of a stream. */
  textOf(event: Loose): string;
  textOfWhole(answer: Loose): string;
  /** The last event of a stream that is complete. */
  isEnd(data: string): boolean;
}

interface Used {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
}

interface About {
  readonly model: string;
  readonly prompt: string;
  readonly stream: boolean;
  readonly maxTokens: number | null;
}

const ceiling = (name: string, { maxTokens }: About): object =>
  maxTokens === null ? {} : { [name]: maxTokens };
const streamed = ({ stream }: About): object => (stream ? { stream } : {});

export const LANGUAGES: Readonly<Record<SurfaceName, Language>> = {
  "chat.completions": {
    answer: chatText,
    isWord: (data) => data.includes('"delta":{"content":"') && !data.includes('"content":""'),
    error: (message) => [chatError(message)],
    requestBody: (about) => ({
      model: about.model,
      messages: [{ role: "user", content: about.prompt }],
      ...(about.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
      ...ceiling("max_tokens", about),
    }),
    textOf: ({ choices }) => choices?.[0]?.delta?.content ?? "",
    textOfWhole: ({ choices }) => choices[0].message.content ?? "",
    isEnd: (data) => data === "[DONE]",
  },
  responses: {
    answer: responsesText,
    isWord: (data) => data.includes('"type":"response.output_text.delta"'),
    error: responsesError,
    requestBody: (about) => ({
      model: about.model,
      input: about.prompt,
      ...streamed(about),
      ...ceiling("max_output_tokens", about),
    }),
    textOf: ({ type, delta }) => (type === "response.output_text.delta" ? delta : ""),
    textOfWhole: ({ output }) =>
      output
        .filter(({ type }: Loose) => type === "message")
        .flatMap(({ content }: Loose) => content)
        .map(({ text }: Loose) => text)
        .join(""),
    isEnd: (data) => /"type":"response\.(completed|incomplete)"/.test(data),
  },
  messages: {
    answer: messagesText,
    isWord: (data) => data.includes('"type":"content_block_delta"'),
    error: (message) => [messagesError(message)],
    requestBody: (about) => ({
      model: about.model,
      messages: [{ role: "user", content: about.prompt }],
      ...streamed(about),
      ...ceiling("max_tokens", about),
    }),
    textOf: ({ type, delta }) => (type === "content_block_delta" ? (delta.text ?? "") : ""),
    textOfWhole: ({ content }) => content.map(({ text }: Loose) => text ?? "").join(""),
    isEnd: (data) => data.includes('"type":"message_stop"'),
  },
};

/** A host's answer in the order in which it is sent: text of events, a word each between head and tail. */
export function pieces(
  language: SurfaceName,
  { events }: HostAnswer,
  report: Report,
): { head: string; words: SseEvent[]; tail: string } {
  const { isWord } = LANGUAGES[language];
  const sent = events.flatMap((one): SseEvent[] => {
    if (!one.data.includes(USAGE_MEMBER)) return [one];
    const value = reported(JSON.parse(one.data), report);
    // A chunk of chat that had nothing but usage.
    return value.choices?.length === 0 && value.usage === undefined
      ? []
      : [{ ...one, data: JSON.stringify(value) }];
  });
  const text = (some: readonly SseEvent[]) => some.map((one) => eventText(one)).join("");
  const words = sent.filter(({ data }) => isWord(data));
  const at = words.length === 0 ? HEAD_EVENTS[language] : sent.indexOf(words[0]!);
  return { head: text(sent.slice(0, at)), words, tail: text(sent.slice(at + words.length)) };
}

const USAGE_MEMBER = '"usage":{';
/** Before the first word, where there is none. */
const HEAD_EVENTS: Readonly<Record<SurfaceName, number>> = {
  "chat.completions": 1,
  responses: 4,
  messages: 2,
};

/** What stands where a host tells usage, given the honest one; undefined: nothing does. */
export type Report = (usage: Loose) => Loose;

/** The same answer with whatever its host says of usage. */
export function reported(value: Loose, report: Report): Loose {
  for (const holder of [value, value.response, value.message]) {
    if (holder?.usage === undefined || holder.usage === null) continue;
    const usage = report(holder.usage);
    if (usage === undefined) delete holder.usage;
    else holder.usage = usage;
  }
  return value;
}

/** What no client of the language may receive. */
export function brokenRules(language: SurfaceName, stream: string): string[] {
  const order = ORDERS[language]();
  for (const frame of framesOf(stream)) order.take(frame);
  order.end();
  return order.broken;
}

const ORDERS = {
  "chat.completions": () => new ChatOrder({ usage: true }),
  responses: () => new ResponsesOrder(),
  messages: () => new MessagesOrder(),
};

const framesOf = (stream: string): Frame[] =>
  [...stream.matchAll(/(?:^event: (.*)\n)?^data: (.*)\n\n/gm)].map(([, event = null, data]) => ({
    event,
    data: data!,
  }));

/** What a client has read of a stream. */
export interface Seen {
  readonly text: string;
  readonly isComplete: boolean;
  /** The last cost that it received: USD. */
  readonly cost: number | null;
  readonly outputTokens: number | null;
  /** What no client of the language may receive. */
  readonly illegal?: string;
}

export function seenIn(language: SurfaceName, stream: string): Seen {
  const { textOf, isEnd, isWord } = LANGUAGES[language];
  let [text, isComplete] = ["", false];
  let [cost, outputTokens]: (number | null)[] = [null, null];
  for (const { data } of framesOf(stream)) {
    isComplete = isEnd(data);
    if (data === "[DONE]") continue;
    const words = isWord(data) && !data.includes(USAGE_MEMBER) ? ONE_TEXT.exec(data) : null;
    if (words !== null) {
      text += words[1]!;
      continue;
    }
    const event: Loose = JSON.parse(data);
    text += textOf(event);
    const usage = event.usage ?? event.response?.usage;
    cost = usage?.cost ?? cost;
    outputTokens = usage?.completion_tokens ?? usage?.output_tokens ?? outputTokens;
  }
  return { text, isComplete, cost: cost!, outputTokens: outputTokens! };
}

/** Most events need no parser. */
const ONE_TEXT = /"(?:content|delta|text)":"([ a-z]*)"/;

export function seenInWhole(language: SurfaceName, answer: Loose): Seen {
  const { usage } = answer;
  return {
    text: LANGUAGES[language].textOfWhole(answer),
    isComplete: true,
    cost: usage?.cost ?? null,
    outputTokens: usage?.completion_tokens ?? usage?.output_tokens ?? null,
  };
}
