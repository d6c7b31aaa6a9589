import { Type } from "@sinclair/typebox";
import type { Quirks } from "../catalog/catalog.ts";

/** The names of quirks in a file. Each is a fact about a host, or about one model of it: true or false. */
const NAMES = {
  no_stream: "noStream",
  no_stream_options: "noStreamOptions",
  no_chat: "noChat",
  no_chat_tools: "noChatTools",
  max_completion_tokens: "maxCompletionTokens",
  core_fields_only: "coreFieldsOnly",
  strict_messages: "strictMessages",
  short_call_ids: "shortCallIds",
  names_results: "namesResults",
  plain_content: "plainContent",
  cache_control: "cacheControl",
  takes_reasoning: "takesReasoning",
  signs_calls: "signsCalls",
  adaptive_thinking: "adaptiveThinking",
  no_sampling: "noSampling",
  no_reasoning_effort: "noReasoningEffort",
  no_reasoning_summary: "noReasoningSummary",
  own_tools: "ownTools",
  account_references: "accountReferences",
  known_fields_only: "knownFieldsOnly",
} as const satisfies Record<string, keyof Quirks>;

type QuirkName = keyof typeof NAMES;

export type QuirkRow = Partial<Record<QuirkName, boolean>>;

const members = Object.fromEntries(
  Object.keys(NAMES).map((name) => [name, Type.Optional(Type.Boolean({ expected: "true or false" }))]),
);

export const QuirkSchema = Type.Optional(
  Type.Unsafe<QuirkRow>(Type.Object(members, { additionalProperties: false, expected: "a map of quirks" })),
);

export const readQuirks = (row: QuirkRow = {}): Quirks =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [NAMES[name as QuirkName], value]));

/** The same as a file writes them. */
export const quirkRow = (quirks: Quirks): QuirkRow =>
  Object.fromEntries(
    Object.entries(NAMES).flatMap(([name, member]) => {
      const value = quirks[member];
      return value === undefined ? [] : [[name, value]];
    }),
  );
