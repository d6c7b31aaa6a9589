import type { Json } from "../json/json.ts";
import type { HostTarget } from "../surface.ts";
import { markMember, writeCacheOptions, writeWholeMark } from "../vocabulary/cache-marks.ts";
import type {
  AnswerFormat,
  AssistantPart,
  Conversation,
  FilePart,
  ReasoningSettings,
  TextPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolTurn,
  Turn,
  UserPart,
} from "../vocabulary/conversation.ts";
import { textPart, writeSchema } from "../vocabulary/members.ts";
import { effortFor, samplingFor } from "../vocabulary/reasoning.ts";
import { familyOf } from "../vocabulary/seal.ts";
import { DEFAULT_NAME, titledText, urlOf } from "../vocabulary/sources.ts";
import { INPUT_SCHEMA, wrappedDescription, wrappedInput } from "../vocabulary/tools.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";
import { fitMessages } from "./host-messages.ts";

export function writeChatRequest(
  conversation: Conversation,
  report: TranslationReport,
): Record<string, unknown> {
  const { target } = report;
  const { quirks } = target;
  const ceiling = target.maxOutputTokens ?? conversation.maxOutputTokens ?? undefined;
  const { tools, logprobs } = conversation;
  const { temperature, topP, topK } = samplingFor(conversation, report);
  if (topK !== null && (quirks.maxCompletionTokens === true || quirks.coreFieldsOnly === true))
    report.cannot("top_k", "it has no `top_k`");
  return {
    model: target.model,
    messages: fitMessages(writeTurns(conversation.turns, report), quirks).messages,
    stream: target.stream ? true : undefined,
    stream_options: target.stream && quirks.noStreamOptions !== true ? { include_usage: true } : undefined,
    [quirks.maxCompletionTokens === true ? "max_completion_tokens" : "max_tokens"]: ceiling,
    temperature: temperature ?? undefined,
    top_p: topP ?? undefined,
    top_k: topK ?? undefined,
    ...conversation.chat,
    stop: conversation.stop.length > 0 ? conversation.stop : undefined,
    tools: tools.length > 0 ? tools.map((tool) => writeTool(tool, report)) : undefined,
    tool_choice: tools.length > 0 ? writeToolChoice(conversation.toolChoice) : undefined,
    parallel_tool_calls: tools.length > 0 ? (conversation.parallelToolCalls ?? undefined) : undefined,
    response_format: writeFormat(conversation.format),
    reasoning_effort: writeEffort(conversation.reasoning, report),
    logprobs: logprobs === null ? undefined : true,
    top_logprobs: logprobs === null || logprobs === 0 ? undefined : logprobs,
    cache_control: writeWholeMark(conversation.cache, report),
    prompt_cache_options: writeCacheOptions(conversation, report),
    ...writeOpenAi(conversation, report),
  };
}

/**
 * A tool's message holds text only. What else the tools gave follows as the user's, behind the last of their
 * results: a host wants those together.
 */
function writeTurns(turns: readonly Turn[], report: TranslationReport): Json[] {
  const messages: Json[] = [];
  let given: UserPart[] = [];
  for (const turn of turns) {
    if (turn.role !== "tool" && given.length > 0) {
      messages.push({ role: "user", content: writeContent(given, report) });
      given = [];
    }
    if (turn.role === "tool") given.push(...mediaOf(turn));
    const message = writeTurn(turn, report);
    if (!isOnlyThoughts(turn) || THOUGHTS.some((name) => message[name] !== undefined)) messages.push(message);
  }
  if (given.length > 0) messages.push({ role: "user", content: writeContent(given, report) });
  return messages;
}

/** Hosts refuse a message without content, which is what thoughts that were left out would leave. */
const isOnlyThoughts = ({ role, parts }: Turn): boolean =>
  role === "assistant" && parts.length > 0 && parts.every(({ kind }) => kind === "reasoning");

const THOUGHTS = ["reasoning_details", "reasoning_content"];

function mediaOf({ callId, parts }: ToolTurn): UserPart[] {
  const media = parts.filter((part) => part.kind !== "text");
  return media.length === 0 ? [] : [textPart(`Given by the tool call ${callId}:`), ...media];
}

function writeTurn(turn: Turn, report: TranslationReport): Json {
  switch (turn.role) {
    case "system":
    case "developer":
      // Every host knows `system`; OpenAI's own takes it for `developer` where its model does.
      return { role: "system", content: writeContent(turn.parts, report) };
    case "user":
      return { role: "user", content: writeContent(turn.parts, report) };
    case "assistant":
      return writeAssistant(turn.parts, report);
    case "tool": {
      if (turn.failed) report.omit("tool_result.is_error");
      const texts = turn.parts.filter((part) => part.kind === "text");
      return { role: "tool", tool_call_id: turn.callId, content: writeContent(texts, report) };
    }
  }
}

function writeContent(parts: readonly UserPart[], report: TranslationReport): unknown {
  if (parts.every((part) => part.kind === "text")) {
    const texts = parts as readonly TextPart[];
    if (texts.length === 0) return "";
    const isMarked = texts.some(({ cache }) => cache !== null);
    if (!isMarked && (texts.length === 1 || report.target.quirks.plainContent === true))
      return texts.map((part) => part.text).join("\n\n");
  }
  return parts.map((part) => writePart(part, report));
}

function writePart(part: UserPart, report: TranslationReport): Json {
  const mark = markMember(part.cache, report);
  switch (part.kind) {
    case "text":
      return { type: "text", text: part.text, ...mark };
    case "image": {
      const { source, detail } = part;
      const url = urlOf(source);
      return { type: "image_url", image_url: detail === null ? { url } : { url, detail }, ...mark };
    }
    case "file":
      return writeFile(part, mark, report);
  }
}

function writeFile({ source, name }: FilePart, mark: object, report: TranslationReport): Json {
  if (source.from === "text") return { type: "text", text: titledText(source, name), ...mark };
  if (source.from === "url") {
    report.cannot("file", "it takes files embedded as base64, not by URL");
    return {};
  }
  const file = { filename: name ?? DEFAULT_NAME, file_data: urlOf(source) };
  return { type: "file", file, ...mark };
}

function writeAssistant(parts: readonly AssistantPart[], report: TranslationReport): Json {
  const texts = parts.filter((part) => part.kind === "text");
  const refusals = parts.filter((part) => part.kind === "refusal");
  const calls = writeCalls(parts, report.target);
  return {
    role: "assistant",
    content: texts.length === 0 ? null : writeContent(texts, report),
    refusal: refusals.length === 0 ? undefined : refusals.map((part) => part.text).join(""),
    ...writeThoughts(parts, report),
    tool_calls: calls.length === 0 ? undefined : calls,
  };
}

/** Each with the signature that Gemini gave it. */
function writeCalls(parts: readonly AssistantPart[], { publicModel }: HostTarget): Json[] {
  const family = familyOf("chat.completions", publicModel);
  const calls: Json[] = [];
  let signature: string | null = null;
  for (const part of parts) {
    if (part.kind === "reasoning" && part.seal?.kind === "call" && part.seal.family === family)
      signature = part.seal.data;
    if (part.kind !== "tool_call") continue;
    const signed = signature === null ? {} : { extra_content: { google: { thought_signature: signature } } };
    calls.push({ ...writeToolCall(part), ...signed });
    signature = null;
  }
  return calls;
}

const writeToolCall = ({ id, name, custom, input }: ToolCallPart): Json => ({
  id,
  type: "function",
  function: { name, arguments: custom ? wrappedInput(input) : input },
});

/** Thoughts go back to the family that can read them, and as plain text to hosts that ask for it. */
function writeThoughts(parts: readonly AssistantPart[], report: TranslationReport): Json {
  const family = familyOf("chat.completions", report.target.publicModel);
  const thoughts = parts
    .filter((part) => part.kind === "reasoning")
    .filter(({ seal }) => seal?.kind !== "call" || seal.family !== family);
  if (thoughts.length === 0) return {};
  const own = thoughts.filter(({ seal }) => seal?.family === family && seal.data !== "");
  const details = own.map(({ text: words, seal }) =>
    seal!.kind === "signature"
      ? { type: "reasoning.text", text: words, signature: seal!.data }
      : { type: "reasoning.encrypted", data: seal!.data },
  );
  const words = thoughts.map((part) => part.text).join("");
  if (own.length < thoughts.length && report.target.quirks.takesReasoning !== true) report.omit("reasoning");
  return {
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(report.target.quirks.takesReasoning === true && words !== "" ? { reasoning_content: words } : {}),
  };
}

function writeTool(tool: Tool, report: TranslationReport): Json {
  if (tool.kind === "custom") {
    if (tool.format !== null && tool.format.type !== "text") report.omit("tools[].format");
    return {
      type: "function",
      function: { name: tool.name, description: wrappedDescription(tool), parameters: INPUT_SCHEMA },
    };
  }
  const { name, description, parameters, strict } = tool;
  return {
    type: "function",
    function: {
      name,
      description: description ?? undefined,
      parameters,
      strict: strict ?? undefined,
    },
  };
}

function writeToolChoice(toolChoice: ToolChoice | null): unknown {
  if (toolChoice === null) return undefined;
  switch (toolChoice.kind) {
    case "named":
      return { type: "function", function: { name: toolChoice.name } };
    case "allowed": {
      const tools = toolChoice.names.map((name) => ({ type: "function", function: { name } }));
      return { type: "allowed_tools", allowed_tools: { mode: toolChoice.mode, tools } };
    }
    default:
      return toolChoice.kind;
  }
}

function writeFormat(format: AnswerFormat | null): unknown {
  if (format === null) return undefined;
  return format.kind === "json_object"
    ? { type: "json_object" }
    : { type: "json_schema", json_schema: writeSchema(format) };
}

function writeEffort(settings: ReasoningSettings | null, report: TranslationReport): string | undefined {
  if (settings === null) return undefined;
  // A messages client gets summaries without asking: its reader names what it asked for.
  if (settings.summary !== null && report.client === "responses") report.omit("reasoning.summary");
  return effortFor(settings, report) ?? undefined;
}

/** Hosts other than OpenAI's own often refuse what they do not know. */
function writeOpenAi(conversation: Conversation, report: TranslationReport): Json {
  const { user, cacheKey, verbosity, openai } = conversation;
  const all = {
    ...openai,
    user: user ?? undefined,
    prompt_cache_key: cacheKey ?? undefined,
    verbosity: verbosity ?? undefined,
  };
  if (report.target.quirks.coreFieldsOnly !== true) return all;
  if (Object.values(all).some((value) => value !== undefined)) report.omit("openai");
  return {};
}
