import type { SurfaceName } from "../../catalog/catalog.ts";
import { bytesOf, contains, joined } from "../json/bytes.ts";
import { Edits } from "../json/edits.ts";
import { asObject } from "../json/json.ts";
import { JsonCursor } from "../json/json-cursor.ts";
import type { GenerationRequest, HostBody, HostTarget } from "../surface.ts";

/**
 * A request of chat or Responses with a mark behind its instructions, for a host that matches its cache at marks
 * (OpenAI, "Prompt caching": GPT-5.6 and later). Tools come before the instructions and take no mark; the end of the
 * newest message is marked by the host itself. Other conversations with the same instructions then find these.
 * `instructions` of Responses become the message that they stand for, because a text takes no mark. A client that marks
 * something knows better: its request stays as it is.
 */
export function withBreakpoint(body: Uint8Array, language: SurfaceName): Uint8Array {
  if (contains(body, OWN_MARK)) return body;
  const found = membersOf(body, language);
  if (found === null) return body;
  const { conversation, instructions } = found;
  const edits = new Edits();
  const last = endOfInstructions(body, conversation);
  if (last !== null) markEnd(last, language, edits);
  else if (instructions !== null && instructions.end - instructions.start > EMPTY.length)
    moveInstructions(body, instructions, conversation, edits);
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

const OWN_MARK = Buffer.from('"prompt_cache_breakpoint"');
const MARK = ',"prompt_cache_breakpoint":{"mode":"explicit"}';
const EMPTY = '""';

interface ByteSpan {
  readonly start: number;
  readonly end: number;
}

/** A part, or a text in the last of a list of parts. */
interface InstructionEnd extends ByteSpan {
  readonly isText: boolean;
}

/** A member with all that has to go with it when it is removed. */
interface RemovableMember extends ByteSpan {
  readonly from: number;
  readonly to: number;
}

function membersOf(
  body: Uint8Array,
  language: SurfaceName,
): { conversation: ByteSpan; instructions: RemovableMember | null } | null {
  const cursor = new JsonCursor();
  let conversation: ByteSpan | null = null;
  let instructions: RemovableMember | null = null;
  cursor.begin(body, 0, body.length);
  cursor.enterObject();
  while (cursor.nextMember()) {
    const { at: start, comma, memberStart, isText } = cursor;
    const isConversation = cursor.isNamed(language === "responses" ? "input" : "messages");
    const isInstructions = language === "responses" && isText && cursor.isNamed("instructions");
    cursor.skip();
    const end = cursor.at;
    if (isConversation) conversation = { start, end };
    // The first member takes the comma behind it along, any other the one before it.
    if (isInstructions)
      instructions = {
        start,
        end,
        ...(comma === -1 ? { from: memberStart, to: cursor.nextMemberStart } : { from: comma, to: end }),
      };
  }
  return cursor.isDone && conversation !== null ? { conversation, instructions } : null;
}

/** The last part of the instructions with which the conversation begins; null where it begins with none. */
function endOfInstructions(body: Uint8Array, conversation: ByteSpan): InstructionEnd | null {
  const cursor = new JsonCursor();
  let last: InstructionEnd | null = null;
  cursor.begin(body, conversation.start, conversation.end);
  if (!cursor.isArray) return null;
  cursor.enterArray();
  while (cursor.nextValue()) {
    if (!cursor.isObject) return last;
    let end: InstructionEnd | null = null;
    let isInstruction = false;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("content")) end = endOf(cursor);
      else {
        if (cursor.isNamed("role"))
          isInstruction = cursor.isTheText("system") || cursor.isTheText("developer");
        cursor.skip();
      }
    }
    if (!isInstruction) return last;
    last = end ?? last;
  }
  return last;
}

/** Passes a content; its last text. */
function endOf(cursor: JsonCursor): InstructionEnd | null {
  const start = cursor.at;
  if (!cursor.isArray) {
    const { isText } = cursor;
    cursor.skip();
    return isText && cursor.at - start > EMPTY.length ? { start, end: cursor.at, isText } : null;
  }
  let last: InstructionEnd | null = null;
  cursor.enterArray();
  while (cursor.nextValue()) {
    const part = cursor.at;
    let saysSomething = false;
    if (cursor.isObject) {
      cursor.enterObject();
      while (cursor.nextMember()) {
        saysSomething ||= cursor.isNamed("text") && cursor.isText && !cursor.isTheText("");
        cursor.skip();
      }
    } else cursor.skip();
    if (saysSomething) last = { start: part, end: cursor.at, isText: false };
  }
  return last;
}

function markEnd({ start, end, isText }: InstructionEnd, language: SurfaceName, edits: Edits): void {
  if (!isText) return edits.replace(end - 1, end - 1, bytesOf(MARK));
  const type = language === "responses" ? "input_text" : "text";
  edits.replace(start, start, bytesOf(`[{"type":"${type}","text":`));
  edits.replace(end, end, bytesOf(`${MARK}}]`));
}

function moveInstructions(
  body: Uint8Array,
  instructions: RemovableMember,
  { start, end }: ByteSpan,
  edits: Edits,
): void {
  const text = body.subarray(instructions.start, instructions.end);
  const head = Buffer.concat([
    bytesOf('[{"type":"message","role":"developer","content":[{"type":"input_text","text":'),
    text,
    bytesOf(`${MARK}}]},`),
  ]);
  edits.leaveOut(instructions.from, instructions.to);
  const isList = body[start] === OPEN_BRACKET;
  edits.replace(
    start,
    isList ? start + 1 : start,
    isList ? head : Buffer.concat([head, bytesOf(USER_BEGINS)]),
  );
  if (!isList) edits.replace(end, end, bytesOf("}]"));
}

const OPEN_BRACKET = 0x5b;
const USER_BEGINS = '{"type":"message","role":"user","content":';
