import type {
  AnswerFormat,
  AssistantPart,
  CacheMark,
  Conversation,
  FilePart,
  ImagePart,
  ReasoningPart,
  ReasoningWish,
  TextPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolTurn,
  Turn,
  UserPart,
} from "./conversation.ts";
import { isEffort } from "./conversation.ts";
import { INPUT_SCHEMA, wrappedDescription, wrappedInput } from "./custom-tool.ts";
import { asObject } from "./judge.ts";
import {
  dataUrl,
  NO_PARAMETERS,
  needText,
  OPENAI_MEMBERS,
  pick,
  present,
  readBoolean,
  readCacheMark,
  readDataUrl,
  readList,
  readNumber,
  readObject,
  readSchema,
  readText,
  readTexts,
} from "./members.ts";
import { effortOf } from "./reasoning.ts";
import type { Saying } from "./saying.ts";
import { familyOf, readSeal } from "./seal.ts";
import type { HostTarget } from "./surface.ts";

type Json = Readonly<Record<string, unknown>>;

/** A request of Chat Completions, understood (platform.openai.com, "Create chat completion"). */
export function readChatRequest(json: Json, saying: Saying): Conversation {
  return {
    turns: readList(json, "messages", saying).flatMap((message, at) =>
      readMessage(message, `messages[${at}]`, saying),
    ),
    tools: readList(json, "tools", saying).flatMap((tool, at) => readTool(tool, `tools[${at}]`, saying)),
    toolChoice: readToolChoice(json.tool_choice, saying),
    parallelToolCalls: readBoolean(json, "parallel_tool_calls", saying),
    format: readFormat(readObject(json, "response_format", saying), saying),
    maxOutputTokens: largest(
      readNumber(json, "max_tokens", saying),
      readNumber(json, "max_completion_tokens", saying),
    ),
    temperature: readNumber(json, "temperature", saying),
    topP: readNumber(json, "top_p", saying),
    topK: readNumber(json, "top_k", saying),
    stop: json.stop === undefined || json.stop === null ? [] : readTexts(json.stop, "stop", saying),
    reasoning: readReasoning(json, saying),
    verbosity: readText(json, "verbosity", saying),
    logprobs: json.logprobs === true ? (readNumber(json, "top_logprobs", saying) ?? 0) : null,
    user: readText(json, "safety_identifier", saying) ?? readText(json, "user", saying),
    cacheKey: readText(json, "prompt_cache_key", saying),
    openai: pick(json, OPENAI_MEMBERS),
  };
}

/** The same request for a host that speaks Chat Completions. */
export function writeChatRequest(
  conversation: Conversation,
  target: HostTarget,
  saying: Saying,
): Record<string, unknown> {
  const { quirks } = target;
  const ceiling = conversation.maxOutputTokens ?? target.maxOutputTokens ?? undefined;
  const { tools, logprobs } = conversation;
  return present({
    model: target.model,
    messages: writeTurns(conversation.turns, target, saying),
    stream: target.stream ? true : undefined,
    stream_options: target.stream && quirks.noStreamOptions !== true ? { include_usage: true } : undefined,
    [quirks.maxCompletionTokens === true ? "max_completion_tokens" : "max_tokens"]: ceiling,
    temperature: conversation.temperature ?? undefined,
    top_p: conversation.topP ?? undefined,
    stop: conversation.stop.length > 0 ? conversation.stop : undefined,
    tools: tools.length > 0 ? tools.map((tool) => writeTool(tool, saying)) : undefined,
    tool_choice: tools.length > 0 ? writeToolChoice(conversation.toolChoice) : undefined,
    parallel_tool_calls: tools.length > 0 ? (conversation.parallelToolCalls ?? undefined) : undefined,
    response_format: writeFormat(conversation.format),
    reasoning_effort: writeEffort(conversation.reasoning, saying),
    verbosity: conversation.verbosity ?? undefined,
    logprobs: logprobs === null ? undefined : true,
    top_logprobs: logprobs === null || logprobs === 0 ? undefined : logprobs,
    ...writeOpenAi(conversation, target, saying),
  });
}

function readMessage(message: Json, path: string, saying: Saying): Turn[] {
  if (message.name !== undefined && message.name !== null && message.role !== "function")
    saying.omit("messages[].name");
  switch (message.role) {
    case "system":
    case "developer":
      return [{ role: message.role, parts: readTextParts(message.content, `${path}.content`, saying) }];
    case "user":
      return [{ role: "user", parts: readUserParts(message.content, `${path}.content`, saying) }];
    case "assistant":
      return [{ role: "assistant", parts: readAssistantMessage(message, path, saying) }];
    case "tool":
      return [
        {
          role: "tool",
          callId: needText(message, "tool_call_id", `${path}.tool_call_id`, saying),
          parts: readUserParts(message.content, `${path}.content`, saying),
          failed: false,
          custom: false,
          cache: readCacheMark(message),
        },
      ];
    default:
      saying.wrong(`${path}.role`, "must be one of system, developer, user, assistant, tool");
      return [];
  }
}

/** An assistant's message, thoughts, then text, then calls. */
function readAssistantMessage(message: Json, path: string, saying: Saying): AssistantPart[] {
  const parts: AssistantPart[] = readThoughts(message);
  const { content } = message;
  if (typeof content === "string") {
    if (content !== "") parts.push(text(content, readCacheMark(message)));
  } else if (content !== null && content !== undefined) {
    for (const [at, part] of readList(message, "content", saying, `${path}.content`).entries()) {
      const here = `${path}.content[${at}]`;
      if (part.type === "text")
        parts.push(text(needText(part, "text", `${here}.text`, saying), readCacheMark(part)));
      else if (part.type === "refusal")
        parts.push({ kind: "refusal", text: needText(part, "refusal", `${here}.refusal`, saying) });
      else saying.wrong(`${here}.type`, "must be text or refusal");
    }
  }
  if (typeof message.refusal === "string" && message.refusal !== "")
    parts.push({ kind: "refusal", text: message.refusal });
  if (message.function_call !== undefined && message.function_call !== null)
    saying.cannot(`${path}.function_call`, "functions became tools in 2023; use `tool_calls`");
  if (message.audio !== undefined && message.audio !== null)
    saying.cannot(`${path}.audio`, "it is kept in an account at OpenAI");
  for (const [at, call] of readList(message, "tool_calls", saying, `${path}.tool_calls`).entries())
    parts.push(readToolCall(call, `${path}.tool_calls[${at}]`, saying));
  return parts;
}

function readToolCall(call: Json, path: string, saying: Saying): ToolCallPart {
  const custom = call.type === "custom";
  const called = readObject(call, custom ? "custom" : "function", saying, path) ?? {};
  return {
    kind: "tool_call",
    id: needText(call, "id", `${path}.id`, saying),
    name: needText(called, "name", `${path}.${custom ? "custom" : "function"}.name`, saying),
    custom,
    input: custom
      ? needText(called, "input", `${path}.custom.input`, saying)
      : needText(called, "arguments", `${path}.function.arguments`, saying),
    cache: null,
  };
}

/** `reasoning_details` (OpenRouter, which carries signatures), else `reasoning_content` or `reasoning`. */
function readThoughts(message: Json): ReasoningPart[] {
  const details = Array.isArray(message.reasoning_details) ? message.reasoning_details : [];
  const parts: ReasoningPart[] = [];
  for (const value of details) {
    const detail = asObject(value) ?? {};
    const words = [detail.text, detail.summary].find((one) => typeof one === "string") as string | undefined;
    const seal = readSeal(detail.signature) ?? readSeal(detail.data);
    if (words !== undefined || seal !== null) parts.push({ kind: "reasoning", text: words ?? "", seal });
  }
  if (parts.length > 0) return parts;
  const plain = [message.reasoning_content, message.reasoning].find(
    (one) => typeof one === "string" && one !== "",
  );
  return plain === undefined ? [] : [{ kind: "reasoning", text: plain as string, seal: null }];
}

function readTextParts(content: unknown, path: string, saying: Saying): TextPart[] {
  if (typeof content === "string") return [text(content, null)];
  return readList({ content }, "content", saying, path).map((part, at) => {
    if (part.type !== "text") saying.wrong(`${path}[${at}].type`, "must be text");
    return text(needText(part, "text", `${path}[${at}].text`, saying), readCacheMark(part));
  });
}

function readUserParts(content: unknown, path: string, saying: Saying): UserPart[] {
  if (typeof content === "string") return [text(content, null)];
  if (content === undefined || content === null) {
    saying.wrong(path, "must be a string or an array");
    return [];
  }
  return readList({ content }, "content", saying, path).flatMap((part, at) =>
    readUserPart(part, `${path}[${at}]`, saying),
  );
}

function readUserPart(part: Json, path: string, saying: Saying): UserPart[] {
  const cache = readCacheMark(part);
  switch (part.type) {
    case "text":
      return [text(needText(part, "text", `${path}.text`, saying), cache)];
    case "image_url": {
      const image = readObject(part, "image_url", saying, `${path}.image_url`) ?? {};
      const url = needText(image, "url", `${path}.image_url.url`, saying);
      return [{ kind: "image", source: sourceOf(url), detail: readText(image, "detail", saying), cache }];
    }
    case "file":
      return readFile(readObject(part, "file", saying, `${path}.file`) ?? {}, path, cache, saying);
    case "input_audio":
      saying.cannot(path, "it takes no audio");
      return [];
    default:
      saying.cannot(`${path}.type`, `the gateway does not know this kind of content`);
      return [];
  }
}

function readFile(file: Json, path: string, cache: CacheMark, saying: Saying): FilePart[] {
  if (typeof file.file_data !== "string") {
    saying.cannot(`${path}.file.file_id`, "the file is kept in an account at OpenAI; send it as `file_data`");
    return [];
  }
  return [
    { kind: "file", source: fileSource(file.file_data), name: readText(file, "filename", saying), cache },
  ];
}

/** An address, a data URL, or bare base64, which is a PDF: the one kind of file that is sent so. */
export function fileSource(data: string): FilePart["source"] {
  if (/^https?:/.test(data)) return { from: "url", url: data };
  const embedded = readDataUrl(data);
  return embedded === null
    ? { from: "base64", mediaType: "application/pdf", data }
    : { from: "base64", ...embedded };
}

export function sourceOf(url: string): ImagePart["source"] {
  const embedded = readDataUrl(url);
  return embedded === null ? { from: "url", url } : { from: "base64", ...embedded };
}

function readTool(tool: Json, path: string, saying: Saying): Tool[] {
  if (tool.type === "function") {
    const fn = readObject(tool, "function", saying, `${path}.function`) ?? {};
    return [
      {
        kind: "function",
        name: needText(fn, "name", `${path}.function.name`, saying),
        description: readText(fn, "description", saying, `${path}.function.description`),
        parameters: readObject(fn, "parameters", saying, `${path}.function.parameters`) ?? NO_PARAMETERS,
        strict: readBoolean(fn, "strict", saying),
        cache: readCacheMark(tool),
      },
    ];
  }
  if (tool.type === "custom") {
    const custom = readObject(tool, "custom", saying, `${path}.custom`) ?? {};
    const format = readObject(custom, "format", saying, `${path}.custom.format`);
    const grammar = asObject(format?.grammar);
    return [
      {
        kind: "custom",
        name: needText(custom, "name", `${path}.custom.name`, saying),
        description: readText(custom, "description", saying),
        // Chat nests the grammar; Responses, whose form is kept here, does not.
        format: grammar === null ? format : { type: "grammar", ...grammar },
      },
    ];
  }
  saying.cannot(`${path}.type`, "only functions and custom tools can be called from here");
  return [];
}

function readToolChoice(value: unknown, saying: Saying): ToolChoice | null {
  if (value === undefined || value === null) return null;
  if (value === "none" || value === "auto" || value === "required") return { kind: value };
  const choice = asObject(value) ?? {};
  const named = asObject(choice.type === "custom" ? choice.custom : choice.function);
  if (typeof named?.name === "string")
    return { kind: "named", name: named.name, custom: choice.type === "custom" };
  const allowed = asObject(choice.allowed_tools);
  if (choice.type === "allowed_tools" && allowed !== null) {
    const names = readList(allowed, "tools", saying, "tool_choice.allowed_tools.tools").map((tool) =>
      String(asObject(tool.function)?.name ?? asObject(tool.custom)?.name ?? tool.name),
    );
    return { kind: "allowed", mode: allowed.mode === "required" ? "required" : "auto", names };
  }
  saying.wrong("tool_choice", "must be none, auto, required, or name a tool");
  return null;
}

function readFormat(format: Json | null, saying: Saying): AnswerFormat | null {
  if (format === null || format.type === "text") return null;
  if (format.type === "json_object") return { kind: "json_object" };
  if (format.type !== "json_schema") {
    saying.wrong("response_format.type", "must be text, json_object or json_schema");
    return null;
  }
  return readSchema(readObject(format, "json_schema", saying, "response_format.json_schema") ?? {}, saying);
}

function readReasoning(json: Json, saying: Saying): ReasoningWish | null {
  const nested = readObject(json, "reasoning", saying);
  const effort = json.reasoning_effort ?? nested?.effort ?? null;
  const budget = nested === null ? null : readNumber(nested, "max_tokens", saying);
  if (effort === null && budget === null && nested?.enabled !== true) return null;
  if (effort !== null && effort !== "none" && !isEffort(effort)) {
    saying.wrong("reasoning_effort", "must be none, minimal, low, medium, high, xhigh or max");
    return null;
  }
  return {
    off: effort === "none",
    effort: isEffort(effort) ? effort : null,
    budgetTokens: budget,
    summary: null,
  };
}

const text = (words: string, cache: CacheMark): TextPart => ({ kind: "text", text: words, cache });

const largest = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

/**
 * A tool's message holds text only. What else the tools gave follows as the user's, behind the last of their results: a
 * host wants those together.
 */
function writeTurns(turns: readonly Turn[], target: HostTarget, saying: Saying): Json[] {
  const messages: Json[] = [];
  let given: UserPart[] = [];
  for (const turn of turns) {
    if (turn.role !== "tool" && given.length > 0) {
      messages.push({ role: "user", content: writeContent(given, target, saying) });
      given = [];
    }
    if (turn.role === "tool") given.push(...mediaOf(turn));
    messages.push(writeTurn(turn, target, saying));
  }
  if (given.length > 0) messages.push({ role: "user", content: writeContent(given, target, saying) });
  return messages;
}

function mediaOf({ callId, parts }: ToolTurn): UserPart[] {
  const media = parts.filter((part) => part.kind !== "text");
  return media.length === 0 ? [] : [text(`Given by the tool call ${callId}:`, null), ...media];
}

function writeTurn(turn: Turn, target: HostTarget, saying: Saying): Json {
  switch (turn.role) {
    case "system":
    case "developer":
      // Every host knows `system`; OpenAI's own takes it for `developer` where its model does.
      return { role: "system", content: writeContent(turn.parts, target, saying) };
    case "user":
      return { role: "user", content: writeContent(turn.parts, target, saying) };
    case "assistant":
      return writeAssistant(turn.parts, target, saying);
    case "tool": {
      if (turn.failed) saying.omit("tool_result.is_error");
      const texts = turn.parts.filter((part) => part.kind === "text");
      return { role: "tool", tool_call_id: turn.callId, content: writeContent(texts, target, saying) };
    }
  }
}

function writeContent(parts: readonly UserPart[], target: HostTarget, saying: Saying): unknown {
  if (parts.every((part) => part.kind === "text")) {
    const texts = parts as readonly TextPart[];
    const marked = texts.some(({ cache }) => cache !== null);
    if (marked && target.quirks.cacheControl !== true) saying.omit("cache_control");
    if (texts.length === 0) return "";
    const plain = !marked || target.quirks.cacheControl !== true;
    if (plain && (texts.length === 1 || target.quirks.plainContent === true))
      return texts.map((part) => part.text).join("\n\n");
  }
  return parts.map((part) => writePart(part, target, saying));
}

function writePart(part: UserPart, target: HostTarget, saying: Saying): Json {
  const mark =
    part.cache !== null && target.quirks.cacheControl === true ? { cache_control: part.cache } : {};
  if (part.cache !== null && target.quirks.cacheControl !== true) saying.omit("cache_control");
  switch (part.kind) {
    case "text":
      return { type: "text", text: part.text, ...mark };
    case "image": {
      const { source, detail } = part;
      const url = source.from === "url" ? source.url : dataUrl(source.mediaType, source.data);
      return { type: "image_url", image_url: detail === null ? { url } : { url, detail }, ...mark };
    }
    case "file":
      return writeFile(part, mark, saying);
  }
}

function writeFile({ source, name }: FilePart, mark: object, saying: Saying): Json {
  // A plain text needs no file; its title goes before it.
  if (source.from === "text")
    return { type: "text", text: name === null ? source.text : `${name}\n\n${source.text}`, ...mark };
  if (source.from === "url") {
    saying.cannot("file", "it takes files embedded as base64, not by address");
    return {};
  }
  const file = { filename: name ?? DEFAULT_NAME, file_data: dataUrl(source.mediaType, source.data) };
  return { type: "file", file, ...mark };
}

/** OpenAI refuses a file without one. */
export const DEFAULT_NAME = "document.pdf";

function writeAssistant(parts: readonly AssistantPart[], target: HostTarget, saying: Saying): Json {
  const texts = parts.filter((part) => part.kind === "text");
  const refusals = parts.filter((part) => part.kind === "refusal");
  const calls = parts.filter((part) => part.kind === "tool_call");
  return present({
    role: "assistant",
    content: texts.length === 0 ? null : writeContent(texts, target, saying),
    refusal: refusals.length === 0 ? undefined : refusals.map((part) => part.text).join(""),
    ...writeThoughts(parts, target, saying),
    tool_calls: calls.length === 0 ? undefined : calls.map(writeToolCall),
  });
}

const writeToolCall = ({ id, name, custom, input }: ToolCallPart): Json => ({
  id,
  type: "function",
  function: { name, arguments: custom ? wrappedInput(input) : input },
});

/** Thoughts go back to the family that can read them, and as plain text to hosts that ask for it. */
function writeThoughts(parts: readonly AssistantPart[], target: HostTarget, saying: Saying): Json {
  const thoughts = parts.filter((part) => part.kind === "reasoning");
  if (thoughts.length === 0) return {};
  const family = familyOf("chat.completions", target.publicModel);
  const own = thoughts.filter(({ seal }) => seal?.family === family && seal.data !== "");
  const details = own.map(({ text: words, seal }) =>
    seal!.kind === "signature"
      ? { type: "reasoning.text", text: words, signature: seal!.data }
      : { type: "reasoning.encrypted", data: seal!.data },
  );
  const words = thoughts.map((part) => part.text).join("");
  if (own.length < thoughts.length && target.quirks.takesReasoning !== true) saying.omit("reasoning");
  return {
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(target.quirks.takesReasoning === true && words !== "" ? { reasoning_content: words } : {}),
  };
}

function writeTool(tool: Tool, saying: Saying): Json {
  if (tool.kind === "custom") {
    if (tool.format !== null && tool.format.type !== "text") saying.omit("tools[].format");
    return {
      type: "function",
      function: { name: tool.name, description: wrappedDescription(tool), parameters: INPUT_SCHEMA },
    };
  }
  const { name, description, parameters, strict } = tool;
  return {
    type: "function",
    function: present({
      name,
      description: description ?? undefined,
      parameters,
      strict: strict ?? undefined,
    }),
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
  if (format.kind === "json_object") return { type: "json_object" };
  const { name, description, schema, strict } = format;
  return {
    type: "json_schema",
    json_schema: present({
      name: name ?? "answer",
      description: description ?? undefined,
      schema,
      strict: strict ?? undefined,
    }),
  };
}

function writeEffort(wish: ReasoningWish | null, saying: Saying): string | undefined {
  if (wish === null) return undefined;
  if (wish.summary !== null) saying.omit("reasoning.summary");
  return wish.off ? "none" : (effortOf(wish, saying) ?? undefined);
}

/** Hosts other than OpenAI's own often refuse what they do not know. */
function writeOpenAi(conversation: Conversation, { quirks }: HostTarget, saying: Saying): Json {
  const { user, cacheKey, openai } = conversation;
  const all = present({ ...openai, user: user ?? undefined, prompt_cache_key: cacheKey ?? undefined });
  if (quirks.coreFieldsOnly !== true) return all;
  if (Object.keys(all).length > 0) saying.omit("openai");
  return {};
}
