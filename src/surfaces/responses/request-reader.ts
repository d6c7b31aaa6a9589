import { asObject, type Json } from "../json.ts";
import { SEARCHES } from "../own-tools.ts";
import {
  type AnswerFormat,
  type AssistantPart,
  type Conversation,
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
  namesAny,
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
import { flatName, toolLists } from "../vocabulary/tool-names.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";
import { chatWords, readThinkingWords } from "../vocabulary/vendor-words.ts";
import { asksForSummary, readSummary, SUMMARY_REQUEST, TRIGGER } from "./compaction.ts";

/** A request of Responses, understood (platform.openai.com, "Create a model response"). */
export function readResponsesRequest(json: Json, report: TranslationReport): Conversation {
  const text = readObject(json, "text", report);
  const instructions = readText(json, "instructions", report);
  const included = Array.isArray(json.include) ? json.include : [];
  if (included.some((name) => !INCLUDABLE.has(name as string))) report.omit("include");
  // Tools stay offered, because some hosts refuse calls of earlier turns without them.
  const summary = asksForSummary(json);
  return {
    turns: [
      ...(instructions === null || instructions === "" ? [] : [systemTurn(instructions)]),
      ...readInput(json.input, report),
    ],
    tools: readTools(json, report),
    toolChoice: summary ? { kind: "none" } : readToolChoice(json.tool_choice, report),
    parallelToolCalls: readBoolean(json, "parallel_tool_calls", report),
    format:
      summary || text === null ? null : readFormat(readObject(text, "format", report, "text.format"), report),
    maxOutputTokens: readNumber(json, "max_output_tokens", report),
    temperature: readNumber(json, "temperature", report),
    topP: readNumber(json, "top_p", report),
    topK: readNumber(json, "top_k", report),
    stop: json.stop === undefined || json.stop === null ? [] : readTexts(json.stop, "stop", report),
    reasoning:
      readReasoning(readObject(json, "reasoning", report), report) ?? readThinkingWords(json, report),
    verbosity: text === null ? null : readText(text, "verbosity", report, "text.verbosity"),
    logprobs: included.includes(LOGPROBS) ? (readNumber(json, "top_logprobs", report) ?? 0) : null,
    user: readText(json, "safety_identifier", report) ?? readText(json, "user", report),
    cacheKey: readText(json, "prompt_cache_key", report),
    cache: readObject(json, "cache_control", report),
    openai: pick(json, OPENAI_MEMBERS),
    chat: chatWords(json),
  };
}

export const ENCRYPTED = "reasoning.encrypted_content";
export const LOGPROBS = "message.output_text.logprobs";
const INCLUDABLE = new Set([ENCRYPTED, LOGPROBS]);

/**
 * Whether the client sends thoughts back: it says so, or leaves `store` at OpenAI's default, and then
 * believes that the host keeps what it sends back by its id.
 */
export const wantsEncrypted = ({ store, include }: Json): boolean =>
  store !== false || (Array.isArray(include) && include.includes(ENCRYPTED));

const systemTurn = (text: string): Turn => ({ role: "system", parts: [textPart(text)] });

/** Items of the model stand one by one; together they are one turn of it. */
function readInput(input: unknown, report: TranslationReport): Turn[] {
  if (typeof input === "string") return [{ role: "user", parts: [textPart(input)] }];
  const turns: Turn[] = [];
  let said: AssistantPart[] | null = null;
  for (const [at, item] of readList({ input }, "input", report).entries()) {
    const path = `input[${at}]`;
    report.judgePart(item.type ?? "message", item);
    const parts = readAssistantItem(item, path, report);
    if (parts === null) {
      said = null;
      turns.push(...readItem(item, path, report));
    } else if (said === null) {
      said = parts;
      turns.push({ role: "assistant", parts: said });
    } else said.push(...parts);
  }
  return turns;
}

/** What the model said or did; null for an item of anybody else. */
function readAssistantItem(item: Json, path: string, report: TranslationReport): AssistantPart[] | null {
  switch (item.type ?? "message") {
    case "message":
      return item.role === "assistant" ? readSaid(item.content, `${path}.content`, report) : null;
    case "reasoning":
      return [readReasoningItem(item)];
    case "function_call":
    case "custom_tool_call":
      return [readCall(item, path, report)];
    default:
      return null;
  }
}

function readSaid(content: unknown, path: string, report: TranslationReport): AssistantPart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content)];
  return readList({ content }, "content", report, path).flatMap((part, at): AssistantPart[] => {
    const here = `${path}[${at}]`;
    report.judgePart(part.type, part);
    if (part.type === "refusal")
      return [{ kind: "refusal", text: needText(part, "refusal", `${here}.refusal`, report) }];
    if (part.type !== "output_text" && part.type !== "input_text" && part.type !== "text")
      report.wrong(`${here}.type`, "must be output_text or refusal");
    return [textPart(needText(part, "text", `${here}.text`, report), readCacheMark(part))];
  });
}

/** Encrypted thoughts go back together with the id that they were given. */
export function readReasoningItem(item: Json): ReasoningPart {
  const lists = [item.summary, item.content].flatMap((list) => (Array.isArray(list) ? list : []));
  const texts = lists.map((part) => asObject(part)?.text).filter((text) => typeof text === "string");
  const encrypted = item.encrypted_content;
  const sealed = readSeal(encrypted);
  const native = typeof encrypted === "string" && encrypted !== "" && typeof item.id === "string";
  return {
    kind: "reasoning",
    text: texts.join("\n\n"),
    seal: sealed ?? (native ? { family: null, kind: "encrypted", data: `${item.id} ${encrypted}` } : null),
  };
}

function readCall(item: Json, path: string, report: TranslationReport): ToolCallPart {
  const custom = item.type === "custom_tool_call";
  const field = custom ? "input" : "arguments";
  return {
    kind: "tool_call",
    id: needText(item, "call_id", `${path}.call_id`, report),
    name: flatName(item.namespace, needText(item, "name", `${path}.name`, report)),
    custom,
    input: needText(item, field, `${path}.${field}`, report),
    cache: null,
  };
}

function readItem(item: Json, path: string, report: TranslationReport): Turn[] {
  switch (item.type ?? "message") {
    case "message":
      return readMessage(item, path, report);
    case "function_call_output":
    case "custom_tool_call_output":
      return [
        {
          role: "tool",
          callId: needText(item, "call_id", `${path}.call_id`, report),
          parts: readUserParts(item.output, `${path}.output`, report),
          failed: false,
          custom: item.type === "custom_tool_call_output",
          cache: null,
        },
      ];
    case "additional_tools":
      return [];
    case "tool_search_call":
    case "tool_search_output":
      report.omit("tool_search");
      return [];
    case "web_search_call":
    case "file_search_call":
    case "code_interpreter_call":
      report.omit("input[].own_calls");
      return [];
    case TRIGGER:
      return [{ role: "user", parts: [textPart(SUMMARY_REQUEST)] }];
    case "compaction": {
      const summary = readSummary(item);
      if (summary !== null) return [{ role: "user", parts: [textPart(summary)] }];
      report.cannot(`${path}.encrypted_content`, "only OpenAI's hosts can read what they encrypted");
      return [];
    }
    default:
      report.cannot(`${path}.type`, "only OpenAI's hosts know items of this type");
      return [];
  }
}

function readMessage(item: Json, path: string, report: TranslationReport): Turn[] {
  const parts = readUserParts(item.content, `${path}.content`, report);
  switch (item.role) {
    case "user":
      return [{ role: "user", parts }];
    case "system":
    case "developer":
      if (parts.some(({ kind }) => kind !== "text")) report.wrong(`${path}.content`, "must be text");
      return [{ role: item.role, parts: parts as TextPart[] }];
    default:
      report.wrong(`${path}.role`, "must be user, assistant, system or developer");
      return [];
  }
}

const readUserParts = (content: unknown, path: string, report: TranslationReport): UserPart[] =>
  readParts(content, path, report, readUserPart);

function readUserPart(part: Json, path: string, report: TranslationReport): UserPart[] {
  report.judgePart(part.type, part);
  const cache = readCacheMark(part);
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return [textPart(needText(part, "text", `${path}.text`, report), cache)];
    case "input_image": {
      if (typeof part.image_url !== "string") {
        report.cannot(`${path}.file_id`, "the file is kept in an account at OpenAI; send it as `image_url`");
        return [];
      }
      const detail = readText(part, "detail", report, `${path}.detail`);
      return [{ kind: "image", source: sourceOf(part.image_url), detail, cache }];
    }
    case "input_file": {
      const name = readText(part, "filename", report, `${path}.filename`);
      if (typeof part.file_url === "string")
        return [{ kind: "file", source: { from: "url", url: part.file_url }, name, cache }];
      if (typeof part.file_data === "string")
        return [{ kind: "file", source: fileSource(part.file_data), name, cache }];
      report.cannot(`${path}.file_id`, "the file is kept in an account at OpenAI; send it as `file_data`");
      return [];
    }
    case "input_audio":
      report.cannot(path, "it takes no audio");
      return [];
    default:
      report.cannot(`${path}.type`, "the gateway does not know this kind of content");
      return [];
  }
}

/** Items of an input may offer again what was offered before them, and hosts refuse two of one name. */
function readTools(json: Json, report: TranslationReport): Tool[] {
  const tools: Tool[] = [];
  const names = new Set<string>();
  for (const list of toolLists(json)) {
    const read = readList(list, "tools", report, list.path).flatMap((tool, at) =>
      readTool(tool, `${list.path}[${at}]`, report),
    );
    tools.push(...read.filter(({ name }) => !names.has(name)));
    for (const { name } of read) names.add(name);
  }
  return tools;
}

const TOOL_HINTS = ["defer_loading", "allowed_callers", "async", "output_schema"];

function readTool(
  tool: Json,
  path: string,
  report: TranslationReport,
  namespace: string | null = null,
): Tool[] {
  if (SEARCHES.has(tool.type)) {
    report.omit("tools[].web_search");
    return [];
  }
  if (tool.type === "tool_search") {
    report.omit("tool_search");
    return [];
  }
  if (namesAny(tool, TOOL_HINTS)) report.omit("tools[].hints");
  report.judgePart(tool.type === "namespace" ? "namespace" : "tools[]", tool);
  switch (tool.type) {
    case "function":
      return [
        {
          kind: "function",
          name: flatName(namespace, needText(tool, "name", `${path}.name`, report)),
          description: readText(tool, "description", report, `${path}.description`),
          parameters: readObject(tool, "parameters", report, `${path}.parameters`) ?? NO_PARAMETERS,
          strict: readBoolean(tool, "strict", report),
          cache: readCacheMark(tool),
        },
      ];
    case "custom":
      return [
        {
          kind: "custom",
          name: flatName(namespace, needText(tool, "name", `${path}.name`, report)),
          description: readText(tool, "description", report, `${path}.description`),
          format: readObject(tool, "format", report, `${path}.format`),
        },
      ];
    case "namespace": {
      const name = needText(tool, "name", `${path}.name`, report);
      if (namespace !== null) report.cannot(path, "a namespace cannot contain another one");
      else
        return readList(tool, "tools", report, `${path}.tools`).flatMap((inner, at) =>
          readTool(inner, `${path}.tools[${at}]`, report, name),
        );
      return [];
    }
    default:
      report.cannot(`${path}.type`, "only OpenAI's hosts run this tool");
      return [];
  }
}

function readToolChoice(value: unknown, report: TranslationReport): ToolChoice | null {
  if (value === undefined || value === null) return null;
  if (value === "none" || value === "auto" || value === "required") return { kind: value };
  const choice = asObject(value) ?? {};
  const { type, name, namespace } = choice;
  if ((type === "function" || type === "custom") && typeof name === "string")
    return { kind: "named", name: flatName(namespace, name), custom: type === "custom" };
  if (type === "allowed_tools") {
    const names = readList(choice, "tools", report, "tool_choice.tools").map((tool, at) =>
      flatName(tool.namespace, needText(tool, "name", `tool_choice.tools[${at}].name`, report)),
    );
    return { kind: "allowed", mode: choice.mode === "required" ? "required" : "auto", names };
  }
  report.cannot(
    "tool_choice",
    "only none, auto, required, and functions and custom tools by name are known there",
  );
  return null;
}

function readFormat(format: Json | null, report: TranslationReport): AnswerFormat | null {
  if (format === null || format.type === "text") return null;
  if (format.type === "json_object") return { kind: "json_object" };
  if (format.type === "json_schema") return readSchema(format, report);
  report.wrong("text.format.type", "must be text, json_object or json_schema");
  return null;
}

const isUnusual = (value: unknown, usual: string): boolean =>
  value !== undefined && value !== null && value !== usual;

function readReasoning(reasoning: Json | null, report: TranslationReport): ReasoningSettings | null {
  if (reasoning === null) return null;
  const { effort, mode, context } = reasoning;
  if (isUnusual(mode, "standard")) report.omit("reasoning.mode");
  if (isUnusual(context, "auto")) report.omit("reasoning.context");
  const summary = readText(reasoning, "summary", report) ?? readText(reasoning, "generate_summary", report);
  if (effort === undefined || effort === null)
    return summary === null ? null : { off: false, effort: null, budgetTokens: null, summary };
  if (effort === "none") return { off: true, effort: null, budgetTokens: null, summary: null };
  if (isEffort(effort)) return { off: false, effort, budgetTokens: null, summary };
  report.wrong("reasoning.effort", "must be none, minimal, low, medium, high, xhigh or max");
  return null;
}
