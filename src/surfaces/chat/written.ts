import { ALONE } from "../../tokens/answer-text.ts";
import { asObject } from "../json/json.ts";
import { forEachPart } from "./answer-reader.ts";

/**
 * Everything that a model writes in a message or a delta: text, reasoning as its hosts spell it, refusals,
 * tool calls. Each is told with its channel, by which the deltas of one text find each other.
 */
export function forEachWritten(
  said: Record<string, unknown> | null,
  tell: (text: unknown, channel: number) => void,
): void {
  if (said === null) return;
  if (Array.isArray(said.content))
    forEachPart(said.content, (kind, text) => tell(text, kind === "text" ? CHANNEL.text : CHANNEL.thoughts));
  else tell(said.content, CHANNEL.text);
  // Hosts that know both names say the same by both.
  tell(said.reasoning_content ?? said.reasoning, CHANNEL.thoughts);
  tell(said.refusal, CHANNEL.refusal);
  tell(asObject(said.audio)?.transcript, CHANNEL.speech);
  if (Array.isArray(said.tool_calls))
    for (const [at, call] of said.tool_calls.entries()) tellCall(asObject(call), at, tell);
  const old = asObject(said.function_call);
  tell(old?.name, ALONE);
  tell(old?.arguments, CHANNEL.calls);
}

function tellCall(
  call: Record<string, unknown> | null,
  at: number,
  tell: (text: unknown, channel: number) => void,
): void {
  const called = asObject(call?.function);
  const custom = asObject(call?.custom);
  const channel = callChannel(typeof call?.index === "number" ? call.index : at);
  tell(called?.name, ALONE);
  tell(called?.arguments, channel);
  tell(custom?.name, ALONE);
  tell(custom?.input, channel);
}

/** Of one choice. */
export const CHANNEL = { text: 0, thoughts: 1, refusal: 2, speech: 3, calls: 4 } as const;

/** Kinds of text of a choice, its calls among them. */
export const CHANNELS_OF_A_CHOICE = 256;

const MOST_CALLS = 250;

/** More calls than that share one. */
export const callChannel = (index: number): number =>
  CHANNEL.calls + Math.min(Math.max(0, Math.trunc(index)), MOST_CALLS);
