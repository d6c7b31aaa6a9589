import { asObject } from "../json.ts";
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
import type { Saying } from "../vocabulary/saying.ts";
import { readSeal } from "../vocabulary/seal.ts";
import { shortName } from "../vocabulary/tool-names.ts";
import { chatWords, readThinkingWords } from "../vocabulary/vendor-words.ts";

type Json = Readonly<Record<string, unknown>>;

/** A request of Messages, understood (docs.anthropic.com, "Create a Message"). */
export function readMessagesRequest(json: Json, saying: Saying): Conversation {
  const choice = readObject(json, "tool_choice", saying);
  const config = readObject(json, "output_config", saying);
  if (config !== null && namesAny(config, ["task_budget"])) saying.omit("task_budget");
  return {
    turns: [
      ...readSystem(json.system, "system", saying),
      ...readList(json, "messages", saying).flatMap((message, at) =>
        readMessage(message, `messages[${at}]`, saying),
      ),
    ],
    tools: readList(json, "tools", saying).flatMap((tool, at) => readTool(tool, `tools[${at}]`, saying)),
    toolChoice: choice === null ? null : readToolChoice(choice, saying),
    parallelToolCalls: choice?.disable_parallel_tool_use === true ? false : null,
    format: readFormat(asObject(config?.format) ?? readObject(json, "output_format", saying), saying),
    maxOutputTokens: readNumber(json, "max_tokens", saying),
    temperature: readNumber(json, "temperature", saying),
    topP: readNumber(json, "top_p", saying),
    topK: readNumber(json, "top_k", saying),
    stop:
      json.stop_sequences === undefined || json.stop_sequences === null
        ? []
        : readTexts(json.stop_sequences, "stop_sequences", saying),
    reasoning:
      readThinking(readObject(json, "thinking", saying), config?.effort, saying) ??
      readThinkingWords({ ...json, thinking: null }, saying),
    verbosity: null,
    logprobs: null,
    user: readUser(readObject(json, "metadata", saying), saying),
    cacheKey: null,
    cache: readObject(json, "cache_control", saying),
    openai: {},
    chat: chatWords(json),
  };
}

function readSystem(system: unknown, path: string, saying: Saying): Turn[] {
  if (system === undefined || system === null || system === "") return [];
  const parts = readTextBlocks(system, path, saying);
  return parts.length === 0 ? [] : [{ role: "system", parts }];
}

function readTextBlocks(content: unknown, path: string, saying: Saying): TextPart[] {
  if (typeof content === "string") return [textPart(content)];
  return readList({ content }, "content", saying, path).map((block, at) => {
    saying.judgePart("text", block);
    if (block.type !== "text") saying.wrong(`${path}[${at}].type`, "must be text");
    return textPart(needText(block, "text", `${path}[${at}].text`, saying), readCacheMark(block));
  });
}

function readMessage(message: Json, path: string, saying: Saying): Turn[] {
  saying.judgePart("messages[]", message);
  switch (message.role) {
    case "system":
      return readSystem(message.content, `${path}.content`, saying);
    case "user":
      return readUserMessage(message.content, `${path}.content`, saying);
    case "assistant":
      return [{ role: "assistant", parts: readAssistantContent(message.content, `${path}.content`, saying) }];
    default:
      saying.wrong(`${path}.role`, "must be user, assistant or system");
      return [];
  }
}

/** Results of tools come in the user's message, before what the user says. */
function readUserMessage(content: unknown, path: string, saying: Saying): Turn[] {
  if (typeof content === "string") return [{ role: "user", parts: [textPart(content)] }];
  const turns: Turn[] = [];
  let parts: UserPart[] = [];
  for (const [at, block] of readList({ content }, "content", saying, path).entries()) {
    const here = `${path}[${at}]`;
    if (block.type !== "tool_result") {
      parts.push(...readUserBlock(block, here, saying));
      continue;
    }
    if (parts.length > 0) turns.push({ role: "user", parts });
    parts = [];
    turns.push(readToolResult(block, here, saying));
  }
  if (parts.length > 0) turns.push({ role: "user", parts });
  return turns;
}

function readToolResult(block: Json, path: string, saying: Saying): ToolTurn {
  saying.judgePart("tool_result", block);
  const { content } = block;
  return {
    role: "tool",
    callId: needText(block, "tool_use_id", `${path}.tool_use_id`, saying),
    parts:
      content === undefined || content === null
        ? []
        : typeof content === "string"
          ? [textPart(content)]
          : readList(block, "content", saying, `${path}.content`).flatMap((inner, at) =>
              readUserBlock(inner, `${path}.content[${at}]`, saying),
            ),
    failed: block.is_error === true,
    custom: false,
    cache: readCacheMark(block),
  };
}

function readUserBlock(block: Json, path: string, saying: Saying): UserPart[] {
  saying.judgePart(block.type, block);
  const cache = readCacheMark(block);
  switch (block.type) {
    case "text":
      return [textPart(needText(block, "text", `${path}.text`, saying), cache)];
    case "image": {
      const source = readSource(readObject(block, "source", saying, `${path}.source`) ?? {}, path, saying);
      return source === null || source.from === "text"
        ? []
        : [{ kind: "image", source, detail: null, cache }];
    }
    case "document":
      return readDocument(block, path, cache, saying);
    case "search_result":
      return readSearchResult(block, path, cache, saying);
    default:
      saying.cannot(`${path}.type`, "only Anthropic's hosts know this kind of content");
      return [];
  }
}

function readDocument(block: Json, path: string, cache: CacheMark, saying: Saying): UserPart[] {
  if (asObject(block.citations)?.enabled === true)
    saying.cannot(`${path}.citations`, "it has no citations of documents");
  if (typeof block.context === "string") saying.omit("document.context");
  const given = readObject(block, "source", saying, `${path}.source`) ?? {};
  if (given.type === "content") {
    if (typeof given.content === "string") return [textPart(given.content, cache)];
    return readList(given, "content", saying, `${path}.source.content`).flatMap((inner, at) =>
      readUserBlock(inner, `${path}.source.content[${at}]`, saying),
    );
  }
  const source = readSource(given, path, saying);
  return source === null ? [] : [{ kind: "file", source, name: readText(block, "title", saying), cache }];
}

/** A found passage is text with where it was found. */
function readSearchResult(block: Json, path: string, cache: CacheMark, saying: Saying): UserPart[] {
  if (asObject(block.citations)?.enabled === true)
    saying.cannot(`${path}.citations`, "it has no citations of documents");
  const head = `${needText(block, "title", `${path}.title`, saying)} (${needText(block, "source", `${path}.source`, saying)})`;
  const passages = readTextBlocks(block.content, `${path}.content`, saying).map((part) => part.text);
  return [textPart([head, ...passages].join("\n\n"), cache)];
}

function readSource(source: Json, path: string, saying: Saying): FilePart["source"] | null {
  saying.judgePart("source", source);
  switch (source.type) {
    case "base64":
      return {
        from: "base64",
        mediaType: needText(source, "media_type", `${path}.source.media_type`, saying),
        data: needText(source, "data", `${path}.source.data`, saying),
      };
    case "url":
      return { from: "url", url: needText(source, "url", `${path}.source.url`, saying) };
    case "text":
      return { from: "text", text: needText(source, "data", `${path}.source.data`, saying) };
    case "file":
      saying.cannot(
        `${path}.source.file_id`,
        "the file is kept in an account at Anthropic; send it as base64",
      );
      return null;
    default:
      saying.wrong(`${path}.source.type`, "must be base64, url, text or file");
      return null;
  }
}

function readAssistantContent(content: unknown, path: string, saying: Saying): AssistantPart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content)];
  return readList({ content }, "content", saying, path).flatMap((block, at) =>
    readAssistantBlock(block, `${path}[${at}]`, saying),
  );
}

function readAssistantBlock(block: Json, path: string, saying: Saying): AssistantPart[] {
  saying.judgePart(block.type, block);
  switch (block.type) {
    case "text":
      return [textPart(needText(block, "text", `${path}.text`, saying), readCacheMark(block))];
    case "thinking": {
      const words = needText(block, "thinking", `${path}.thinking`, saying);
      return [{ kind: "reasoning", text: words, seal: sealOf(block.signature, "signature") }];
    }
    case "redacted_thinking":
      return [{ kind: "reasoning", text: "", seal: sealOf(block.data, "redacted") }];
    case "tool_use":
      return [
        {
          kind: "tool_call",
          id: needText(block, "id", `${path}.id`, saying),
          name: shortName(needText(block, "name", `${path}.name`, saying)),
          custom: false,
          input: JSON.stringify(block.input ?? {}),
          cache: readCacheMark(block),
        },
      ];
    default:
      saying.cannot(`${path}.type`, "only Anthropic's hosts know this kind of content");
      return [];
  }
}

const sealOf = (text: unknown, kind: "signature" | "redacted"): ReasoningPart["seal"] =>
  readSeal(text) ?? (typeof text === "string" && text !== "" ? { family: null, kind, data: text } : null);

/** Hints that change how tools are offered, not which: the tools are offered in the plain way. */
const TOOL_HINTS = ["defer_loading", "eager_input_streaming", "input_examples", "allowed_callers"];

function readTool(tool: Json, path: string, saying: Saying): Tool[] {
  if (tool.type !== undefined && tool.type !== null && tool.type !== "custom") {
    saying.cannot(`${path}.type`, "this tool is Anthropic's own; offer it with an `input_schema` instead");
    return [];
  }
  saying.judgePart("tools[]", tool);
  if (namesAny(tool, TOOL_HINTS)) saying.omit("tools[].hints");
  return [
    {
      kind: "function",
      name: shortName(needText(tool, "name", `${path}.name`, saying)),
      description: readText(tool, "description", saying, `${path}.description`),
      parameters: readObject(tool, "input_schema", saying, `${path}.input_schema`) ?? NO_PARAMETERS,
      strict: readBoolean(tool, "strict", saying),
      cache: readCacheMark(tool),
    },
  ];
}

function readToolChoice(choice: Json, saying: Saying): ToolChoice | null {
  switch (choice.type) {
    case "auto":
    case "none":
      return { kind: choice.type };
    case "any":
      return { kind: "required" };
    case "tool": {
      const name = shortName(needText(choice, "name", "tool_choice.name", saying));
      return { kind: "named", name, custom: false };
    }
    default:
      saying.wrong("tool_choice.type", "must be auto, any, tool or none");
      return null;
  }
}

function readFormat(format: Json | null, saying: Saying): AnswerFormat | null {
  if (format === null) return null;
  if (format.type !== "json_schema") saying.wrong("output_config.format.type", "must be json_schema");
  const schema = readObject(format, "schema", saying, "output_config.format.schema") ?? {};
  // What Anthropic promises for every schema, OpenAI calls strict.
  return { kind: "json_schema", name: null, description: null, schema, strict: true };
}

function readThinking(thinking: Json | null, effort: unknown, saying: Saying): ReasoningWish | null {
  const named = isEffort(effort) ? effort : null;
  if (effort !== undefined && effort !== null && named === null)
    saying.wrong("output_config.effort", "must be low, medium, high, xhigh or max");
  const summary = thinking !== null && thinking.display !== "omitted" ? "auto" : null;
  if (thinking?.display === "summarized" && saying.host === "chat.completions")
    saying.omit("thinking.display");
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
        budgetTokens: readNumber(thinking!, "budget_tokens", saying),
        summary,
      };
    default:
      saying.wrong("thinking.type", "must be enabled, adaptive or disabled");
      return null;
  }
}

/** OpenAI refuses longer ones. */
const MAX_USER = 64;

function readUser(metadata: Json | null, saying: Saying): string | null {
  const user = metadata === null ? null : readText(metadata, "user_id", saying, "metadata.user_id");
  if (user === null || user.length <= MAX_USER) return user;
  saying.omit("metadata.user_id");
  return null;
}
