import { asObject, type Json } from "../json.ts";
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
  type ToolChoice,
  type ToolTurn,
  type Turn,
  type UserPart,
} from "../vocabulary/conversation.ts";
import {
  NO_PARAMETERS,
  namesAny,
  needText,
  readBoolean,
  readCacheMark,
  readList,
  readNumber,
  readObject,
  readText,
  readTexts,
  textPart,
} from "../vocabulary/members.ts";
import { readSeal } from "../vocabulary/seal.ts";
import { shortName } from "../vocabulary/tool-names.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";
import { chatWords, readThinkingWords } from "../vocabulary/vendor-words.ts";

/** A request of Messages, understood (docs.anthropic.com, "Create a Message"). */
export function readMessagesRequest(json: Json, report: TranslationReport): Conversation {
  const choice = readObject(json, "tool_choice", report);
  const config = readObject(json, "output_config", report);
  if (config !== null && namesAny(config, ["task_budget"])) report.omit("task_budget");
  return {
    turns: [
      ...readSystem(json.system, "system", report),
      ...readList(json, "messages", report).flatMap((message, at) =>
        readMessage(message, `messages[${at}]`, report),
      ),
    ],
    tools: readList(json, "tools", report).flatMap((tool, at) => readTool(tool, `tools[${at}]`, report)),
    toolChoice: choice === null ? null : readToolChoice(choice, report),
    parallelToolCalls: choice?.disable_parallel_tool_use === true ? false : null,
    format: readFormat(asObject(config?.format) ?? readObject(json, "output_format", report), report),
    maxOutputTokens: readNumber(json, "max_tokens", report),
    temperature: readNumber(json, "temperature", report),
    topP: readNumber(json, "top_p", report),
    topK: readNumber(json, "top_k", report),
    stop:
      json.stop_sequences === undefined || json.stop_sequences === null
        ? []
        : readTexts(json.stop_sequences, "stop_sequences", report),
    reasoning:
      readThinking(readObject(json, "thinking", report), config?.effort, report) ??
      readThinkingWords({ ...json, thinking: null }, report),
    verbosity: null,
    logprobs: null,
    user: readUser(readObject(json, "metadata", report), report),
    cacheKey: null,
    cache: readObject(json, "cache_control", report),
    openai: {},
    chat: chatWords(json),
  };
}

function readSystem(system: unknown, path: string, report: TranslationReport): Turn[] {
  if (system === undefined || system === null || system === "") return [];
  const parts = readTextBlocks(system, path, report);
  return parts.length === 0 ? [] : [{ role: "system", parts }];
}

function readTextBlocks(content: unknown, path: string, report: TranslationReport): TextPart[] {
  if (typeof content === "string") return [textPart(content)];
  return readList({ content }, "content", report, path).map((block, at) => {
    report.judgePart("text", block);
    if (block.type !== "text") report.wrong(`${path}[${at}].type`, "must be text");
    return textPart(needText(block, "text", `${path}[${at}].text`, report), readCacheMark(block));
  });
}

function readMessage(message: Json, path: string, report: TranslationReport): Turn[] {
  report.judgePart("messages[]", message);
  switch (message.role) {
    case "system":
      return readSystem(message.content, `${path}.content`, report);
    case "user":
      return readUserMessage(message.content, `${path}.content`, report);
    case "assistant":
      return [{ role: "assistant", parts: readAssistantContent(message.content, `${path}.content`, report) }];
    default:
      report.wrong(`${path}.role`, "must be user, assistant or system");
      return [];
  }
}

/** Results of tools come in the user's message, before what the user says. */
function readUserMessage(content: unknown, path: string, report: TranslationReport): Turn[] {
  if (typeof content === "string") return [{ role: "user", parts: [textPart(content)] }];
  const turns: Turn[] = [];
  let parts: UserPart[] = [];
  for (const [at, block] of readList({ content }, "content", report, path).entries()) {
    const here = `${path}[${at}]`;
    if (block.type !== "tool_result") {
      parts.push(...readUserBlock(block, here, report));
      continue;
    }
    if (parts.length > 0) turns.push({ role: "user", parts });
    parts = [];
    turns.push(readToolResult(block, here, report));
  }
  if (parts.length > 0) turns.push({ role: "user", parts });
  return turns;
}

function readToolResult(block: Json, path: string, report: TranslationReport): ToolTurn {
  report.judgePart("tool_result", block);
  const { content } = block;
  return {
    role: "tool",
    callId: needText(block, "tool_use_id", `${path}.tool_use_id`, report),
    parts:
      content === undefined || content === null
        ? []
        : typeof content === "string"
          ? [textPart(content)]
          : readList(block, "content", report, `${path}.content`).flatMap((inner, at) =>
              readUserBlock(inner, `${path}.content[${at}]`, report),
            ),
    failed: block.is_error === true,
    custom: false,
    cache: readCacheMark(block),
  };
}

function readUserBlock(block: Json, path: string, report: TranslationReport): UserPart[] {
  report.judgePart(block.type, block);
  const cache = readCacheMark(block);
  switch (block.type) {
    case "text":
      return [textPart(needText(block, "text", `${path}.text`, report), cache)];
    case "image": {
      const source = readSource(readObject(block, "source", report, `${path}.source`) ?? {}, path, report);
      return source === null || source.from === "text"
        ? []
        : [{ kind: "image", source, detail: null, cache }];
    }
    case "document":
      return readDocument(block, path, cache, report);
    case "search_result":
      return readSearchResult(block, path, cache, report);
    default:
      report.cannot(`${path}.type`, "only Anthropic's hosts know this kind of content");
      return [];
  }
}

function readDocument(block: Json, path: string, cache: CacheMark, report: TranslationReport): UserPart[] {
  if (asObject(block.citations)?.enabled === true)
    report.cannot(`${path}.citations`, "it has no citations of documents");
  if (typeof block.context === "string") report.omit("document.context");
  const given = readObject(block, "source", report, `${path}.source`) ?? {};
  if (given.type === "content") {
    if (typeof given.content === "string") return [textPart(given.content, cache)];
    return readList(given, "content", report, `${path}.source.content`).flatMap((inner, at) =>
      readUserBlock(inner, `${path}.source.content[${at}]`, report),
    );
  }
  const source = readSource(given, path, report);
  return source === null ? [] : [{ kind: "file", source, name: readText(block, "title", report), cache }];
}

/** A found passage is text with where it was found. */
function readSearchResult(
  block: Json,
  path: string,
  cache: CacheMark,
  report: TranslationReport,
): UserPart[] {
  if (asObject(block.citations)?.enabled === true)
    report.cannot(`${path}.citations`, "it has no citations of documents");
  const head = `${needText(block, "title", `${path}.title`, report)} (${needText(block, "source", `${path}.source`, report)})`;
  const passages = readTextBlocks(block.content, `${path}.content`, report).map((part) => part.text);
  return [textPart([head, ...passages].join("\n\n"), cache)];
}

function readSource(source: Json, path: string, report: TranslationReport): FilePart["source"] | null {
  report.judgePart("source", source);
  switch (source.type) {
    case "base64":
      return {
        from: "base64",
        mediaType: needText(source, "media_type", `${path}.source.media_type`, report),
        data: needText(source, "data", `${path}.source.data`, report),
      };
    case "url":
      return { from: "url", url: needText(source, "url", `${path}.source.url`, report) };
    case "text":
      return { from: "text", text: needText(source, "data", `${path}.source.data`, report) };
    case "file":
      report.cannot(
        `${path}.source.file_id`,
        "the file is kept in an account at Anthropic; send it as base64",
      );
      return null;
    default:
      report.wrong(`${path}.source.type`, "must be base64, url, text or file");
      return null;
  }
}

function readAssistantContent(content: unknown, path: string, report: TranslationReport): AssistantPart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content)];
  return readList({ content }, "content", report, path).flatMap((block, at) =>
    readAssistantBlock(block, `${path}[${at}]`, report),
  );
}

function readAssistantBlock(block: Json, path: string, report: TranslationReport): AssistantPart[] {
  report.judgePart(block.type, block);
  switch (block.type) {
    case "text":
      return [textPart(needText(block, "text", `${path}.text`, report), readCacheMark(block))];
    case "thinking": {
      const words = needText(block, "thinking", `${path}.thinking`, report);
      return [{ kind: "reasoning", text: words, seal: sealOf(block.signature, "signature") }];
    }
    case "redacted_thinking":
      return [{ kind: "reasoning", text: "", seal: sealOf(block.data, "redacted") }];
    case "tool_use":
      return [
        {
          kind: "tool_call",
          id: needText(block, "id", `${path}.id`, report),
          name: shortName(needText(block, "name", `${path}.name`, report)),
          custom: false,
          input: JSON.stringify(block.input ?? {}),
          cache: readCacheMark(block),
        },
      ];
    default:
      report.cannot(`${path}.type`, "only Anthropic's hosts know this kind of content");
      return [];
  }
}

const sealOf = (text: unknown, kind: "signature" | "redacted"): ReasoningPart["seal"] =>
  readSeal(text) ?? (typeof text === "string" && text !== "" ? { family: null, kind, data: text } : null);

/** Hints that change how tools are offered, not which: the tools are offered in the plain way. */
const TOOL_HINTS = ["defer_loading", "eager_input_streaming", "input_examples", "allowed_callers"];

function readTool(tool: Json, path: string, report: TranslationReport): Tool[] {
  if (tool.type !== undefined && tool.type !== null && tool.type !== "custom") {
    report.cannot(`${path}.type`, "this tool is Anthropic's own; offer it with an `input_schema` instead");
    return [];
  }
  report.judgePart("tools[]", tool);
  if (namesAny(tool, TOOL_HINTS)) report.omit("tools[].hints");
  return [
    {
      kind: "function",
      name: shortName(needText(tool, "name", `${path}.name`, report)),
      description: readText(tool, "description", report, `${path}.description`),
      parameters: readObject(tool, "input_schema", report, `${path}.input_schema`) ?? NO_PARAMETERS,
      strict: readBoolean(tool, "strict", report),
      cache: readCacheMark(tool),
    },
  ];
}

function readToolChoice(choice: Json, report: TranslationReport): ToolChoice | null {
  switch (choice.type) {
    case "auto":
    case "none":
      return { kind: choice.type };
    case "any":
      return { kind: "required" };
    case "tool": {
      const name = shortName(needText(choice, "name", "tool_choice.name", report));
      return { kind: "named", name, custom: false };
    }
    default:
      report.wrong("tool_choice.type", "must be auto, any, tool or none");
      return null;
  }
}

function readFormat(format: Json | null, report: TranslationReport): AnswerFormat | null {
  if (format === null) return null;
  if (format.type !== "json_schema") report.wrong("output_config.format.type", "must be json_schema");
  const schema = readObject(format, "schema", report, "output_config.format.schema") ?? {};
  // What Anthropic promises for every schema, OpenAI calls strict.
  return { kind: "json_schema", name: null, description: null, schema, strict: true };
}

function readThinking(
  thinking: Json | null,
  effort: unknown,
  report: TranslationReport,
): ReasoningSettings | null {
  const named = isEffort(effort) ? effort : null;
  if (effort !== undefined && effort !== null && named === null)
    report.wrong("output_config.effort", "must be low, medium, high, xhigh or max");
  const summary = thinking !== null && thinking.display !== "omitted" ? "auto" : null;
  if (thinking?.display === "summarized" && report.host === "chat.completions")
    report.omit("thinking.display");
  switch (thinking?.type) {
    case undefined:
    case "disabled":
    case "between_tools":
      return named === null ? null : { off: false, effort: named, budgetTokens: null, summary: null };
    case "adaptive":
      return { off: false, effort: named, budgetTokens: null, summary };
    case "enabled":
      return {
        off: false,
        effort: named,
        budgetTokens: readNumber(thinking!, "budget_tokens", report),
        summary,
      };
    default:
      report.wrong("thinking.type", "must be enabled, adaptive or disabled");
      return null;
  }
}

/** OpenAI refuses longer ones. */
const MAX_USER = 64;

function readUser(metadata: Json | null, report: TranslationReport): string | null {
  const user = metadata === null ? null : readText(metadata, "user_id", report, "metadata.user_id");
  if (user === null || user.length <= MAX_USER) return user;
  report.omit("metadata.user_id");
  return null;
}
