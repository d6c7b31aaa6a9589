import { asObject, type Json } from "../json/json.ts";
import {
  type AnswerFormat,
  type AssistantPart,
  type Conversation,
  type FilePart,
  isEffort,
  type ReasoningPart,
  type ReasoningSettings,
  type Tool,
  type ToolChoice,
  type ToolTurn,
  type Turn,
  type UserPart,
} from "../vocabulary/conversation.ts";
import { NO_PARAMETERS, textPart } from "../vocabulary/members.ts";
import type { ObjectReader } from "../vocabulary/object-reader.ts";
import { readSeal } from "../vocabulary/seal.ts";
import { shortName } from "../vocabulary/tools.ts";
import { chatWords, readThinkingWords } from "../vocabulary/vendor-words.ts";

/** A request of Messages, understood (docs.anthropic.com, "Create a Message"). */
export function readMessagesRequest(body: ObjectReader, json: Json): Conversation {
  const choice = body.object("tool_choice");
  const config = body.object("output_config");
  if (config?.hasAny(["task_budget"])) body.report.omit("task_budget");
  const format = config?.objectAmong("format") ?? null;
  const olderFormat = body.object("output_format");
  const tools = new OfferedTools(body.list("tools").flatMap(readTool));
  const messages = withoutCleared(body.list("messages"), json.messages);
  return {
    turns: [
      ...readSystem(body, "system", tools),
      ...messages.flatMap((message) => readMessage(message, tools)),
    ],
    tools: tools.atEnd(),
    toolChoice: choice && readToolChoice(choice),
    parallelToolCalls: choice?.take("disable_parallel_tool_use") === true ? false : null,
    format: readFormat(format ?? olderFormat),
    maxOutputTokens: body.number("max_tokens"),
    temperature: body.number("temperature"),
    topP: body.number("top_p"),
    topK: body.number("top_k"),
    stop: body.texts("stop_sequences"),
    reasoning: readThinking(body.object("thinking"), config) ?? readThinkingWords(body, null),
    verbosity: null,
    logprobs: null,
    user: readUser(body.object("metadata")),
    cacheKey: null,
    cache: body.wholeMark(),
    cacheOptions: null,
    openai: {},
    chat: chatWords(body),
  };
}

/** Instructions for one turn of the user's (`clear_at`) are not shown after it. */
function withoutCleared(messages: readonly ObjectReader[], given: unknown): readonly ObjectReader[] {
  const lastUser = Array.isArray(given) ? given.findLastIndex((one) => asObject(one)?.role === "user") : -1;
  return messages.filter((message, at) => {
    if (message.take("clear_at") !== "next_user_message" || at > lastUser) return true;
    message.skip("role", "content", "output_config");
    return false;
  });
}

function readSystem(from: ObjectReader, name: string, tools: OfferedTools): Turn[] {
  if (from.take(name) === "") return [];
  const parts = from.parts(name, (block) => {
    if (block.type === "tool_addition" || block.type === "tool_removal") {
      readToolChange(block, tools);
      return [];
    }
    if (block.type !== "text") block.wrong("type", "must be text, tool_addition or tool_removal");
    return [block.textPart()];
  });
  return parts.length === 0 ? [] : [{ role: "system", parts }];
}

/** Tools that are offered, or no longer, from here on; the host is offered those of the end. */
function readToolChange(block: ObjectReader, tools: OfferedTools): void {
  if (block.cacheMark() !== null) block.report.omit("cache_control");
  const tool = block.inner("tool");
  if (tool.type === "tool_definition" && block.type === "tool_addition") {
    for (const defined of readTool(tool.inner("definition"))) tools.define(defined);
    return;
  }
  if (tool.type !== "tool_reference")
    return tool.cannot("type", "only Anthropic's hosts call the tools of MCP servers");
  const name = shortName(tool.neededText("name"));
  if (!tools.offer(name, block.type === "tool_addition")) tool.wrong("name", "is no tool of this request");
}

/** Tools by their names, while a conversation is read. */
class OfferedTools {
  private readonly known = new Map<string, Tool>();
  private readonly removed = new Set<string>();

  constructor(private readonly given: readonly Tool[]) {
    for (const tool of given) this.known.set(tool.name, tool);
  }

  define(tool: Tool): void {
    this.known.set(tool.name, tool);
    this.removed.delete(tool.name);
  }

  /** False for a name that no tool has. */
  offer(name: string, isOffered: boolean): boolean {
    if (isOffered) this.removed.delete(name);
    else this.removed.add(name);
    return this.known.has(name);
  }

  atEnd(): readonly Tool[] {
    if (this.known.size === this.given.length && this.removed.size === 0) return this.given;
    return [...this.known.values()].filter(({ name }) => !this.removed.has(name));
  }
}

function readMessage(message: ObjectReader, tools: OfferedTools): Turn[] {
  const role = message.take("role");
  switch (role) {
    case "system":
      return readSystem(message, "content", tools);
    case "user":
      return readUserMessage(message);
    case "assistant":
      return [
        { role, parts: message.take("content") === "" ? [] : message.parts("content", readAssistantBlock) },
      ];
    default:
      message.wrong("role", "must be user, assistant or system");
      return [];
  }
}

/** Results of tools come in the user's message, before what the user says. */
function readUserMessage(message: ObjectReader): Turn[] {
  const turns: Turn[] = [];
  let parts: UserPart[] = [];
  const entries = message.parts<UserPart | ToolTurn>("content", (block) =>
    block.type === "tool_result" ? [readToolResult(block)] : readUserBlock(block),
  );
  for (const one of entries) {
    if (!("role" in one)) parts.push(one);
    else {
      if (parts.length > 0) turns.push({ role: "user", parts });
      parts = [];
      turns.push(one);
    }
  }
  if (parts.length > 0) turns.push({ role: "user", parts });
  return turns;
}

const readToolResult = (block: ObjectReader): ToolTurn => ({
  role: "tool",
  callId: block.neededText("tool_use_id"),
  parts: block.parts("content", readUserBlock),
  failed: block.take("is_error") === true,
  custom: false,
  cache: block.cacheMark(),
});

function readUserBlock(block: ObjectReader): UserPart[] {
  switch (block.type) {
    case "text":
      return [block.textPart()];
    case "image": {
      const source = readSource(block.inner("source", "source"));
      if (source === null || source.from === "text") return [];
      return [{ kind: "image", source, detail: null, cache: block.cacheMark() }];
    }
    case "document":
      return readDocument(block);
    case "search_result":
      return readSearchResult(block);
    default:
      block.cannot("type", "only Anthropic's hosts know this kind of content");
      return [];
  }
}

function readDocument(block: ObjectReader): UserPart[] {
  checkCitations(block);
  if (typeof block.take("context") === "string") block.report.omit("document.context");
  const given = block.inner("source", "source");
  const cache = block.cacheMark();
  if (given.type === "content") {
    const content = given.take("content");
    return typeof content === "string" ? [textPart(content, cache)] : given.parts("content", readUserBlock);
  }
  const source = readSource(given);
  return source === null ? [] : [{ kind: "file", source, name: block.text("title"), cache }];
}

/** A found passage is text with where it was found. */
function readSearchResult(block: ObjectReader): UserPart[] {
  checkCitations(block);
  const head = `${block.neededText("title")} (${block.neededText("source")})`;
  const passages = block.textParts("content").map(({ text }) => text);
  return [textPart([head, ...passages].join("\n\n"), block.cacheMark())];
}

function checkCitations(block: ObjectReader): void {
  if (block.objectAmong("citations")?.take("enabled") === true)
    block.cannot("citations", "it has no citations of documents");
}

function readSource(source: ObjectReader): FilePart["source"] | null {
  switch (source.type) {
    case "base64":
      return { from: "base64", mediaType: source.neededText("media_type"), data: source.neededText("data") };
    case "url":
      return { from: "url", url: source.neededText("url") };
    case "text":
      source.skip("media_type");
      return { from: "text", text: source.neededText("data") };
    case "file":
      source.cannot("file_id", "the file is kept in an account at Anthropic; send it as base64");
      return null;
    default:
      return source.wrong("type", "must be base64, url, text or file");
  }
}

function readAssistantBlock(block: ObjectReader): AssistantPart[] {
  switch (block.type) {
    case "text":
      return [block.textPart()];
    case "thinking": {
      const text = block.neededText("thinking");
      return [{ kind: "reasoning", text, seal: sealOf(block.take("signature"), "signature") }];
    }
    case "redacted_thinking":
      return [{ kind: "reasoning", text: "", seal: sealOf(block.take("data"), "redacted") }];
    case "tool_use":
      return [
        {
          kind: "tool_call",
          id: block.neededText("id"),
          name: shortName(block.neededText("name")),
          custom: false,
          input: JSON.stringify(block.take("input") ?? {}),
          cache: block.cacheMark(),
        },
      ];
    case "fallback":
      // Marks where another model took over; Anthropic's hosts do not show it to the model either.
      block.skip("from", "to", "trigger");
      return [];
    default:
      block.cannot("type", "only Anthropic's hosts know this kind of content");
      return [];
  }
}

const sealOf = (text: unknown, kind: "signature" | "redacted"): ReasoningPart["seal"] =>
  readSeal(text) ?? (typeof text === "string" && text !== "" ? { family: null, kind, data: text } : null);

/** Hints that change how tools are offered, not which: the tools are offered in the plain way. */
const TOOL_HINTS = ["defer_loading", "eager_input_streaming", "input_examples", "allowed_callers"];

function readTool(tool: ObjectReader): Tool[] {
  if (tool.type !== null && tool.type !== "custom") {
    tool.cannot("type", "this tool is Anthropic's own; offer it with an `input_schema` instead");
    return [];
  }
  if (tool.hasAny(TOOL_HINTS)) tool.report.omit("tools[].hints");
  return [
    {
      kind: "function",
      name: shortName(tool.neededText("name")),
      description: tool.text("description"),
      parameters: tool.whole("input_schema") ?? NO_PARAMETERS,
      strict: tool.boolean("strict"),
      cache: tool.cacheMark(),
    },
  ];
}

function readToolChoice(choice: ObjectReader): ToolChoice | null {
  switch (choice.type) {
    case "auto":
    case "none":
      return { kind: choice.type };
    case "any":
      return { kind: "required" };
    case "tool":
      return { kind: "named", name: shortName(choice.neededText("name")), custom: false };
    default:
      return choice.wrong("type", "must be auto, any, tool or none");
  }
}

function readFormat(format: ObjectReader | null): AnswerFormat | null {
  if (format === null) return null;
  if (format.type !== "json_schema") format.wrong("type", "must be json_schema");
  // What Anthropic promises for every schema, OpenAI calls strict.
  return {
    kind: "json_schema",
    name: null,
    description: null,
    schema: format.whole("schema") ?? {},
    strict: true,
  };
}

function readThinking(thinking: ObjectReader | null, config: ObjectReader | null): ReasoningSettings | null {
  const given = config?.take("effort") ?? null;
  const effort = isEffort(given) ? given : null;
  if (given !== null && effort === null) config!.wrong("effort", "must be low, medium, high, xhigh or max");
  const plain = effort && { off: false, effort, budgetTokens: null, summary: null };
  if (thinking === null) return plain;
  const display = thinking.take("display");
  const summary = display === "omitted" ? null : "auto";
  if (display === "summarized" && thinking.report.host === "chat.completions")
    thinking.report.omit("thinking.display");
  switch (thinking.type) {
    case null:
    case "disabled":
    case "between_tools":
      return plain;
    case "adaptive":
      return { off: false, effort, budgetTokens: null, summary };
    case "enabled":
      return { off: false, effort, budgetTokens: thinking.number("budget_tokens"), summary };
    default:
      return thinking.wrong("type", "must be enabled, adaptive or disabled");
  }
}

/** OpenAI refuses longer ones. */
const MAX_USER = 64;

function readUser(metadata: ObjectReader | null): string | null {
  const user = metadata?.text("user_id") ?? null;
  if (user === null || user.length <= MAX_USER) return user;
  metadata!.report.omit("metadata.user_id");
  return null;
}
