import { asObject, type Json } from "../json/json.ts";
import { SEARCHES } from "../request/own-tools.ts";
import {
  type AssistantPart,
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
import { NO_PARAMETERS, OPENAI_MEMBERS, refuseContent, textPart } from "../vocabulary/members.ts";
import type { ObjectReader } from "../vocabulary/object-reader.ts";
import { readSeal } from "../vocabulary/seal.ts";
import { fileSource, sourceOf } from "../vocabulary/sources.ts";
import { flatName, toolLists } from "../vocabulary/tools.ts";
import { chatWords, readThinkingWords } from "../vocabulary/vendor-words.ts";
import { asksForSummary, readSummary, SUMMARY_REQUEST, TRIGGER } from "./compaction.ts";

/** A request of Responses, understood (platform.openai.com, "Create a model response"). */
export function readResponsesRequest(body: ObjectReader, json: Json): Conversation {
  const cacheOptions = body.cacheOptions();
  const text = body.object("text");
  const instructions = body.text("instructions");
  const include = body.take("include");
  const included: readonly unknown[] = Array.isArray(include) ? include : [];
  if (included.some((name) => !INCLUDABLE.has(name))) body.report.omit("include");
  // Tools stay offered, because some hosts refuse calls of earlier turns without them.
  const summary = asksForSummary(json);
  return {
    turns: [
      ...(instructions ? [{ role: "system", parts: [textPart(instructions)] } as const] : []),
      ...readInput(body),
    ],
    tools: readTools(body, json),
    toolChoice: summary ? { kind: "none" } : readToolChoice(body),
    parallelToolCalls: body.boolean("parallel_tool_calls"),
    format: summary ? null : (text?.answerFormat("format", null) ?? null),
    maxOutputTokens: body.number("max_output_tokens"),
    temperature: body.number("temperature"),
    topP: body.number("top_p"),
    topK: body.number("top_k"),
    stop: body.texts("stop"),
    reasoning: readReasoning(body.object("reasoning")) ?? readThinkingWords(body),
    verbosity: text?.text("verbosity") ?? null,
    logprobs: included.includes(LOGPROBS) ? (body.number("top_logprobs") ?? 0) : null,
    user: body.text("safety_identifier") ?? body.text("user"),
    cacheKey: body.text("prompt_cache_key"),
    cache: body.wholeMark(),
    cacheOptions,
    openai: body.pick(OPENAI_MEMBERS),
    chat: chatWords(body),
  };
}

export const ENCRYPTED = "reasoning.encrypted_content";
export const LOGPROBS = "message.output_text.logprobs";
const INCLUDABLE = new Set<unknown>([ENCRYPTED, LOGPROBS]);

/**
 * Whether the client sends thoughts back: it says so, or leaves `store` at OpenAI's default, and then
 * believes that the host keeps what it sends back by its id.
 */
export const wantsEncrypted = ({ store, include }: Json): boolean =>
  store !== false || (Array.isArray(include) && include.includes(ENCRYPTED));

/** Items of the model stand one by one; together they are one turn of it. */
function readInput(body: ObjectReader): Turn[] {
  const input = body.take("input");
  if (typeof input === "string") return [{ role: "user", parts: [textPart(input)] }];
  const turns: Turn[] = [];
  let modelParts: AssistantPart[] | null = null;
  for (const item of body.list("input", ({ type }) => type ?? "message")) {
    // Labels of an answer that is sent back.
    item.skip("id", "status");
    const parts = readAssistantItem(item);
    if (parts === null) {
      modelParts = null;
      turns.push(...readItem(item));
    } else if (modelParts === null) {
      modelParts = parts;
      turns.push({ role: "assistant", parts: modelParts });
    } else modelParts.push(...parts);
  }
  return turns;
}

/** What the model said or did; null for an item of anybody else. */
function readAssistantItem(item: ObjectReader): AssistantPart[] | null {
  switch (item.type ?? "message") {
    case "message":
      if (item.take("role") !== "assistant") return null;
      return item.take("content") === "" ? [] : item.parts("content", readContent);
    case "reasoning":
      return [readReasoningItem(item.pick(["id", "summary", "content", "encrypted_content"]))];
    case "function_call":
    case "custom_tool_call":
      return [readCall(item)];
    default:
      return null;
  }
}

function readContent(part: ObjectReader): AssistantPart[] {
  if (part.type === "refusal") return [{ kind: "refusal", text: part.neededText("refusal") }];
  if (!TEXTS.has(part.type)) part.wrong("type", "must be output_text or refusal");
  return [readText(part)];
}

const TEXTS = new Set<unknown>(["input_text", "output_text", "text"]);

function readText(part: ObjectReader): TextPart {
  part.skip("logprobs");
  return part.textPart();
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

function readCall(item: ObjectReader): ToolCallPart {
  const custom = item.type === "custom_tool_call";
  return {
    kind: "tool_call",
    id: item.neededText("call_id"),
    name: flatName(item.take("namespace"), item.neededText("name")),
    custom,
    input: item.neededText(custom ? "input" : "arguments"),
    cache: null,
  };
}

function readItem(item: ObjectReader): Turn[] {
  switch (item.type ?? "message") {
    case "message":
      return readMessage(item);
    case "function_call_output":
    case "custom_tool_call_output":
      return [
        {
          role: "tool",
          callId: item.neededText("call_id"),
          parts: item.neededParts("output", readUserPart),
          failed: false,
          custom: item.type === "custom_tool_call_output",
          cache: null,
        },
      ];
    case "additional_tools":
      item.skip("role", "tools");
      return [];
    case "tool_search_call":
    case "tool_search_output":
      item.leaveOut("tool_search");
      return [];
    case "web_search_call":
    case "file_search_call":
    case "code_interpreter_call":
      item.leaveOut("input[].own_calls");
      return [];
    case TRIGGER:
      return [{ role: "user", parts: [textPart(SUMMARY_REQUEST)] }];
    case "compaction": {
      const summary = readSummary(item.pick(["encrypted_content"]));
      if (summary !== null) return [{ role: "user", parts: [textPart(summary)] }];
      item.cannot("encrypted_content", "only OpenAI's hosts can read what they encrypted");
      return [];
    }
    default:
      item.cannot("type", "only OpenAI's hosts know items of this type");
      return [];
  }
}

function readMessage(item: ObjectReader): Turn[] {
  const role = item.take("role");
  const parts = item.neededParts("content", readUserPart);
  switch (role) {
    case "user":
      return [{ role, parts }];
    case "system":
    case "developer":
      if (parts.some(({ kind }) => kind !== "text")) item.wrong("content", "must be text");
      return [{ role, parts: parts as TextPart[] }];
    default:
      item.wrong("role", "must be user, assistant, system or developer");
      return [];
  }
}

function readUserPart(part: ObjectReader): UserPart[] {
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return [readText(part)];
    case "input_image": {
      const url = part.take("image_url");
      const detail = part.text("detail");
      if (typeof url === "string")
        return [{ kind: "image", source: sourceOf(url), detail, cache: part.cacheMark() }];
      part.cannot("file_id", "the file is kept in an account at OpenAI; send it as `image_url`");
      return [];
    }
    case "input_file":
      return readFile(part);
    default:
      return refuseContent(part);
  }
}

function readFile(part: ObjectReader): FilePart[] {
  const [url, data] = [part.take("file_url"), part.take("file_data")];
  const source: FilePart["source"] | null =
    typeof url === "string" ? { from: "url", url } : typeof data === "string" ? fileSource(data) : null;
  if (source !== null)
    return [{ kind: "file", source, name: part.text("filename"), cache: part.cacheMark() }];
  part.cannot("file_id", "the file is kept in an account at OpenAI; send it as `file_data`");
  return [];
}

/** Items of an input may offer again what was offered before them, and hosts refuse two of one name. */
function readTools(body: ObjectReader, json: Json): Tool[] {
  const tools: Tool[] = [];
  const names = new Set<string>();
  for (const list of toolLists(json)) {
    const read = body.items(list.tools ?? null, list.path, toolKind).flatMap((tool) => readTool(tool));
    tools.push(...read.filter(({ name }) => !names.has(name)));
    for (const { name } of read) names.add(name);
  }
  return tools;
}

const toolKind = ({ type }: Json): string => (type === "namespace" ? "namespace" : "tools[]");

const TOOL_HINTS = ["defer_loading", "allowed_callers", "async", "output_schema"];

function readTool(tool: ObjectReader, namespace: string | null = null): Tool[] {
  const { type } = tool;
  if (SEARCHES.has(type) || type === "tool_search") {
    tool.leaveOut(type === "tool_search" ? type : "tools[].web_search");
    return [];
  }
  if (tool.hasAny(TOOL_HINTS)) tool.report.omit("tools[].hints");
  switch (type) {
    case "function":
    case "custom": {
      const name = flatName(namespace, tool.neededText("name"));
      const description = tool.text("description");
      if (type === "custom") return [{ kind: type, name, description, format: tool.whole("format") }];
      const parameters = tool.whole("parameters") ?? NO_PARAMETERS;
      const strict = tool.boolean("strict");
      return [{ kind: type, name, description, parameters, strict, cache: tool.cacheMark() }];
    }
    case "namespace": {
      const name = tool.neededText("name");
      if (namespace === null) return tool.list("tools", toolKind).flatMap((inner) => readTool(inner, name));
      tool.cannot(null, "a namespace cannot contain another one");
      return [];
    }
    default:
      tool.cannot("type", "only OpenAI's hosts run this tool");
      return [];
  }
}

function readToolChoice(body: ObjectReader): ToolChoice | null {
  const value = body.take("tool_choice");
  if (value === null) return null;
  if (value === "none" || value === "auto" || value === "required") return { kind: value };
  const choice = body.objectAmong("tool_choice");
  const [type, name] = [choice?.type, choice?.take("name")];
  if ((type === "function" || type === "custom") && typeof name === "string")
    return { kind: "named", name: flatName(choice!.take("namespace"), name), custom: type === "custom" };
  if (type === "allowed_tools") {
    const names = choice!
      .list("tools")
      .map((tool) => flatName(tool.take("namespace"), tool.neededText("name")));
    return { kind: "allowed", mode: choice!.take("mode") === "required" ? "required" : "auto", names };
  }
  body.cannot(
    "tool_choice",
    "only none, auto, required, and functions and custom tools by name are known there",
  );
  return null;
}

function readReasoning(reasoning: ObjectReader | null): ReasoningSettings | null {
  if (reasoning === null) return null;
  if ((reasoning.take("mode") ?? "standard") !== "standard") reasoning.report.omit("reasoning.mode");
  if ((reasoning.take("context") ?? "auto") !== "auto") reasoning.report.omit("reasoning.context");
  const [newer, older] = [reasoning.text("summary"), reasoning.text("generate_summary")];
  const summary = newer ?? older;
  const effort = reasoning.take("effort");
  if (effort === null && summary === null) return null;
  if (effort === null) return { off: false, effort, budgetTokens: null, summary };
  if (effort === "none") return { off: true, effort: null, budgetTokens: null, summary: null };
  if (isEffort(effort)) return { off: false, effort, budgetTokens: null, summary };
  return reasoning.wrong("effort", "must be none, minimal, low, medium, high, xhigh or max");
}
