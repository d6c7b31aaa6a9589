import type { SurfaceName } from "../../src/catalog/catalog.ts";
import type { Story } from "../fakes/hosts/transcript.ts";
import { framesOf, type Loose } from "./event-order.ts";

/** What a client understands of an answer, read from its wire as simply as can be. */
export interface AnswerContent {
  readonly reasoning: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly { readonly name: string; readonly input: string; readonly custom: boolean }[];
  /** As the language says it. */
  readonly end: string;
  readonly sequence: string | null;
  readonly usage: NonNullable<Story["usage"]> | null;
}

export function contentOfStream(surface: SurfaceName, text: string): AnswerContent {
  const values = framesOf(text).flatMap(({ data }) => (data === "[DONE]" ? [] : [JSON.parse(data)]));
  switch (surface) {
    case "chat.completions":
      return contentOfChunks(values);
    case "responses":
      return contentOfResponse(values.at(-1).response);
    case "messages":
      return contentOfMessage(messageOf(values));
  }
}

export const contentOfWhole = (surface: SurfaceName, body: Loose): AnswerContent =>
  surface === "chat.completions"
    ? contentOfChunks([
        { ...body, choices: body.choices.map((choice: Loose) => ({ ...choice, delta: choice.message })) },
      ])
    : surface === "responses"
      ? contentOfResponse(body)
      : contentOfMessage(body);

/** The same story as a client of this language can receive it. */
export function tellable(surface: SurfaceName, story: Story): AnswerContent {
  const { reasoning = "", text = "", refusal = "", calls = [], end, sequence = null, usage } = story;
  const refused = refusal !== "" && end === "end";
  return {
    reasoning,
    text: surface === "messages" ? text + refusal : text,
    refusal: surface === "messages" ? "" : refusal,
    calls: calls.map(({ name, input, custom = false }) => ({
      name,
      input: custom ? input : compact(input),
      custom,
    })),
    end: ENDS[surface][refused && surface === "messages" ? "filter" : end],
    sequence: surface === "messages" ? sequence : null,
    usage,
  };
}

export type Ending = Story["end"];

/** By which words each language ends. */
export const ENDS: Readonly<Record<SurfaceName, Readonly<Record<Ending, string>>>> = {
  "chat.completions": {
    end: "stop",
    sequence: "stop",
    tools: "tool_calls",
    length: "length",
    filter: "content_filter",
  },
  responses: {
    end: "completed",
    sequence: "completed",
    tools: "completed",
    length: "incomplete max_output_tokens",
    filter: "incomplete content_filter",
  },
  messages: {
    end: "end_turn",
    sequence: "stop_sequence",
    tools: "tool_use",
    length: "max_tokens",
    filter: "refusal",
  },
};

/** Arguments are compared by what they mean. */
function compact(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

export function contentOfChunks(chunks: Loose[]): AnswerContent {
  const content = { reasoning: "", text: "", refusal: "", end: "" };
  const calls: { name: string; input: string; custom: boolean }[] = [];
  let usage: AnswerContent["usage"] = null;
  for (const chunk of chunks) {
    if (chunk.usage) usage = openAiUsage(chunk.usage, "prompt", "completion");
    for (const { delta, finish_reason: reason } of chunk.choices) {
      content.reasoning += delta.reasoning_content ?? "";
      content.text += delta.content ?? "";
      content.refusal += delta.refusal ?? "";
      if (reason !== null) content.end = reason;
      for (const [at, call] of (delta.tool_calls ?? []).entries()) {
        const open = (calls[call.index ?? at] ??= { name: "", input: "", custom: call.type === "custom" });
        open.name += call.function?.name ?? call.custom?.name ?? "";
        open.input += call.function?.arguments ?? call.custom?.input ?? "";
      }
    }
  }
  return { ...content, calls: calls.map(meant), sequence: null, usage };
}

const meant = <Call extends { input: string; custom: boolean }>(call: Call): Call =>
  call.custom ? call : { ...call, input: compact(call.input) };

function contentOfResponse(response: Loose): AnswerContent {
  const joined = (list: string, type: string, member: string, between = ""): string =>
    response.output
      .map((item: Loose) =>
        (item[list] ?? [])
          .filter((part: Loose) => part.type === type)
          .map((part: Loose) => part[member])
          .join(between),
      )
      .join("");
  const calls = response.output.filter((item: Loose) => item.type.endsWith("_call"));
  return {
    reasoning: joined("summary", "summary_text", "text", "\n\n"),
    text: joined("content", "output_text", "text"),
    refusal: joined("content", "refusal", "refusal"),
    calls: calls.map(({ name, input, arguments: words, type }: Loose) =>
      meant({ name, input: input ?? words, custom: type === "custom_tool_call" }),
    ),
    end: [response.status, response.incomplete_details?.reason].filter(Boolean).join(" "),
    sequence: null,
    usage: response.usage ? openAiUsage(response.usage, "input", "output") : null,
  };
}

function openAiUsage(usage: Loose, prompt: string, output: string): NonNullable<AnswerContent["usage"]> {
  const { cached_tokens: cacheRead = 0, cache_write_tokens: cacheWrite = 0 } =
    usage[`${prompt}_tokens_details`];
  return {
    input: usage[`${prompt}_tokens`] - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output: usage[`${output}_tokens`],
    reasoning: usage[`${output}_tokens_details`].reasoning_tokens ?? 0,
  };
}

/** The message that the events add up to. */
function messageOf(events: Loose[]): Loose {
  const message = structuredClone(events[0].message);
  for (const { type, index, content_block, delta, usage } of events) {
    if (type === "content_block_start") message.content[index] = { ...content_block, partial: "" };
    if (type === "content_block_delta") {
      const block = message.content[index];
      if (delta.text !== undefined) block.text += delta.text;
      if (delta.thinking !== undefined) block.thinking += delta.thinking;
      if (delta.partial_json !== undefined) block.partial += delta.partial_json;
    }
    if (type === "message_delta") {
      Object.assign(message, delta);
      Object.assign(message.usage, usage);
    }
  }
  return message;
}

function contentOfMessage({ content, stop_reason, stop_sequence, usage }: Loose): AnswerContent {
  const of = (type: string): Loose[] => content.filter((block: Loose) => block.type === type);
  return {
    reasoning: of("thinking")
      .map(({ thinking }) => thinking)
      .join(""),
    text: of("text")
      .map(({ text }) => text)
      .join(""),
    refusal: "",
    calls: of("tool_use").map(({ name, input, partial }) => ({
      name,
      input: partial ? compact(partial) : JSON.stringify(input),
      custom: false,
    })),
    end: stop_reason,
    sequence: stop_sequence,
    usage: {
      input: usage.input_tokens,
      cacheRead: usage.cache_read_input_tokens,
      cacheWrite: usage.cache_creation_input_tokens,
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details?.thinking_tokens ?? 0,
    },
  };
}
