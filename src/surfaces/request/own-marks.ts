import type { SurfaceName } from "../../catalog/catalog.ts";
import { bytesOf, contains, joined } from "../json/bytes.ts";
import { Edits } from "../json/edits.ts";
import { asObject } from "../json/json.ts";
import { JsonSpan } from "../json/json-span.ts";
import type { GenerationRequest, HostBody, HostTarget } from "../surface.ts";

/**
 * A request for a Messages host with marks for its cache (Anthropic, "Prompt caching"), which caches nothing without:
 * behind the tools, behind the instructions, and at the end of the last two turns of the user, so that the next
 * turn finds what this one writes even where more blocks lie between them than the host looks back over. These are the
 * four that Anthropic allows. A mark costs nothing itself, and one on a prefix that is too short is ignored. Clients that
 * set marks of their own know better: their request stays as it is, and so does one that cannot be read.
 */
export function withCacheMarks(body: Uint8Array, retention: "5m" | "1h" = "5m"): Uint8Array {
  if (contains(body, CACHE_CONTROL)) return body;
  const [tools, system, messages] = new JsonSpan(body).members("tools", "system", "messages");
  const turns = [...(messages?.items ?? [])];
  const last = turns.pop();
  const usersBefore = turns.findLast((turn) => turn.members("role")[0]?.is("user") && turnEnd(turn) !== null);
  const edits = new Edits();
  for (const end of [lastTool(tools), contentEnd(system, takesControl), turnEnd(usersBefore), turnEnd(last)])
    if (end !== null) putMark(end, "text", CONTROLS[retention], edits);
  return edits.applyTo(body);
}

const CACHE_CONTROL = Buffer.from('"cache_control"');
const CONTROLS = {
  "5m": ',"cache_control":{"type":"ephemeral"}',
  "1h": ',"cache_control":{"type":"ephemeral","ttl":"1h"}',
};

/** One whose loading is deferred is not a part of the prompt, and takes no mark. */
const lastTool = (tools: JsonSpan | null): JsonSpan | null =>
  lastOf(tools, (tool) => tool.isObject && tool.members("defer_loading")[0] === null);

const turnEnd = (turn: JsonSpan | undefined): JsonSpan | null =>
  turn === undefined ? null : contentEnd(turn.members("content")[0], takesControl);

function takesControl(block: JsonSpan): boolean {
  const [type, text] = block.members("type", "text");
  // Anthropic refuses a mark on an empty text.
  return MARKABLE.some((name) => type?.is(name)) && text?.is("") !== true;
}

/** Not thoughts, and nothing of which it is not known. */
const MARKABLE: readonly string[] = ["text", "image", "document", "search_result", "tool_use", "tool_result"];

/**
 * A request of chat or Responses with a mark behind its instructions, for a host that matches its cache at marks
 * (OpenAI, "Prompt caching": GPT-5.6 and later). Tools come before the instructions and take no mark; the end of the
 * newest message is marked by the host itself. Other conversations with the same instructions then find these.
 * `instructions` of Responses become the message that they stand for, because a text takes no mark. A client that marks
 * something knows better: its request stays as it is.
 */
export function withBreakpoint(body: Uint8Array, language: SurfaceName): Uint8Array {
  if (contains(body, PROMPT_CACHE_BREAKPOINT)) return body;
  const isResponses = language === "responses";
  const [conversation, instructions] = new JsonSpan(body).members(
    isResponses ? "input" : "messages",
    "instructions",
  );
  const last = instructionsEnd(conversation);
  const edits = new Edits();
  if (last !== null) putMark(last, isResponses ? "input_text" : "text", BREAKPOINT, edits);
  else if (isResponses && conversation !== null && instructions?.isText && !instructions.is(""))
    moveInstructions(instructions, conversation, edits);
  return edits.applyTo(body);
}

/** The same for a body in the client's own language, where the operator or the request asks for it. */
export function withOwnBreakpoint(
  passed: HostBody,
  { json, surface }: GenerationRequest,
  target: HostTarget,
): HostBody {
  const { marksCache, quirks } = target;
  const isRequested = marksCache === true && quirks.cacheMarks === true && quirks.cacheControl !== true;
  if (!isRequested || asObject(json.prompt_cache_options)?.mode === "explicit") return passed;
  return { ...passed, parts: [withBreakpoint(joined(passed.parts), surface)] };
}

const PROMPT_CACHE_BREAKPOINT = Buffer.from('"prompt_cache_breakpoint"');
const BREAKPOINT = ',"prompt_cache_breakpoint":{"mode":"explicit"}';

/** The last part of the instructions with which the conversation begins; null where it begins with none. */
function instructionsEnd(conversation: JsonSpan | null): JsonSpan | null {
  let last: JsonSpan | null = null;
  for (const message of conversation?.items ?? []) {
    const [role, content] = message.members("role", "content");
    if (!(role?.is("system") || role?.is("developer"))) break;
    last = contentEnd(content, saysSomething) ?? last;
  }
  return last;
}

function saysSomething(part: JsonSpan): boolean {
  const [text] = part.members("text");
  return text?.isText === true && !text.is("");
}

function moveInstructions(instructions: JsonSpan, { start, end, isArray }: JsonSpan, edits: Edits): void {
  const { from, to } = instructions.member!;
  const head = [bytesOf(DEVELOPER_BEGINS), instructions.spelt, bytesOf(`${BREAKPOINT}}]},`)];
  edits.leaveOut(from, to);
  if (isArray) return edits.replace(start, start + 1, Buffer.concat(head));
  edits.replace(start, start, Buffer.concat([...head, bytesOf(USER_BEGINS)]));
  edits.replace(end, end, bytesOf("}]"));
}

const DEVELOPER_BEGINS = '[{"type":"message","role":"developer","content":[{"type":"input_text","text":';
const USER_BEGINS = '{"type":"message","role":"user","content":';

/** The last block of a content that takes a mark, or the text that it is instead of a list. */
function contentEnd(content: JsonSpan | null, takesMark: (block: JsonSpan) => boolean): JsonSpan | null {
  if (content?.isText) return content.is("") ? null : content;
  return lastOf(content, takesMark);
}

const lastOf = (list: JsonSpan | null, isMeant: (item: JsonSpan) => boolean): JsonSpan | null =>
  list?.items.findLast(isMeant) ?? null;

/** A text that is marked becomes a list of one block. */
function putMark({ start, end, isText }: JsonSpan, textType: string, mark: string, edits: Edits): void {
  if (!isText) return edits.replace(end - 1, end - 1, bytesOf(mark));
  edits.replace(start, start, bytesOf(`[{"type":"${textType}","text":`));
  edits.replace(end, end, bytesOf(`${mark}}]`));
}
