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
import { INPUT_SCHEMA, wrappedDescription } from "./custom-tool.ts";
import { asObject } from "./judge.ts";
import {
  NO_PARAMETERS,
  needText,
  present,
  readBoolean,
  readCacheMark,
  readList,
  readNumber,
  readObject,
  readText,
  readTexts,
} from "./members.ts";
import { anthropicEffort, budgetOf } from "./reasoning.ts";
import type { Saying } from "./saying.ts";
import { familyOf, readSeal } from "./seal.ts";
import type { HostTarget } from "./surface.ts";

type Json = Readonly<Record<string, unknown>>;

/** A request of Messages, understood (docs.anthropic.com, "Create a Message"). */
export function readMessagesRequest(json: Json, saying: Saying): Conversation {
  const choice = readObject(json, "tool_choice", saying);
  const config = readObject(json, "output_config", saying);
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
    reasoning: readThinking(readObject(json, "thinking", saying), config?.effort, saying),
    verbosity: null,
    logprobs: null,
    user: readUser(readObject(json, "metadata", saying), saying),
    cacheKey: null,
    openai: {},
  };
}

/** The same request for a host that speaks Messages. */
export function writeMessagesRequest(
  conversation: Conversation,
  target: HostTarget,
  saying: Saying,
): Record<string, unknown> {
  const ceiling = conversation.maxOutputTokens ?? target.maxOutputTokens ?? target.defaultMaxOutputTokens;
  const leading = conversation.turns.findIndex(({ role }) => role !== "system" && role !== "developer");
  const split = leading === -1 ? conversation.turns.length : leading;
  const thinking = writeThinking(conversation, ceiling, target, saying);
  const system = conversation.turns
    .slice(0, split)
    .flatMap(({ parts }) => (parts as TextPart[]).map(writeText));
  const messages = writeTurns(conversation.turns.slice(split), thinking !== null, target, saying);
  if (messages.length === 0)
    saying.cannot("messages", "it needs at least one message that is not the system's");
  if (conversation.cacheKey !== null) markForCache(system, messages);
  const tools = offered(conversation);
  const { temperature, topP, topK, stop, user } = conversation;
  checkSampling(conversation, thinking !== null, saying);
  return present({
    model: target.model,
    max_tokens: ceiling,
    system: system.length > 0 ? system : undefined,
    messages,
    stream: target.stream ? true : undefined,
    temperature: temperature ?? undefined,
    top_p: topP ?? undefined,
    top_k: topK ?? undefined,
    stop_sequences: stop.length > 0 ? stop : undefined,
    tools: tools.length > 0 ? tools.map((tool) => writeTool(tool, saying)) : undefined,
    tool_choice: tools.length > 0 ? writeToolChoice(conversation) : undefined,
    thinking: thinking ?? undefined,
    output_config: writeOutputConfig(conversation, target, thinking !== null),
    metadata: user === null ? undefined : { user_id: user },
  });
}

function readSystem(system: unknown, path: string, saying: Saying): Turn[] {
  if (system === undefined || system === null || system === "") return [];
  const parts = readTextBlocks(system, path, saying);
  return parts.length === 0 ? [] : [{ role: "system", parts }];
}

function readTextBlocks(content: unknown, path: string, saying: Saying): TextPart[] {
  if (typeof content === "string") return [{ kind: "text", text: content, cache: null }];
  return readList({ content }, "content", saying, path).map((block, at) => {
    if (block.type !== "text") saying.wrong(`${path}[${at}].type`, "must be text");
    return {
      kind: "text",
      text: needText(block, "text", `${path}[${at}].text`, saying),
      cache: readCacheMark(block),
    };
  });
}

function readMessage(message: Json, path: string, saying: Saying): Turn[] {
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
  if (typeof content === "string") return [{ role: "user", parts: [plain(content)] }];
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
  const { content } = block;
  return {
    role: "tool",
    callId: needText(block, "tool_use_id", `${path}.tool_use_id`, saying),
    parts:
      content === undefined || content === null
        ? []
        : typeof content === "string"
          ? [plain(content)]
          : readList(block, "content", saying, `${path}.content`).flatMap((inner, at) =>
              readUserBlock(inner, `${path}.content[${at}]`, saying),
            ),
    failed: block.is_error === true,
    custom: false,
    cache: readCacheMark(block),
  };
}

function readUserBlock(block: Json, path: string, saying: Saying): UserPart[] {
  const cache = readCacheMark(block);
  switch (block.type) {
    case "text":
      return [{ kind: "text", text: needText(block, "text", `${path}.text`, saying), cache }];
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
      saying.cannot(`${path}.type`, "this kind of content exists at Anthropic only");
      return [];
  }
}

function readDocument(block: Json, path: string, cache: CacheMark, saying: Saying): UserPart[] {
  if (asObject(block.citations)?.enabled === true)
    saying.cannot(`${path}.citations`, "its language has no citations of documents");
  if (typeof block.context === "string") saying.omit("document.context");
  const given = readObject(block, "source", saying, `${path}.source`) ?? {};
  if (given.type === "content") {
    if (typeof given.content === "string") return [{ kind: "text", text: given.content, cache }];
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
    saying.cannot(`${path}.citations`, "its language has no citations of documents");
  const head = `${needText(block, "title", `${path}.title`, saying)} (${needText(block, "source", `${path}.source`, saying)})`;
  const passages = readTextBlocks(block.content, `${path}.content`, saying).map((part) => part.text);
  return [{ kind: "text", text: [head, ...passages].join("\n\n"), cache }];
}

function readSource(source: Json, path: string, saying: Saying): FilePart["source"] | null {
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
  if (typeof content === "string") return content === "" ? [] : [plain(content)];
  return readList({ content }, "content", saying, path).flatMap((block, at) =>
    readAssistantBlock(block, `${path}[${at}]`, saying),
  );
}

function readAssistantBlock(block: Json, path: string, saying: Saying): AssistantPart[] {
  switch (block.type) {
    case "text":
      return [
        { kind: "text", text: needText(block, "text", `${path}.text`, saying), cache: readCacheMark(block) },
      ];
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
          name: needText(block, "name", `${path}.name`, saying),
          custom: false,
          input: JSON.stringify(block.input ?? {}),
          cache: readCacheMark(block),
        },
      ];
    default:
      saying.cannot(`${path}.type`, "this kind of content exists at Anthropic only");
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
  if (TOOL_HINTS.some((hint) => tool[hint] !== undefined && tool[hint] !== null))
    saying.omit("tools[].hints");
  return [
    {
      kind: "function",
      name: needText(tool, "name", `${path}.name`, saying),
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
    case "tool":
      return { kind: "named", name: needText(choice, "name", "tool_choice.name", saying), custom: false };
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
  switch (thinking?.type) {
    case undefined:
      return named === null ? null : { off: false, effort: named, budgetTokens: null, summary: null };
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

const plain = (text: string): TextPart => ({ kind: "text", text, cache: null });

function writeText({ text, cache }: TextPart): Record<string, unknown> {
  return cache === null ? { type: "text", text } : { type: "text", text, cache_control: cache };
}

/** Neighbouring turns of one role become one message, results of tools first. */
function writeTurns(
  turns: readonly Turn[],
  thinking: boolean,
  target: HostTarget,
  saying: Saying,
): Record<string, unknown>[] {
  const messages: { role: string; content: Record<string, unknown>[] }[] = [];
  for (const turn of turns) {
    const role = turn.role === "tool" ? "user" : turn.role === "developer" ? "system" : turn.role;
    const content = writeTurnContent(turn, thinking, target, saying);
    if (content.length === 0) continue;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  }
  return messages;
}

function writeTurnContent(
  turn: Turn,
  thinking: boolean,
  target: HostTarget,
  saying: Saying,
): Record<string, unknown>[] {
  switch (turn.role) {
    case "system":
    case "developer":
      return turn.parts.map(writeText);
    case "user":
      return turn.parts.flatMap((part) => writeUserPart(part, saying));
    case "tool":
      return [writeToolResult(turn, saying)];
    case "assistant":
      return turn.parts.flatMap((part) => writeAssistantPart(part, thinking, target, saying));
  }
}

function writeToolResult(
  { callId, parts, failed, cache }: ToolTurn,
  saying: Saying,
): Record<string, unknown> {
  const [only] = parts;
  const content =
    parts.length === 1 && only!.kind === "text" && only!.cache === null
      ? only!.text
      : parts.flatMap((part) => writeUserPart(part, saying));
  return present({
    type: "tool_result",
    tool_use_id: toolId(callId),
    content: parts.length === 0 ? undefined : content,
    is_error: failed ? true : undefined,
    cache_control: cache ?? undefined,
  });
}

function writeUserPart(part: UserPart, saying: Saying): Record<string, unknown>[] {
  const mark = part.cache === null ? {} : { cache_control: part.cache };
  switch (part.kind) {
    case "text":
      // Anthropic refuses an empty text.
      return part.text === "" ? [] : [writeText(part)];
    case "image":
      if (part.detail !== null && part.detail !== "auto") saying.omit("image.detail");
      return [{ type: "image", source: writeSource(part.source), ...mark }];
    case "file":
      return [
        present({
          type: "document",
          source: writeSource(part.source),
          title: part.name ?? undefined,
          ...mark,
        }),
      ];
  }
}

function writeSource(source: FilePart["source"] | ImagePart["source"]): Json {
  switch (source.from) {
    case "url":
      return { type: "url", url: source.url };
    case "base64":
      return { type: "base64", media_type: source.mediaType, data: source.data };
    case "text":
      return { type: "text", media_type: "text/plain", data: source.text };
  }
}

function writeAssistantPart(
  part: AssistantPart,
  thinking: boolean,
  target: HostTarget,
  saying: Saying,
): Record<string, unknown>[] {
  switch (part.kind) {
    case "text":
      return part.text === "" ? [] : [writeText(part)];
    case "refusal":
      return part.text === "" ? [] : [{ type: "text", text: part.text }];
    case "reasoning":
      return writeThought(part, thinking, target, saying);
    case "tool_call":
      return [writeToolUse(part)];
  }
}

/** Thoughts return only where they can be read, and where thinking goes on. */
function writeThought(
  { text, seal }: ReasoningPart,
  thinking: boolean,
  target: HostTarget,
  saying: Saying,
): Json[] {
  if (seal?.family !== familyOf("messages", target.publicModel) || !thinking) {
    saying.omit("reasoning");
    return [];
  }
  return seal.kind === "redacted"
    ? [{ type: "redacted_thinking", data: seal.data }]
    : [{ type: "thinking", thinking: text, signature: seal.data }];
}

function writeToolUse({ id, name, custom, input, cache }: ToolCallPart): Record<string, unknown> {
  return present({
    type: "tool_use",
    id: toolId(id),
    name,
    input: custom ? { input } : inputObject(input),
    cache_control: cache ?? undefined,
  });
}

/** Anthropic allows letters, digits, `_` and `-`; ids of other hosts may hold more, and must match their results. */
export const toolId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, "_");

/** The object that a call's arguments spell. What is none is kept in the form that Anthropic documents for broken JSON. */
export function inputObject(input: string): Json {
  if (input.trim() === "") return {};
  try {
    const object = asObject(JSON.parse(input));
    if (object !== null) return object;
  } catch {}
  return { INVALID_JSON: input };
}

/** Anthropic caches up to a mark; a client that names a cache key wants what it repeats to be cached. */
function markForCache(system: Record<string, unknown>[], messages: Record<string, unknown>[]): void {
  const lastBlocks = (messages.at(-1)?.content ?? []) as Record<string, unknown>[];
  const marked = JSON.stringify([system, messages]).includes('"cache_control"');
  if (marked) return;
  for (const block of [system.at(-1), lastBlocks.at(-1)])
    if (block !== undefined && block.type !== "thinking" && block.type !== "redacted_thinking")
      block.cache_control = { type: "ephemeral" };
}

/** Only those that may be called: Anthropic has no list of allowed ones. */
function offered({ tools, toolChoice }: Conversation): readonly Tool[] {
  return toolChoice?.kind === "allowed" ? tools.filter(({ name }) => toolChoice.names.includes(name)) : tools;
}

function writeTool(tool: Tool, saying: Saying): Json {
  if (tool.kind === "custom") {
    if (tool.format !== null && tool.format.type !== "text") saying.omit("tools[].format");
    return { name: tool.name, description: wrappedDescription(tool), input_schema: INPUT_SCHEMA };
  }
  const { name, description, parameters, strict, cache } = tool;
  return present({
    name,
    description: description ?? undefined,
    // Anthropic insists on the type, which OpenAI lets clients leave out.
    input_schema: { type: "object", ...parameters },
    strict: strict === true ? true : undefined,
    cache_control: cache ?? undefined,
  });
}

function writeToolChoice({ toolChoice, parallelToolCalls }: Conversation): Json | undefined {
  if (toolChoice === null && parallelToolCalls !== false) return undefined;
  const single = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {};
  switch (toolChoice?.kind) {
    case "none":
      return { type: "none" };
    case "required":
      return { type: "any", ...single };
    case "named":
      return { type: "tool", name: toolChoice.name, ...single };
    case "allowed":
      return { type: toolChoice.mode === "required" ? "any" : "auto", ...single };
    default:
      return { type: "auto", ...single };
  }
}

/** Null where the host does not think: not asked to, no room for it, or a forced tool, which excludes it. */
function writeThinking(
  { reasoning, toolChoice, turns }: Conversation,
  ceiling: number,
  target: HostTarget,
  saying: Saying,
): Json | null {
  if (reasoning === null || reasoning.off) return null;
  const forced =
    toolChoice?.kind === "required" ||
    toolChoice?.kind === "named" ||
    (toolChoice?.kind === "allowed" && toolChoice.mode === "required");
  if (forced || !thoughtsKept(turns, target)) {
    saying.omit("reasoning.effort");
    return null;
  }
  const display = reasoning.summary === null ? {} : { display: "summarized" };
  if (target.quirks.adaptiveThinking === true) return { type: "adaptive", ...display };
  const budget = budgetOf(reasoning, ceiling);
  if (budget === null) saying.omit("reasoning.effort");
  return budget === null ? null : { type: "enabled", budget_tokens: budget, ...display };
}

/**
 * Anthropic refuses to think on after a tool's result unless the thoughts before the call come back. A client that did not
 * keep them, or that had them of another family, gets an answer without thoughts instead of an error.
 */
function thoughtsKept(turns: readonly Turn[], { publicModel }: HostTarget): boolean {
  const family = familyOf("messages", publicModel);
  const last = turns.findLastIndex(({ role }) => role === "assistant" || role === "user");
  const turn = turns[last];
  if (turn?.role !== "assistant" || !turn.parts.some(({ kind }) => kind === "tool_call")) return true;
  return turn.parts.some((part) => part.kind === "reasoning" && part.seal?.family === family);
}

function checkSampling({ temperature, format }: Conversation, thinking: boolean, saying: Saying): void {
  if (temperature !== null && temperature > 1) saying.cannot("temperature", "its temperatures end at 1");
  if (thinking && temperature !== null && temperature !== 1)
    saying.cannot("temperature", "it cannot be set while the model thinks");
  if (format?.kind === "json_object")
    saying.cannot("response_format", "it has no JSON mode; send a `json_schema`");
}

function writeOutputConfig(
  { reasoning, format }: Conversation,
  { quirks }: HostTarget,
  thinking: boolean,
): Json | undefined {
  const effort = thinking && quirks.adaptiveThinking === true ? (reasoning?.effort ?? null) : null;
  const config = {
    ...(effort === null ? {} : { effort: anthropicEffort(effort) }),
    ...(format?.kind === "json_schema" ? { format: { type: "json_schema", schema: format.schema } } : {}),
  };
  return Object.keys(config).length > 0 ? config : undefined;
}
