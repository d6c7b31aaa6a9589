import { asObject } from "../json.ts";
import { SEARCHES } from "../own-tools.ts";
import {
  type AnswerFormat,
  type AssistantPart,
  type Conversation,
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
import type { Saying } from "../vocabulary/saying.ts";
import { readSeal } from "../vocabulary/seal.ts";
import { fileSource, sourceOf } from "../vocabulary/sources.ts";
import { flatName, toolLists } from "../vocabulary/tool-names.ts";
import { chatWords, readThinkingWords } from "../vocabulary/vendor-words.ts";
import { asksForSummary, readSummary, SUMMARY_WISH, TRIGGER } from "./compaction.ts";

type Json = Readonly<Record<string, unknown>>;

/** A request of Responses, understood (platform.openai.com, "Create a model response"). */
export function readResponsesRequest(json: Json, saying: Saying): Conversation {
  const text = readObject(json, "text", saying);
  const instructions = readText(json, "instructions", saying);
  const included = Array.isArray(json.include) ? json.include : [];
  if (included.some((name) => !INCLUDABLE.has(name as string))) saying.omit("include");
  // Tools stay offered, because some hosts refuse calls of earlier turns without them.
  const summary = asksForSummary(json);
  return {
    turns: [
      ...(instructions === null || instructions === "" ? [] : [systemTurn(instructions)]),
      ...readInput(json.input, saying),
    ],
    tools: readTools(json, saying),
    toolChoice: summary ? { kind: "none" } : readToolChoice(json.tool_choice, saying),
    parallelToolCalls: readBoolean(json, "parallel_tool_calls", saying),
    format:
      summary || text === null ? null : readFormat(readObject(text, "format", saying, "text.format"), saying),
    maxOutputTokens: readNumber(json, "max_output_tokens", saying),
    temperature: readNumber(json, "temperature", saying),
    topP: readNumber(json, "top_p", saying),
    topK: readNumber(json, "top_k", saying),
    stop: json.stop === undefined || json.stop === null ? [] : readTexts(json.stop, "stop", saying),
    reasoning:
      readReasoning(readObject(json, "reasoning", saying), saying) ?? readThinkingWords(json, saying),
    verbosity: text === null ? null : readText(text, "verbosity", saying, "text.verbosity"),
    logprobs: included.includes(LOGPROBS) ? (readNumber(json, "top_logprobs", saying) ?? 0) : null,
    user: readText(json, "safety_identifier", saying) ?? readText(json, "user", saying),
    cacheKey: readText(json, "prompt_cache_key", saying),
    cache: readObject(json, "cache_control", saying),
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
function readInput(input: unknown, saying: Saying): Turn[] {
  if (typeof input === "string") return [{ role: "user", parts: [textPart(input)] }];
  const turns: Turn[] = [];
  let said: AssistantPart[] | null = null;
  for (const [at, item] of readList({ input }, "input", saying).entries()) {
    const path = `input[${at}]`;
    saying.judgePart(item.type ?? "message", item);
    const parts = readAssistantItem(item, path, saying);
    if (parts === null) {
      said = null;
      turns.push(...readItem(item, path, saying));
    } else if (said === null) {
      said = parts;
      turns.push({ role: "assistant", parts: said });
    } else said.push(...parts);
  }
  return turns;
}

/** What the model said or did; null for an item of anybody else. */
function readAssistantItem(item: Json, path: string, saying: Saying): AssistantPart[] | null {
  switch (item.type ?? "message") {
    case "message":
      return item.role === "assistant" ? readSaid(item.content, `${path}.content`, saying) : null;
    case "reasoning":
      return [readReasoningItem(item)];
    case "function_call":
    case "custom_tool_call":
      return [readCall(item, path, saying)];
    default:
      return null;
  }
}

function readSaid(content: unknown, path: string, saying: Saying): AssistantPart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content)];
  return readList({ content }, "content", saying, path).flatMap((part, at): AssistantPart[] => {
    const here = `${path}[${at}]`;
    saying.judgePart(part.type, part);
    if (part.type === "refusal")
      return [{ kind: "refusal", text: needText(part, "refusal", `${here}.refusal`, saying) }];
    if (part.type !== "output_text" && part.type !== "input_text" && part.type !== "text")
      saying.wrong(`${here}.type`, "must be output_text or refusal");
    return [textPart(needText(part, "text", `${here}.text`, saying), readCacheMark(part))];
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

function readCall(item: Json, path: string, saying: Saying): ToolCallPart {
  const custom = item.type === "custom_tool_call";
  const field = custom ? "input" : "arguments";
  return {
    kind: "tool_call",
    id: needText(item, "call_id", `${path}.call_id`, saying),
    name: flatName(item.namespace, needText(item, "name", `${path}.name`, saying)),
    custom,
    input: needText(item, field, `${path}.${field}`, saying),
    cache: null,
  };
}

function readItem(item: Json, path: string, saying: Saying): Turn[] {
  switch (item.type ?? "message") {
    case "message":
      return readMessage(item, path, saying);
    case "function_call_output":
    case "custom_tool_call_output":
      return [
        {
          role: "tool",
          callId: needText(item, "call_id", `${path}.call_id`, saying),
          parts: readUserParts(item.output, `${path}.output`, saying),
          failed: false,
          custom: item.type === "custom_tool_call_output",
          cache: null,
        },
      ];
    case "additional_tools":
      return [];
    case "tool_search_call":
    case "tool_search_output":
      saying.omit("tool_search");
      return [];
    case "web_search_call":
    case "file_search_call":
    case "code_interpreter_call":
      saying.omit("input[].own_calls");
      return [];
    case TRIGGER:
      return [{ role: "user", parts: [textPart(SUMMARY_WISH)] }];
    case "compaction": {
      const summary = readSummary(item);
      if (summary !== null) return [{ role: "user", parts: [textPart(summary)] }];
      saying.cannot(`${path}.encrypted_content`, "only OpenAI's hosts can read what they encrypted");
      return [];
    }
    default:
      saying.cannot(`${path}.type`, "only OpenAI's hosts know items of this type");
      return [];
  }
}

function readMessage(item: Json, path: string, saying: Saying): Turn[] {
  const parts = readUserParts(item.content, `${path}.content`, saying);
  switch (item.role) {
    case "user":
      return [{ role: "user", parts }];
    case "system":
    case "developer":
      if (parts.some(({ kind }) => kind !== "text")) saying.wrong(`${path}.content`, "must be text");
      return [{ role: item.role, parts: parts as TextPart[] }];
    default:
      saying.wrong(`${path}.role`, "must be user, assistant, system or developer");
      return [];
  }
}

const readUserParts = (content: unknown, path: string, saying: Saying): UserPart[] =>
  readParts(content, path, saying, readUserPart);

function readUserPart(part: Json, path: string, saying: Saying): UserPart[] {
  saying.judgePart(part.type, part);
  const cache = readCacheMark(part);
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return [textPart(needText(part, "text", `${path}.text`, saying), cache)];
    case "input_image": {
      if (typeof part.image_url !== "string") {
        saying.cannot(`${path}.file_id`, "the file is kept in an account at OpenAI; send it as `image_url`");
        return [];
      }
      const detail = readText(part, "detail", saying, `${path}.detail`);
      return [{ kind: "image", source: sourceOf(part.image_url), detail, cache }];
    }
    case "input_file": {
      const name = readText(part, "filename", saying, `${path}.filename`);
      if (typeof part.file_url === "string")
        return [{ kind: "file", source: { from: "url", url: part.file_url }, name, cache }];
      if (typeof part.file_data === "string")
        return [{ kind: "file", source: fileSource(part.file_data), name, cache }];
      saying.cannot(`${path}.file_id`, "the file is kept in an account at OpenAI; send it as `file_data`");
      return [];
    }
    case "input_audio":
      saying.cannot(path, "it takes no audio");
      return [];
    default:
      saying.cannot(`${path}.type`, "the gateway does not know this kind of content");
      return [];
  }
}

/** Items of an input may offer again what was offered before them, and hosts refuse two of one name. */
function readTools(json: Json, saying: Saying): Tool[] {
  const tools: Tool[] = [];
  const names = new Set<string>();
  for (const list of toolLists(json)) {
    const read = readList(list, "tools", saying, list.path).flatMap((tool, at) =>
      readTool(tool, `${list.path}[${at}]`, saying),
    );
    tools.push(...read.filter(({ name }) => !names.has(name)));
    for (const { name } of read) names.add(name);
  }
  return tools;
}

const TOOL_HINTS = ["defer_loading", "allowed_callers", "async", "output_schema"];

function readTool(tool: Json, path: string, saying: Saying, namespace: string | null = null): Tool[] {
  if (SEARCHES.has(tool.type)) {
    saying.omit("tools[].web_search");
    return [];
  }
  if (tool.type === "tool_search") {
    saying.omit("tool_search");
    return [];
  }
  if (namesAny(tool, TOOL_HINTS)) saying.omit("tools[].hints");
  saying.judgePart(tool.type === "namespace" ? "namespace" : "tools[]", tool);
  switch (tool.type) {
    case "function":
      return [
        {
          kind: "function",
          name: flatName(namespace, needText(tool, "name", `${path}.name`, saying)),
          description: readText(tool, "description", saying, `${path}.description`),
          parameters: readObject(tool, "parameters", saying, `${path}.parameters`) ?? NO_PARAMETERS,
          strict: readBoolean(tool, "strict", saying),
          cache: readCacheMark(tool),
        },
      ];
    case "custom":
      return [
        {
          kind: "custom",
          name: flatName(namespace, needText(tool, "name", `${path}.name`, saying)),
          description: readText(tool, "description", saying, `${path}.description`),
          format: readObject(tool, "format", saying, `${path}.format`),
        },
      ];
    case "namespace": {
      const name = needText(tool, "name", `${path}.name`, saying);
      if (namespace !== null) saying.cannot(path, "a namespace cannot contain another one");
      else
        return readList(tool, "tools", saying, `${path}.tools`).flatMap((inner, at) =>
          readTool(inner, `${path}.tools[${at}]`, saying, name),
        );
      return [];
    }
    default:
      saying.cannot(`${path}.type`, "only OpenAI's hosts run this tool");
      return [];
  }
}

function readToolChoice(value: unknown, saying: Saying): ToolChoice | null {
  if (value === undefined || value === null) return null;
  if (value === "none" || value === "auto" || value === "required") return { kind: value };
  const choice = asObject(value) ?? {};
  const { type, name, namespace } = choice;
  if ((type === "function" || type === "custom") && typeof name === "string")
    return { kind: "named", name: flatName(namespace, name), custom: type === "custom" };
  if (type === "allowed_tools") {
    const names = readList(choice, "tools", saying, "tool_choice.tools").map((tool, at) =>
      flatName(tool.namespace, needText(tool, "name", `tool_choice.tools[${at}].name`, saying)),
    );
    return { kind: "allowed", mode: choice.mode === "required" ? "required" : "auto", names };
  }
  saying.cannot(
    "tool_choice",
    "only none, auto, required, and functions and custom tools by name are known there",
  );
  return null;
}

function readFormat(format: Json | null, saying: Saying): AnswerFormat | null {
  if (format === null || format.type === "text") return null;
  if (format.type === "json_object") return { kind: "json_object" };
  if (format.type === "json_schema") return readSchema(format, saying);
  saying.wrong("text.format.type", "must be text, json_object or json_schema");
  return null;
}

const isUnusual = (value: unknown, usual: string): boolean =>
  value !== undefined && value !== null && value !== usual;

function readReasoning(reasoning: Json | null, saying: Saying): ReasoningWish | null {
  if (reasoning === null) return null;
  const { effort, mode, context } = reasoning;
  if (isUnusual(mode, "standard")) saying.omit("reasoning.mode");
  if (isUnusual(context, "auto")) saying.omit("reasoning.context");
  const summary = readText(reasoning, "summary", saying) ?? readText(reasoning, "generate_summary", saying);
  if (effort === undefined || effort === null)
    return summary === null ? null : { off: false, effort: null, budgetTokens: null, summary };
  if (effort === "none") return { off: true, effort: null, budgetTokens: null, summary: null };
  if (isEffort(effort)) return { off: false, effort, budgetTokens: null, summary };
  saying.wrong("reasoning.effort", "must be none, minimal, low, medium, high, xhigh or max");
  return null;
}
