import { tokensOf } from "../../tokens/estimate.ts";
import { asObject } from "../json.ts";
import { forEachPart } from "./answer-reader.ts";

/**
 * Everything that a model writes in a message or a delta: text, reasoning as its hosts spell it, refusals,
 * tool calls.
 */
export function tokensWritten(said: Record<string, unknown> | null): number {
  if (said === null) return 0;
  let tokens =
    tokensOfContent(said.content) +
    tokensOf(said.reasoning_content) +
    tokensOf(said.reasoning) +
    tokensOf(said.refusal) +
    tokensOf(asObject(said.audio)?.transcript);
  if (Array.isArray(said.tool_calls))
    for (const call of said.tool_calls) tokens += tokensCalled(asObject(call));
  const old = asObject(said.function_call);
  return tokens + tokensOf(old?.name) + tokensOf(old?.arguments);
}

function tokensOfContent(content: unknown): number {
  if (!Array.isArray(content)) return tokensOf(content);
  let tokens = 0;
  forEachPart(content, (_kind, text) => {
    tokens += tokensOf(text);
  });
  return tokens;
}

function tokensCalled(call: Record<string, unknown> | null): number {
  const called = asObject(call?.function);
  const custom = asObject(call?.custom);
  return (
    tokensOf(called?.name) + tokensOf(called?.arguments) + tokensOf(custom?.name) + tokensOf(custom?.input)
  );
}
