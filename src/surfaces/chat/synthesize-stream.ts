import { StreamSynthesis } from "../events/stream-synthesis.ts";
import { asObject, isPresent, type Json } from "../json/json.ts";
import type { HostError } from "../surface.ts";

/**
 * A chat host's whole answer, in which no fault was found, as chunks (platform.openai.com, "Chat completion
 * chunk"). Thoughts, text and calls come in chunks of their own, because clients look for one thing in each.
 */
export function synthesizeChatStream({ choices, usage, ...rest }: Json): Uint8Array | HostError {
  const synthesis = new StreamSynthesis();
  const { id, created, model, system_fingerprint, service_tier } = rest;
  const repeated = { id, created, model, system_fingerprint, service_tier };
  // What else the host says of its answer is sent once.
  let head: Json = rest;
  const emit = (more: Json) => {
    synthesis.emit(null, { ...head, object: "chat.completion.chunk", ...more });
    head = repeated;
  };
  for (const [at, value] of (choices as readonly unknown[]).entries())
    for (const choice of chunksOf(asObject(value)!, at)) emit({ choices: [choice] });
  if (asObject(usage) !== null) emit({ choices: [], usage });
  synthesis.add("data: [DONE]\n\n");
  return synthesis.bytes();
}

function* chunksOf(choice: Json, at: number): Generator<Json> {
  const { index = at, message, logprobs = null, finish_reason: reason, ...more } = choice;
  const { role = "assistant", content = null, tool_calls, ...members } = asObject(message) ?? {};
  const { thoughts, others } = sorted(members);
  const calls = Array.isArray(tool_calls) ? tool_calls : [];
  const chunk = (delta: Json) => ({ index, delta, finish_reason: null });

  yield chunk({ role, content: typeof content === "string" ? "" : null });
  if (Object.keys(thoughts).length > 0) yield chunk(thoughts);
  if (isPresent(content) || logprobs !== null)
    yield { ...chunk(isPresent(content) ? { content } : {}), logprobs };
  if (Object.keys(others).length > 0) yield chunk(others);
  for (const [nth, call] of calls.entries()) yield chunk({ tool_calls: [callOf(asObject(call) ?? {}, nth)] });
  yield { ...more, index, delta: {}, finish_reason: reasonOf(reason, calls.length > 0) };
}

/** The members of a message besides its text and calls, as far as they say something. */
function sorted(members: Json): { readonly thoughts: Json; readonly others: Json } {
  const thoughts: Record<string, unknown> = {};
  const others: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members))
    if (isPresent(value)) (THOUGHTS.has(name) ? thoughts : others)[name] = value;
  return { thoughts, others };
}

const THOUGHTS: ReadonlySet<string> = new Set(["reasoning_content", "reasoning", "reasoning_details"]);

/** Some hosts give the arguments as the object that they spell; clients put texts together. */
function callOf(call: Json, index: number): Json {
  const called = asObject(call.function);
  if (called === null || typeof called.arguments === "string") return { ...call, index };
  return { ...call, index, function: { ...called, arguments: JSON.stringify(called.arguments ?? {}) } };
}

/** Agents take `stop` for the end of their work, and Gemini says it after calls; see `CallIndexes`. */
function reasonOf(hostReason: unknown, called: boolean): unknown {
  const reason = hostReason ?? "stop";
  return reason === "stop" && called ? "tool_calls" : reason;
}
