import type { SurfaceName } from "../../src/catalog/catalog.ts";
import {
  type AnswerOptions,
  chatText,
  type HostAnswer,
  messagesText,
  responsesText,
  type SseEvent,
} from "./transcripts.ts";

/**
 * A host's refusal for policy reasons, with a good status: OpenAI's `content_filter`, Anthropic's `refusal`
 * ("Refusals and fallback"). Before any content, unless it wrote some words first.
 */
export function refusal(
  surface: SurfaceName,
  words: readonly string[] = [],
  options: AnswerOptions = {},
): HostAnswer {
  const usage = { output: Math.max(1, words.length), ...options };
  switch (surface) {
    case "chat.completions":
      return mapped(chatText(words, usage), (json) =>
        json.replaceAll('"finish_reason":"stop"', '"finish_reason":"content_filter"'),
      );
    case "responses":
      return declinedResponse(responsesText(words, usage), words.length > 0);
    case "messages":
      return declinedMessage(messagesText(words, usage), words.length > 0);
  }
}

const DETAILS = {
  type: "refusal",
  category: "cyber",
  explanation: "This request could enable cyber harm.",
  fallback_credit_token: "fct_1",
  fallback_has_prefill_claim: false,
  recommended_model: null,
};

function declinedMessage(answer: HostAnswer, hasContent: boolean): HostAnswer {
  const stop = JSON.stringify({ stop_reason: "refusal", stop_details: DETAILS }).slice(1, -1);
  const { events, whole } = mapped(answer, (json) => json.replace('"stop_reason":"end_turn"', stop));
  return hasContent
    ? { events, whole }
    : { events: without(events, "content_block"), whole: { ...whole, content: [] } };
}

function declinedResponse(answer: HostAnswer, hasContent: boolean): HostAnswer {
  const ending = { status: "incomplete", incomplete_details: { reason: "content_filter" } };
  const whole = { ...answer.whole, ...ending, ...(hasContent ? {} : { output: [] }) };
  const content = hasContent
    ? answer.events
    : without(without(answer.events, "response.output"), "response.content");
  const events = content.map(({ event, data }, sequence_number) => {
    const numbered = { ...JSON.parse(data), sequence_number };
    return typed(
      event === "response.completed"
        ? { ...numbered, type: "response.incomplete", response: whole }
        : numbered,
    );
  });
  return { whole, events };
}

const typed = (data: { type: string }): SseEvent => ({ event: data.type, data: JSON.stringify(data) });

const without = (events: readonly SseEvent[], prefix: string): SseEvent[] =>
  events.filter(({ event }) => event?.startsWith(prefix) !== true);

const mapped = ({ events, whole }: HostAnswer, change: (json: string) => string): HostAnswer => ({
  events: events.map((event) => ({ ...event, data: change(event.data) })),
  whole: JSON.parse(change(JSON.stringify(whole))),
});
