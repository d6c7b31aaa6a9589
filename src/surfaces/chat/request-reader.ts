import { asObject, asText, type Json } from "../json.ts";
import {
  type AnswerFormat,
  type AssistantPart,
  type CacheMark,
  type Conversation,
  type FilePart,
  isEffort,
  type ReasoningPart,
  type ReasoningSettings,
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
import { readSeal } from "../vocabulary/seal.ts";
import { fileSource, sourceOf } from "../vocabulary/sources.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";
import { readThinkingWords } from "../vocabulary/vendor-words.ts";

/** A request of Chat Completions, understood (platform.openai.com, "Create chat completion"). */
export function readChatRequest(json: Json, report: TranslationReport): Conversation {
  return {
    turns: readList(json, "messages", report).flatMap((message, at) =>
      readMessage(message, `messages[${at}]`, report),
    ),
    tools: readList(json, "tools", report).flatMap((tool, at) => readTool(tool, `tools[${at}]`, report)),
    toolChoice: readToolChoice(json.tool_choice, report),
    parallelToolCalls: readBoolean(json, "parallel_tool_calls", report),
    format: readFormat(readObject(json, "response_format", report), report),
    maxOutputTokens: largest(
      readNumber(json, "max_tokens", report),
      readNumber(json, "max_completion_tokens", report),
    ),
    temperature: readNumber(json, "temperature", report),
    topP: readNumber(json, "top_p", report),
    topK: readNumber(json, "top_k", report),
    stop: json.stop === undefined || json.stop === null ? [] : readTexts(json.stop, "stop", report),
    reasoning: readReasoning(json, report) ?? readThinkingWords(json, report),
    verbosity: readText(json, "verbosity", report),
    logprobs: json.logprobs === true ? (readNumber(json, "top_logprobs", report) ?? 0) : null,
    user: readText(json, "safety_identifier", report) ?? readText(json, "user", report),
    cacheKey: readText(json, "prompt_cache_key", report),
    cache: readObject(json, "cache_control", report),
    openai: pick(json, OPENAI_MEMBERS),
    chat: {},
  };
}

function readMessage(message: Json, path: string, report: TranslationReport): Turn[] {
  report.judgePart("messages[]", message);
  if (message.name !== undefined && message.name !== null && message.role !== "function")
    report.omit("messages[].name");
  switch (message.role) {
    case "system":
    case "developer":
      return [{ role: message.role, parts: readTextParts(message.content, `${path}.content`, report) }];
    case "user":
      return [{ role: "user", parts: readUserParts(message.content, `${path}.content`, report) }];
    case "assistant":
      return [{ role: "assistant", parts: readAssistantMessage(message, path, report) }];
    case "tool":
      return [
        {
          role: "tool",
          callId: needText(message, "tool_call_id", `${path}.tool_call_id`, report),
          parts: readUserParts(message.content, `${path}.content`, report),
          failed: false,
          custom: false,
          cache: readCacheMark(message),
        },
      ];
    default:
      report.wrong(`${path}.role`, "must be one of system, developer, user, assistant, tool");
      return [];
  }
}

/** An assistant's message: thoughts, then text, then calls. */
function readAssistantMessage(message: Json, path: string, report: TranslationReport): AssistantPart[] {
  const parts: AssistantPart[] = readThoughts(message);
  const { content } = message;
  if (typeof content === "string") {
    if (content !== "") parts.push(textPart(content, readCacheMark(message)));
  } else if (content !== null && content !== undefined) {
    for (const [at, part] of readList(message, "content", report, `${path}.content`).entries()) {
      const here = `${path}.content[${at}]`;
      report.judgePart(part.type, part);
      if (part.type === "text")
        parts.push(textPart(needText(part, "text", `${here}.text`, report), readCacheMark(part)));
      else if (part.type === "refusal")
        parts.push({ kind: "refusal", text: needText(part, "refusal", `${here}.refusal`, report) });
      else report.wrong(`${here}.type`, "must be text or refusal");
    }
  }
  if (typeof message.refusal === "string" && message.refusal !== "")
    parts.push({ kind: "refusal", text: message.refusal });
  if (message.function_call !== undefined && message.function_call !== null)
    report.cannot(`${path}.function_call`, "functions were replaced by tools in 2023; use `tool_calls`");
  if (message.audio !== undefined && message.audio !== null)
    report.cannot(`${path}.audio`, "it is kept in an account at OpenAI");
  for (const [at, call] of readList(message, "tool_calls", report, `${path}.tool_calls`).entries())
    parts.push(readToolCall(call, `${path}.tool_calls[${at}]`, report));
  return parts;
}

function readToolCall(call: Json, path: string, report: TranslationReport): ToolCallPart {
  const custom = call.type === "custom";
  const member = custom ? "custom" : "function";
  const called = readObject(call, member, report, path) ?? {};
  report.judgePart("tool_calls[]", call);
  report.judgePart(`tool_calls[].${member}`, called);
  return {
    kind: "tool_call",
    id: needText(call, "id", `${path}.id`, report),
    name: needText(called, "name", `${path}.${member}.name`, report),
    custom,
    input: custom
      ? needText(called, "input", `${path}.custom.input`, report)
      : needText(called, "arguments", `${path}.function.arguments`, report),
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

function readTextParts(content: unknown, path: string, report: TranslationReport): TextPart[] {
  if (typeof content === "string") return [textPart(content)];
  return readList({ content }, "content", report, path).map((part, at) => {
    report.judgePart("text", part);
    if (part.type !== "text") report.wrong(`${path}[${at}].type`, "must be text");
    return textPart(needText(part, "text", `${path}[${at}].text`, report), readCacheMark(part));
  });
}

const readUserParts = (content: unknown, path: string, report: TranslationReport): UserPart[] =>
  readParts(content, path, report, readUserPart);

function readUserPart(part: Json, path: string, report: TranslationReport): UserPart[] {
  report.judgePart(part.type, part);
  const cache = readCacheMark(part);
  switch (part.type) {
    case "text":
      return [textPart(needText(part, "text", `${path}.text`, report), cache)];
    case "image_url": {
      const image = readObject(part, "image_url", report, `${path}.image_url`) ?? {};
      report.judgePart("image_url.image_url", image);
      const url = needText(image, "url", `${path}.image_url.url`, report);
      return [{ kind: "image", source: sourceOf(url), detail: readText(image, "detail", report), cache }];
    }
    case "file":
      return readFile(readObject(part, "file", report, `${path}.file`) ?? {}, path, cache, report);
    case "input_audio":
      report.cannot(path, "it takes no audio");
      return [];
    default:
      report.cannot(`${path}.type`, `the gateway does not know this kind of content`);
      return [];
  }
}

function readFile(file: Json, path: string, cache: CacheMark, report: TranslationReport): FilePart[] {
  report.judgePart("file.file", file);
  if (typeof file.file_data !== "string") {
    report.cannot(`${path}.file.file_id`, "the file is kept in an account at OpenAI; send it as `file_data`");
    return [];
  }
  return [
    { kind: "file", source: fileSource(file.file_data), name: readText(file, "filename", report), cache },
  ];
}

function readTool(tool: Json, path: string, report: TranslationReport): Tool[] {
  report.judgePart("tools[]", tool);
  if (tool.type === "function") {
    const fn = readObject(tool, "function", report, `${path}.function`) ?? {};
    report.judgePart("tools[].function", fn);
    return [
      {
        kind: "function",
        name: needText(fn, "name", `${path}.function.name`, report),
        description: readText(fn, "description", report, `${path}.function.description`),
        parameters: readObject(fn, "parameters", report, `${path}.function.parameters`) ?? NO_PARAMETERS,
        strict: readBoolean(fn, "strict", report),
        cache: readCacheMark(tool),
      },
    ];
  }
  if (tool.type === "custom") {
    const custom = readObject(tool, "custom", report, `${path}.custom`) ?? {};
    report.judgePart("tools[].custom", custom);
    const format = readObject(custom, "format", report, `${path}.custom.format`);
    const grammar = asObject(format?.grammar);
    return [
      {
        kind: "custom",
        name: needText(custom, "name", `${path}.custom.name`, report),
        description: readText(custom, "description", report),
        // Chat nests the grammar; Responses, whose form is kept here, does not.
        format: grammar === null ? format : { type: "grammar", ...grammar },
      },
    ];
  }
  report.cannot(`${path}.type`, "only functions and custom tools can be called from here");
  return [];
}

function readToolChoice(value: unknown, report: TranslationReport): ToolChoice | null {
  if (value === undefined || value === null) return null;
  if (value === "none" || value === "auto" || value === "required") return { kind: value };
  const choice = asObject(value) ?? {};
  const named = asObject(choice.type === "custom" ? choice.custom : choice.function);
  if (typeof named?.name === "string")
    return { kind: "named", name: named.name, custom: choice.type === "custom" };
  const allowed = asObject(choice.allowed_tools);
  if (choice.type === "allowed_tools" && allowed !== null) {
    const path = "tool_choice.allowed_tools.tools";
    const names = readList(allowed, "tools", report, path).map((tool, at) =>
      needText(
        asObject(tool.function) ?? asObject(tool.custom) ?? tool,
        "name",
        `${path}[${at}].name`,
        report,
      ),
    );
    return { kind: "allowed", mode: allowed.mode === "required" ? "required" : "auto", names };
  }
  report.wrong("tool_choice", "must be none, auto, required, or name a tool");
  return null;
}

function readFormat(format: Json | null, report: TranslationReport): AnswerFormat | null {
  if (format === null || format.type === "text") return null;
  if (format.type === "json_object") return { kind: "json_object" };
  if (format.type !== "json_schema") {
    report.wrong("response_format.type", "must be text, json_object or json_schema");
    return null;
  }
  return readSchema(readObject(format, "json_schema", report, "response_format.json_schema") ?? {}, report);
}

function readReasoning(json: Json, report: TranslationReport): ReasoningSettings | null {
  const nested = readObject(json, "reasoning", report) ?? {};
  const effort = json.reasoning_effort ?? nested.effort ?? null;
  const budget = readNumber(nested, "max_tokens", report, "reasoning.max_tokens");
  // Whether thoughts are shown is the answer's to heed (hidden-thoughts).
  readBoolean(json, "include_reasoning", report);
  readBoolean(nested, "exclude", report, "reasoning.exclude");
  if (json.reasoning_format === "raw") report.omit("reasoning_format");
  if (effort === null && budget === null && nested.enabled !== true) return null;
  if (effort !== null && effort !== "none" && !isEffort(effort)) {
    report.wrong("reasoning_effort", "must be none, minimal, low, medium, high, xhigh or max");
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
