import { asObject, asText } from "../json.ts";
import {
  type AnswerFormat,
  type AssistantPart,
  type CacheMark,
  type Conversation,
  type FilePart,
  isEffort,
  type ReasoningPart,
  type ReasoningWish,
  type TextPart,
  type Tool,
  type ToolCallPart,
  type ToolChoice,
  type Turn,
  type UserPart,
} from "../vocabulary/conversation.ts";
import {
  NO_PARAMETERS,
  needText,
  OPENAI_MEMBERS,
  pick,
  readBoolean,
  readCacheMark,
  readList,
  readNumber,
  readObject,
  readParts,
  readSchema,
  readText,
  readTexts,
  textPart,
} from "../vocabulary/members.ts";
import type { Saying } from "../vocabulary/saying.ts";
import { readSeal } from "../vocabulary/seal.ts";
import { fileSource, sourceOf } from "../vocabulary/sources.ts";
import { readThinkingWords } from "../vocabulary/vendor-words.ts";

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
    reasoning: readReasoning(json, saying) ?? readThinkingWords(json, saying),
    verbosity: readText(json, "verbosity", saying),
    logprobs: json.logprobs === true ? (readNumber(json, "top_logprobs", saying) ?? 0) : null,
    user: readText(json, "safety_identifier", saying) ?? readText(json, "user", saying),
    cacheKey: readText(json, "prompt_cache_key", saying),
    cache: readObject(json, "cache_control", saying),
    openai: pick(json, OPENAI_MEMBERS),
    chat: {},
  };
}

function readMessage(message: Json, path: string, saying: Saying): Turn[] {
  saying.judgePart("messages[]", message);
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

/** An assistant's message: thoughts, then text, then calls. */
function readAssistantMessage(message: Json, path: string, saying: Saying): AssistantPart[] {
  const parts: AssistantPart[] = readThoughts(message);
  const { content } = message;
  if (typeof content === "string") {
    if (content !== "") parts.push(textPart(content, readCacheMark(message)));
  } else if (content !== null && content !== undefined) {
    for (const [at, part] of readList(message, "content", saying, `${path}.content`).entries()) {
      const here = `${path}.content[${at}]`;
      saying.judgePart(part.type, part);
      if (part.type === "text")
        parts.push(textPart(needText(part, "text", `${here}.text`, saying), readCacheMark(part)));
      else if (part.type === "refusal")
        parts.push({ kind: "refusal", text: needText(part, "refusal", `${here}.refusal`, saying) });
      else saying.wrong(`${here}.type`, "must be text or refusal");
    }
  }
  if (typeof message.refusal === "string" && message.refusal !== "")
    parts.push({ kind: "refusal", text: message.refusal });
  if (message.function_call !== undefined && message.function_call !== null)
    saying.cannot(`${path}.function_call`, "functions were replaced by tools in 2023; use `tool_calls`");
  if (message.audio !== undefined && message.audio !== null)
    saying.cannot(`${path}.audio`, "it is kept in an account at OpenAI");
  for (const [at, call] of readList(message, "tool_calls", saying, `${path}.tool_calls`).entries())
    parts.push(readToolCall(call, `${path}.tool_calls[${at}]`, saying));
  return parts;
}

function readToolCall(call: Json, path: string, saying: Saying): ToolCallPart {
  const custom = call.type === "custom";
  const member = custom ? "custom" : "function";
  const called = readObject(call, member, saying, path) ?? {};
  saying.judgePart("tool_calls[]", call);
  saying.judgePart(`tool_calls[].${member}`, called);
  return {
    kind: "tool_call",
    id: needText(call, "id", `${path}.id`, saying),
    name: needText(called, "name", `${path}.${member}.name`, saying),
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
  let before = "";
  for (const value of details) {
    const detail = asObject(value) ?? {};
    const words = [detail.text, detail.summary].find((one) => typeof one === "string") as string | undefined;
    const seal = readSeal(detail.signature) ?? readSeal(detail.data);
    if (words === undefined && seal === null) continue;
    const place = `${asText(detail.type)} ${asText(detail.index)}`;
    const last = parts.at(-1);
    // Streams tell a thought in pieces and its seal last; not every client puts them together.
    if (last?.seal === null && place === before)
      parts[parts.length - 1] = { kind: "reasoning", text: last.text + (words ?? ""), seal };
    else parts.push({ kind: "reasoning", text: words ?? "", seal });
    before = place;
  }
  if (parts.length > 0) return parts;
  const plain = [message.reasoning_content, message.reasoning].find(
    (one) => typeof one === "string" && one !== "",
  );
  return plain === undefined ? [] : [{ kind: "reasoning", text: plain as string, seal: null }];
}

function readTextParts(content: unknown, path: string, saying: Saying): TextPart[] {
  if (typeof content === "string") return [textPart(content)];
  return readList({ content }, "content", saying, path).map((part, at) => {
    saying.judgePart("text", part);
    if (part.type !== "text") saying.wrong(`${path}[${at}].type`, "must be text");
    return textPart(needText(part, "text", `${path}[${at}].text`, saying), readCacheMark(part));
  });
}

const readUserParts = (content: unknown, path: string, saying: Saying): UserPart[] =>
  readParts(content, path, saying, readUserPart);

function readUserPart(part: Json, path: string, saying: Saying): UserPart[] {
  saying.judgePart(part.type, part);
  const cache = readCacheMark(part);
  switch (part.type) {
    case "text":
      return [textPart(needText(part, "text", `${path}.text`, saying), cache)];
    case "image_url": {
      const image = readObject(part, "image_url", saying, `${path}.image_url`) ?? {};
      saying.judgePart("image_url.image_url", image);
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
  saying.judgePart("file.file", file);
  if (typeof file.file_data !== "string") {
    saying.cannot(`${path}.file.file_id`, "the file is kept in an account at OpenAI; send it as `file_data`");
    return [];
  }
  return [
    { kind: "file", source: fileSource(file.file_data), name: readText(file, "filename", saying), cache },
  ];
}

function readTool(tool: Json, path: string, saying: Saying): Tool[] {
  saying.judgePart("tools[]", tool);
  if (tool.type === "function") {
    const fn = readObject(tool, "function", saying, `${path}.function`) ?? {};
    saying.judgePart("tools[].function", fn);
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
    saying.judgePart("tools[].custom", custom);
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
    const path = "tool_choice.allowed_tools.tools";
    const names = readList(allowed, "tools", saying, path).map((tool, at) =>
      needText(
        asObject(tool.function) ?? asObject(tool.custom) ?? tool,
        "name",
        `${path}[${at}].name`,
        saying,
      ),
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
  const nested = readObject(json, "reasoning", saying) ?? {};
  const effort = json.reasoning_effort ?? nested.effort ?? null;
  const budget = readNumber(nested, "max_tokens", saying, "reasoning.max_tokens");
  // Whether thoughts are shown is the answer's to heed (hidden-thoughts).
  readBoolean(json, "include_reasoning", saying);
  readBoolean(nested, "exclude", saying, "reasoning.exclude");
  if (json.reasoning_format === "raw") saying.omit("reasoning_format");
  if (effort === null && budget === null && nested.enabled !== true) return null;
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

const largest = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);
