import { asObject, asText } from "../json/json.ts";
import {
  type AssistantPart,
  type Conversation,
  type FilePart,
  isEffort,
  type ReasoningPart,
  type ReasoningSettings,
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
import { readThinkingWords } from "../vocabulary/vendor-words.ts";

/** A request of Chat Completions, understood (platform.openai.com, "Create chat completion"). */
export function readChatRequest(body: ObjectReader): Conversation {
  const cacheOptions = body.cacheOptions();
  return {
    turns: body.list("messages").flatMap(readMessage),
    tools: body.list("tools").flatMap(readTool),
    toolChoice: readToolChoice(body),
    parallelToolCalls: body.boolean("parallel_tool_calls"),
    format: body.answerFormat("response_format", "json_schema"),
    maxOutputTokens: largest(body.number("max_tokens"), body.number("max_completion_tokens")),
    temperature: body.number("temperature"),
    topP: body.number("top_p"),
    topK: body.number("top_k"),
    stop: body.texts("stop"),
    reasoning: readReasoning(body) ?? readThinkingWords(body),
    verbosity: body.text("verbosity"),
    logprobs: body.take("logprobs") === true ? (body.number("top_logprobs") ?? 0) : null,
    user: body.text("safety_identifier") ?? body.text("user"),
    cacheKey: body.text("prompt_cache_key"),
    cache: body.wholeMark(),
    cacheOptions,
    openai: body.pick(OPENAI_MEMBERS),
    chat: {},
  };
}

function readMessage(message: ObjectReader): Turn[] {
  const role = message.take("role");
  if (message.take("name") !== null && role !== "function") message.report.omit("messages[].name");
  switch (role) {
    case "system":
    case "developer":
      return [{ role, parts: message.textParts("content") }];
    case "user":
      return [{ role, parts: readUserParts(message) }];
    case "assistant":
      return [{ role, parts: readAssistantMessage(message) }];
    case "tool":
      return [
        {
          role,
          callId: message.neededText("tool_call_id"),
          parts: readUserParts(message),
          failed: false,
          custom: false,
          cache: message.cacheMark(),
        },
      ];
    default:
      message.wrong("role", "must be one of system, developer, user, assistant, tool");
      return [];
  }
}

/** An assistant's message: thoughts, then text, then calls. */
function readAssistantMessage(message: ObjectReader): AssistantPart[] {
  const parts: AssistantPart[] = [...readThoughts(message), ...readContent(message)];
  const refusal = message.take("refusal");
  if (typeof refusal === "string" && refusal !== "") parts.push({ kind: "refusal", text: refusal });
  if (message.take("function_call") !== null)
    message.cannot("function_call", "functions were replaced by tools in 2023; use `tool_calls`");
  if (message.take("audio") !== null) message.cannot("audio", "it is kept in an account at OpenAI");
  return [...parts, ...message.list("tool_calls").map(readToolCall)];
}

function readContent(message: ObjectReader): AssistantPart[] {
  const content = message.take("content");
  if (typeof content === "string") return content === "" ? [] : [textPart(content, message.cacheMark())];
  return message.parts("content", (part): AssistantPart[] => {
    if (part.type === "text") return [part.textPart()];
    if (part.type === "refusal") return [{ kind: "refusal", text: part.neededText("refusal") }];
    part.wrong("type", "must be text or refusal");
    return [];
  });
}

function readToolCall(call: ObjectReader): ToolCallPart {
  const custom = call.type === "custom";
  const called = call.inner(custom ? "custom" : "function");
  call.skip("index");
  return {
    kind: "tool_call",
    id: call.neededText("id"),
    name: called.neededText("name"),
    custom,
    input: called.neededText(custom ? "input" : "arguments"),
    cache: null,
  };
}

/** `reasoning_details` (OpenRouter, which carries signatures), else `reasoning_content` or `reasoning`. */
function readThoughts(message: ObjectReader): ReasoningPart[] {
  const details = message.take("reasoning_details");
  const plain = [message.take("reasoning_content"), message.take("reasoning")].find(
    (one) => typeof one === "string" && one !== "",
  );
  const parts = Array.isArray(details) ? readDetails(details) : [];
  if (parts.length > 0 || plain === undefined) return parts;
  return [{ kind: "reasoning", text: plain as string, seal: null }];
}

function readDetails(details: readonly unknown[]): ReasoningPart[] {
  const parts: ReasoningPart[] = [];
  let before = "";
  for (const value of details) {
    const detail = asObject(value) ?? {};
    const words = [detail.text, detail.summary].find((one) => typeof one === "string") as string | undefined;
    const seal = readSeal(detail.signature) ?? readSeal(detail.data);
    if (words === undefined && seal === null) continue;
    const position = `${asText(detail.type)} ${asText(detail.index)}`;
    const last = parts.at(-1);
    // Streams tell a thought in pieces and its seal last; not every client puts them together.
    if (last?.seal === null && position === before)
      parts[parts.length - 1] = { kind: "reasoning", text: last.text + (words ?? ""), seal };
    else parts.push({ kind: "reasoning", text: words ?? "", seal });
    before = position;
  }
  return parts;
}

const readUserParts = (message: ObjectReader): UserPart[] => message.neededParts("content", readUserPart);

function readUserPart(part: ObjectReader): UserPart[] {
  switch (part.type) {
    case "text":
      return [part.textPart()];
    case "image_url": {
      const image = part.inner("image_url");
      const source = sourceOf(image.neededText("url"));
      return [{ kind: "image", source, detail: image.text("detail"), cache: part.cacheMark() }];
    }
    case "file":
      return readFile(part);
    default:
      return refuseContent(part);
  }
}

function readFile(part: ObjectReader): FilePart[] {
  const file = part.inner("file");
  const data = file.take("file_data");
  if (typeof data === "string")
    return [{ kind: "file", source: fileSource(data), name: file.text("filename"), cache: part.cacheMark() }];
  file.cannot("file_id", "the file is kept in an account at OpenAI; send it as `file_data`");
  return [];
}

function readTool(tool: ObjectReader): Tool[] {
  const { type } = tool;
  if (type !== "function" && type !== "custom") {
    tool.cannot("type", "only functions and custom tools can be called from here");
    return [];
  }
  const given = tool.inner(type);
  const named = { name: given.neededText("name"), description: given.text("description") };
  if (type === "function") {
    const parameters = given.whole("parameters") ?? NO_PARAMETERS;
    return [{ kind: type, ...named, parameters, strict: given.boolean("strict"), cache: tool.cacheMark() }];
  }
  const format = given.whole("format");
  const grammar = asObject(format?.grammar);
  // Chat nests the grammar; Responses, whose form is kept here, does not.
  return [{ kind: type, ...named, format: grammar === null ? format : { type: "grammar", ...grammar } }];
}

function readToolChoice(body: ObjectReader): ToolChoice | null {
  const value = body.take("tool_choice");
  if (value === null) return null;
  if (value === "none" || value === "auto" || value === "required") return { kind: value };
  const choice = body.objectAmong("tool_choice");
  const isCustom = choice?.type === "custom";
  const named = choice?.objectAmong(isCustom ? "custom" : "function")?.take("name");
  if (typeof named === "string") return { kind: "named", name: named, custom: isCustom };
  const allowed = choice?.objectAmong("allowed_tools") ?? null;
  if (choice?.type === "allowed_tools" && allowed !== null) {
    const names = allowed
      .list("tools")
      .map((tool) => (tool.objectAmong("function") ?? tool.objectAmong("custom") ?? tool).neededText("name"));
    return { kind: "allowed", mode: allowed.take("mode") === "required" ? "required" : "auto", names };
  }
  body.wrong("tool_choice", "must be none, auto, required, or name a tool");
  return null;
}

function readReasoning(body: ObjectReader): ReasoningSettings | null {
  const nested = body.object("reasoning");
  const [flat, inner] = [body.take("reasoning_effort"), nested?.take("effort") ?? null];
  const effort = flat ?? inner;
  const budgetTokens = nested?.number("max_tokens") ?? null;
  const enabled = nested?.take("enabled") === true;
  // Whether thoughts are shown is the answer's to heed (hidden-thoughts).
  body.boolean("include_reasoning");
  nested?.boolean("exclude");
  if (body.take("reasoning_format") === "raw") body.report.omit("reasoning_format");
  if (effort === null && budgetTokens === null && !enabled) return null;
  if (effort !== null && effort !== "none" && !isEffort(effort))
    return body.wrong("reasoning_effort", "must be none, minimal, low, medium, high, xhigh or max");
  return { off: effort === "none", effort: isEffort(effort) ? effort : null, budgetTokens, summary: null };
}

const largest = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);
