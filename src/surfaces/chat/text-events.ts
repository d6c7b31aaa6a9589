import { ALONE } from "../../tokens/answer-text.ts";
import { TextCollector, type TextEvents } from "../events/sole-text.ts";
import { asObject } from "../json/json.ts";
import { forEachPart } from "./answer-reader.ts";

/** Events of text alone: chunks that report neither usage nor a reason to finish. */
export const CHAT_TEXTS: TextEvents = {
  soleText({ choices, usage }) {
    if (!Array.isArray(choices) || (usage !== undefined && usage !== null)) return null;
    const texts = new TextCollector();
    for (const [at, value] of choices.entries()) {
      const choice = asObject(value);
      if (typeof choice?.finish_reason === "string") return null;
      forEachWrittenOf(choice, at, (text, channel) => texts.add(text, channel));
    }
    return texts.sole;
  },
  significant: new Set(["choices", "model", "usage", "error", "x_groq", "object"]),
  number: null,
};

/** What the model writes in a chunk's choice, with the channels of the whole answer. */
export function forEachWrittenOf(
  choice: Record<string, unknown> | null,
  at: number,
  report: (text: unknown, channel: number) => void,
): void {
  const nth = typeof choice?.index === "number" ? choice.index : at;
  forEachWritten(asObject(choice?.delta), (text, kind) =>
    report(text, kind === ALONE ? ALONE : nth * CHANNELS_OF_A_CHOICE + kind),
  );
}

/**
 * Everything that a model writes in a message or a delta: text, reasoning as its hosts spell it, refusals,
 * tool calls. Each comes with its channel, by which the deltas of one text find each other.
 */
export function forEachWritten(
  message: Record<string, unknown> | null,
  report: (text: unknown, channel: number) => void,
): void {
  if (message === null) return;
  if (Array.isArray(message.content))
    forEachPart(message.content, (kind, text) =>
      report(text, kind === "text" ? CHANNEL.text : CHANNEL.thoughts),
    );
  else report(message.content, CHANNEL.text);
  // Hosts that know both names say the same by both.
  report(message.reasoning_content ?? message.reasoning, CHANNEL.thoughts);
  report(message.refusal, CHANNEL.refusal);
  report(asObject(message.audio)?.transcript, CHANNEL.speech);
  if (Array.isArray(message.tool_calls))
    for (const [at, call] of message.tool_calls.entries()) reportCall(asObject(call), at, report);
  const old = asObject(message.function_call);
  report(old?.name, ALONE);
  report(old?.arguments, CHANNEL.calls);
}

function reportCall(
  call: Record<string, unknown> | null,
  at: number,
  report: (text: unknown, channel: number) => void,
): void {
  const called = asObject(call?.function);
  const custom = asObject(call?.custom);
  const channel = callChannel(typeof call?.index === "number" ? call.index : at);
  report(called?.name, ALONE);
  report(called?.arguments, channel);
  report(custom?.name, ALONE);
  report(custom?.input, channel);
}

const CHANNEL = { text: 0, thoughts: 1, refusal: 2, speech: 3, calls: 4 } as const;

/** Kinds of text of a choice, its calls among them. */
const CHANNELS_OF_A_CHOICE = 256;

const MAX_CALLS = 250;

/** More calls than that share one. */
const callChannel = (index: number): number =>
  CHANNEL.calls + Math.min(Math.max(0, Math.trunc(index)), MAX_CALLS);
