import { parseExactObject } from "../json/exact-json.ts";
import type { Json } from "../json/json.ts";
import type { HostTarget } from "../surface.ts";
import { cacheControl, writeWholeMark } from "../vocabulary/cache-marks.ts";
import type {
  AssistantPart,
  CacheMark,
  Conversation,
  ReasoningPart,
  TextPart,
  Tool,
  ToolCallPart,
  ToolTurn,
  Turn,
  UserPart,
} from "../vocabulary/conversation.ts";
import { anthropicEffort, budgetOf, type Sampling, samplingFor } from "../vocabulary/reasoning.ts";
import { familyOf } from "../vocabulary/seal.ts";
import { INPUT_SCHEMA, wrappedDescription } from "../vocabulary/tools.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";
import { writeFile, writeImage } from "./documents.ts";
import { withinLimits } from "./schema-limits.ts";

export function writeMessagesRequest(
  conversation: Conversation,
  report: TranslationReport,
): Record<string, unknown> {
  const { target } = report;
  const ceiling = target.maxOutputTokens ?? conversation.maxOutputTokens ?? target.defaultMaxOutputTokens;
  const leading = conversation.turns.findIndex(({ role }) => role !== "system" && role !== "developer");
  const split = leading === -1 ? conversation.turns.length : leading;
  const thinking = writeThinking(conversation, ceiling, report);
  const before = conversation.turns.slice(0, split).flatMap(({ parts }) => writeTexts(parts as TextPart[]));
  const after = writeTurns(conversation.turns.slice(split), thinking !== null, report);
  const { system, messages } = withOneTurn(before, after);
  if (conversation.format?.kind === "json_object") {
    system.push({ type: "text", text: JSON_MODE });
    report.omit("json_mode");
  }
  if (messages.length === 0)
    report.cannot(
      report.client === "responses" ? "input" : "messages",
      "it needs at least one message that says something",
    );
  const { stop, user, cache } = conversation;
  const tools = offered(conversation);
  const { temperature, topP, topK } = writeSampling(conversation, thinking !== null, report);
  return {
    model: target.model,
    max_tokens: ceiling,
    system: system.length > 0 ? system : undefined,
    messages,
    stream: target.stream ? true : undefined,
    temperature: temperature ?? undefined,
    top_p: topP ?? undefined,
    top_k: topK ?? undefined,
    stop_sequences: stop.length > 0 ? stop : undefined,
    tools: tools.length > 0 ? tools.map((tool) => writeTool(tool, report)) : undefined,
    tool_choice: tools.length > 0 ? writeToolChoice(conversation) : undefined,
    thinking: thinking ?? undefined,
    output_config: writeOutputConfig(conversation, thinking !== null, report),
    metadata: user === null ? undefined : { user_id: user },
    cache_control: writeWholeMark(cache, report),
  };
}

/**
 * In the place of the mode itself: a schema would have to name every member. OpenAI's hosts want the prompt to
 * speak of JSON in any case. Behind what the client says, so that its marks for the cache hold.
 */
const JSON_MODE =
  "Whatever you answer in text must be one JSON object, without a code fence or any words around it.";

/** Anthropic refuses an empty text. */
const writeTexts = (parts: readonly TextPart[]): Record<string, unknown>[] =>
  parts.filter(({ text }) => text !== "").map(writeText);

const writeText = ({ text, cache }: TextPart): Record<string, unknown> => ({
  type: "text",
  text,
  ...marked(cache),
});

const marked = (cache: CacheMark): Json => (cache === null ? {} : { cache_control: cacheControl(cache) });

interface Message {
  readonly role: string;
  readonly content: Record<string, unknown>[];
}

/**
 * Anthropic wants somebody to answer: “at least one message is required”. OpenAI's hosts write from
 * instructions alone, and frameworks send them so, some with an empty turn of the user's next to them.
 */
function withOneTurn(
  system: Record<string, unknown>[],
  messages: Message[],
): { system: Record<string, unknown>[]; messages: Message[] } {
  if (messages.some(({ role }) => role !== "system")) return { system, messages };
  const content = [...system, ...messages.flatMap((message) => message.content)];
  return { system: [], messages: content.length === 0 ? [] : [{ role: "user", content }] };
}

/** Neighbouring turns of one role become one message, results of tools first. */
function writeTurns(turns: readonly Turn[], thinking: boolean, report: TranslationReport): Message[] {
  const messages: Message[] = [];
  for (const turn of turns) {
    const role = turn.role === "tool" ? "user" : turn.role === "developer" ? "system" : turn.role;
    const content = writeTurnContent(turn, thinking, report);
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
  report: TranslationReport,
): Record<string, unknown>[] {
  switch (turn.role) {
    case "system":
    case "developer":
      return writeTexts(turn.parts);
    case "user":
      return turn.parts.flatMap((part) => writeUserPart(part, report));
    case "tool":
      return [writeToolResult(turn, report)];
    case "assistant":
      return turn.parts.flatMap((part) => writeAssistantPart(part, thinking, report));
  }
}

function writeToolResult(
  { callId, parts, failed, cache }: ToolTurn,
  report: TranslationReport,
): Record<string, unknown> {
  const [only] = parts;
  const content =
    parts.length === 1 && only!.kind === "text"
      ? only!.text
      : parts.flatMap((part) => writeUserPart(part, report));
  return {
    type: "tool_result",
    tool_use_id: toolId(callId),
    content: parts.length === 0 ? undefined : content,
    is_error: failed ? true : undefined,
    ...marked(cache),
  };
}

function writeUserPart(part: UserPart, report: TranslationReport): Record<string, unknown>[] {
  switch (part.kind) {
    case "text":
      return writeTexts([part]);
    case "image":
      if (part.detail !== null && part.detail !== "auto") report.omit("image.detail");
      return withMark(writeImage(part, report), part.cache);
    case "file":
      return withMark(writeFile(part, report), part.cache);
  }
}

const withMark = (block: Record<string, unknown> | null, cache: CacheMark): Record<string, unknown>[] =>
  block === null ? [] : [{ ...block, ...marked(cache) }];

function writeAssistantPart(
  part: AssistantPart,
  thinking: boolean,
  report: TranslationReport,
): Record<string, unknown>[] {
  switch (part.kind) {
    case "text":
      return part.text === "" ? [] : [writeText(part)];
    case "refusal":
      return part.text === "" ? [] : [{ type: "text", text: part.text }];
    case "reasoning":
      return writeThought(part, thinking, report);
    case "tool_call":
      return [writeToolUse(part)];
  }
}

/** Thoughts return only where they can be read, and where thinking goes on. */
function writeThought({ text, seal }: ReasoningPart, thinking: boolean, report: TranslationReport): Json[] {
  if (seal?.family !== familyOf("messages", report.target.publicModel) || !thinking) {
    report.omit("reasoning");
    return [];
  }
  return seal.kind === "redacted"
    ? [{ type: "redacted_thinking", data: seal.data }]
    : [{ type: "thinking", thinking: text, signature: seal.data }];
}

function writeToolUse({ id, name, custom, input, cache }: ToolCallPart): Record<string, unknown> {
  return {
    type: "tool_use",
    id: toolId(id),
    name,
    input: custom ? { input } : inputObject(input),
    ...marked(cache),
  };
}

/**
 * Anthropic allows letters, digits, `_` and `-`; ids of other hosts may hold more, and must match their
 * results.
 */
export const toolId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, "_");

/**
 * The object that a call's arguments spell. What is none is kept in the form that Anthropic documents for
 * broken JSON.
 */
export const inputObject = (input: string): Json =>
  input.trim() === "" ? {} : (parseExactObject(input) ?? { INVALID_JSON: input });

/** Only those that may be called: Anthropic has no list of allowed ones. */
function offered({ tools, toolChoice }: Conversation): readonly Tool[] {
  if (toolChoice?.kind !== "allowed") return tools;
  const allowed = new Set(toolChoice.names);
  return tools.filter(({ name }) => allowed.has(name));
}

function writeTool(tool: Tool, report: TranslationReport): Json {
  if (tool.kind === "custom") {
    if (tool.format !== null && tool.format.type !== "text") report.omit("tools[].format");
    return { name: tool.name, description: wrappedDescription(tool), input_schema: INPUT_SCHEMA };
  }
  const { name, description, parameters, strict, cache } = tool;
  return {
    name,
    description: description ?? undefined,
    // Anthropic insists on the type, which OpenAI lets clients leave out.
    input_schema: { type: "object", ...(strict === true ? limited(parameters, report) : parameters) },
    strict: strict === true ? true : undefined,
    ...marked(cache),
  };
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
  { reasoning, toolChoice, turns, maxOutputTokens: named }: Conversation,
  ceiling: number,
  report: TranslationReport,
): Json | null {
  if (reasoning === null || reasoning.off) return null;
  const forced =
    toolChoice?.kind === "required" ||
    toolChoice?.kind === "named" ||
    (toolChoice?.kind === "allowed" && toolChoice.mode === "required");
  if (forced || !thoughtsKept(turns, report.target)) {
    report.omit("reasoning.effort");
    return null;
  }
  const display = reasoning.summary === null ? {} : { display: "summarized" };
  if (report.target.quirks.adaptiveThinking === true) return { type: "adaptive", ...display };
  const budget = budgetOf(reasoning, ceiling, named);
  if (budget === null) report.omit("reasoning.effort");
  return budget === null ? null : { type: "enabled", budget_tokens: budget, ...display };
}

/**
 * Anthropic refuses to think on after a tool's result unless the thoughts before the call come back. A client
 * that did not keep them, or that had them of another family, gets an answer without thoughts instead of an
 * error.
 */
function thoughtsKept(turns: readonly Turn[], { publicModel }: HostTarget): boolean {
  const family = familyOf("messages", publicModel);
  const last = turns.findLastIndex(({ role }) => role === "assistant" || role === "user");
  const turn = turns[last];
  if (turn?.role !== "assistant" || !turn.parts.some(({ kind }) => kind === "tool_call")) return true;
  return turn.parts.some((part) => part.kind === "reasoning" && part.seal?.family === family);
}

/**
 * “`temperature` and `top_p` cannot both be specified for this model”: from Opus 4.1 on, the second gives
 * way.
 */
function writeSampling(conversation: Conversation, thinking: boolean, report: TranslationReport): Sampling {
  const { temperature, topP, topK } = samplingFor(conversation, report);
  if (temperature !== null && temperature > 1) report.cannot("temperature", "its highest temperature is 1");
  if (thinking && temperature !== null && temperature !== 1)
    report.cannot("temperature", "it cannot be set while the model reasons");
  if (temperature === null || topP === null) return { temperature, topP, topK };
  if (topP !== 1) report.omit("top_p");
  return { temperature, topP: null, topK };
}

function writeOutputConfig(
  { reasoning, format }: Conversation,
  thinking: boolean,
  report: TranslationReport,
): Json | undefined {
  const effort =
    thinking && report.target.quirks.adaptiveThinking === true ? (reasoning?.effort ?? null) : null;
  const config = {
    ...(effort === null ? {} : { effort: anthropicEffort(effort) }),
    ...(format?.kind === "json_schema"
      ? { format: { type: "json_schema", schema: limited(format.schema, report) } }
      : {}),
  };
  return Object.keys(config).length > 0 ? config : undefined;
}

function limited(given: Json, report: TranslationReport): Json {
  const { schema, isDescribed } = withinLimits(given);
  if (isDescribed) report.omit("schema.bounds");
  return schema;
}
